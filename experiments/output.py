"""Where a command's result goes: printed, or written to the file that a flag names."""

import errno
import sys
import tempfile
from pathlib import Path

from experiments.command import UsageError
from transformer_ablation.report.json_file import write_text

# Files of a workdir or of a run that nothing may take the place of.
OWN = (
    "sweep.json",
    "significance.json",
    "record.json",
    "config.json",
    "metrics.jsonl",
    "vocabulary.model",
)


def output_file(given: str | Path | None, format: str) -> Path | None:
    """The file to write, or None to print; to ask for before the work.

    Raises:
      UsageError: for a file that ``check_file`` refuses; or a page would go to a
        terminal.
    """
    if given is None:
        if format == "html" and sys.stdout.isatty():
            raise UsageError(
                "--format=html is a page for a browser; name its file: "
                "--out=report.html"
            )
        return None
    check_file(given, "out", instead=" to print")
    return Path(given)


def check_file(given: str | Path | None, flag: str, instead: str = "") -> None:
    """Refuses a file that cannot be written, or must not be; before the work.

    Raises:
      UsageError: if it is no name, a folder, something else than a plain file, one of
        a sweep's own, or where nothing can be written.
    """
    if given is None:
        return
    path, named = Path(given), bool(str(given).strip())
    if not named or path.is_dir() or (path.exists() and not path.is_file()):
        what = "a folder" if named and path.is_dir() else "no file"
        raise UsageError(
            f"--{flag}={given}: is {what}; name a file, or leave --{flag} away{instead}"
        )
    if path.name in OWN and path.exists():
        raise UsageError(
            f"--{flag}={given}: is a file of a sweep, and would be lost; name another"
        )
    above = next(p for p in path.absolute().parents if p.exists())
    if not _writable(above):
        what = "cannot be written to" if above.is_dir() else "is no folder"
        raise UsageError(f"--{flag}={given}: {above} {what}; name another place")


def _writable(folder: Path) -> bool:
    """Whether a file can be made there: rights do not say it of /proc, or of root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        return False


def put(text: str, place: Path | None, format: str) -> None:
    """Prints a text of a format, or writes it whole to its file and says so."""
    if place is not None:
        write_text(place, text)
        print(f"wrote {place}")
    elif format == "html":
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        print_text(text)


def print_text(text: str) -> None:
    """Prints text also where the terminal lacks its letters (Δ, ±): as ``?``."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), end="")
