"""The table of a sweep: ``python -m experiments.tables --workdir=DIR``."""

import os
import sys
from pathlib import Path

from absl import flags

from experiments import command, table_flags
from experiments.telling import tell
from transformer_ablation.report.json_file import write_text
from transformer_ablation.report.render import check_format, render
from transformer_ablation.report.table import Options, read_table


def body(values: flags.FlagValues) -> None:
    """Prints or writes the table of the workdir."""
    if values["workdir"].value is None:
        raise command.UsageError("--workdir is missing; name the folder of a sweep")
    print_table(
        values["workdir"].value,
        values["format"].value,
        values["out"].value,
        table_flags.options(values),
    )


def print_table(
    workdir: str | Path,
    format: str = "text",
    out: str | Path | None = None,
    options: Options | None = None,
) -> None:
    """Prints the table of a workdir, or writes it whole to the file ``out``.

    Raises:
      TableError, RecordError: for a folder or format that gives no table.
    """
    check_format(format)
    place = None if out is None else output_file(out)
    text = render(read_table(workdir, options, tell), format)
    if place is None:
        print_text(text)
    else:
        write_text(place, text)
        print(f"wrote {out}")


def output_file(out: str | Path) -> Path:
    """The file to write, before the work that it takes.

    Raises:
      UsageError: if it is no name, a folder, something else than a plain file, or
        where nothing can be written.
    """
    path = Path(out)
    if not str(out).strip() or path.is_dir() or (path.exists() and not path.is_file()):
        what = "a folder" if path.is_dir() and str(out).strip() else "no file"
        raise command.UsageError(
            f"--out={out}: is {what}; name a file, or leave --out away to print"
        )
    above = next(p for p in path.absolute().parents if p.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "cannot be written to" if above.is_dir() else "is no folder"
        raise command.UsageError(f"--out={out}: {above} {what}; name another place")
    return path


def print_text(text: str) -> None:
    """Prints text also where the terminal lacks its letters (Δ, ±): as ``?``."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), end="")


COMMAND = command.Command(
    name="tables",
    summary="The table of a sweep, finished or not, from its records.",
    examples=(
        "python -m experiments.tables --workdir=runs/table3",
        "python -m experiments.tables --workdir=runs/table3 --format=latex "
        "--out=runs/table3.tex",
    ),
    define=table_flags.define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
