"""``python -m experiments``: which commands there are."""

import importlib
import sys
import textwrap
from pathlib import Path

DEFINITION = "\nCOMMAND = "


def names() -> list[str]:
    """The modules of this folder that are commands."""
    paths = sorted(Path(__file__).parent.glob("*.py"))
    return [p.stem for p in paths if DEFINITION in p.read_text(encoding="utf-8")]


def listing() -> str:
    """A line or a few a command: its name and its summary."""
    lines = ["python -m experiments.NAME --help says more of each:", ""]
    for name in names():
        summary = importlib.import_module(f"experiments.{name}").COMMAND.summary
        lines += textwrap.wrap(
            summary, 88, initial_indent=f"  {name:<11}", subsequent_indent=" " * 13
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the list; 2 where a command is asked for in another way than it runs."""
    print(listing())
    asked = next((a for a in arguments if not a.startswith("-")), None)
    if asked is None:
        return 0
    form = f"python -m experiments.{asked}" if asked in names() else "one of these"
    print(f"\n{asked!r} is not an argument here; run {form}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
