"""The table of a sweep: ``python -m experiments.tables --workdir=DIR``."""

import sys
from pathlib import Path

from absl import flags

from experiments import command
from transformer_ablation.report.json_file import write_text
from transformer_ablation.report.render import FORMATS, check_format, render
from transformer_ablation.report.table import read_table


def define(values: flags.FlagValues) -> None:
    """The flags of this command."""
    formats = f"one of {', '.join(FORMATS)}"
    flags.DEFINE_string("workdir", None, "folder of a sweep", flag_values=values)
    flags.DEFINE_string("format", "text", formats, flag_values=values)
    flags.DEFINE_string("out", None, "write to this file instead", flag_values=values)


def body(values: flags.FlagValues) -> None:
    """Prints or writes the table of the workdir."""
    if values["workdir"].value is None:
        raise command.UsageError("--workdir is missing; name the folder of a sweep")
    print_table(
        values["workdir"].value, values["format"].value, out=values["out"].value
    )


def print_table(
    workdir: str | Path, format: str = "text", out: str | Path | None = None
) -> None:
    """Prints the table of a workdir, or writes it whole to the file ``out``.

    Raises:
      TableError, RecordError: for a folder or format that gives no table.
    """
    check_format(format)
    text = render(read_table(workdir), format)
    if out is None:
        print_text(text)
    else:
        write_text(Path(out), text)
        print(f"wrote {out}")


def print_text(text: str) -> None:
    """Prints text also where the terminal lacks its letters (Δ, ±): as ``?``."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), end="")


COMMAND = command.Command(
    name="tables",
    summary="The table of a sweep, finished or not, from its records.",
    examples=(
        "python -m experiments.tables --workdir=runs/table3",
        "python -m experiments.tables --workdir=runs/table3 --format=markdown "
        "--out=table3.md",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
