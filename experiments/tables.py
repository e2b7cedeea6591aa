"""The table of a sweep: ``python -m experiments.tables --workdir=DIR``."""

import sys
from pathlib import Path

from absl import flags

from experiments import command
from transformer_ablation.report.json_file import write_text
from transformer_ablation.report.render import FORMATS, check_format, render
from transformer_ablation.report.table import read_table

# Values of --bleu, and the metric of a record that each shows.
BLEUS = {"sacrebleu": "bleu", "paper": "bleu_paper"}


def define(values: flags.FlagValues) -> None:
    """The flags of this command."""
    formats = f"one of {', '.join(FORMATS)}"
    flags.DEFINE_string("workdir", None, "folder of a sweep", flag_values=values)
    flags.DEFINE_string("format", "text", formats, flag_values=values)
    text = "sacrebleu, or paper: tokenised and compounds split, as in its Table 2"
    flags.DEFINE_enum("bleu", "sacrebleu", list(BLEUS), text, flag_values=values)
    text = (
        "sustained FLOP/s of one device; adds the cost by the paper's rule, training "
        "time x devices x this (the paper's own for a P100: 9.5e12)"
    )
    flags.DEFINE_float("sustained_flops", None, text, 1.0, 1e21, flag_values=values)
    flags.DEFINE_string("out", None, "write to this file instead", flag_values=values)


def body(values: flags.FlagValues) -> None:
    """Prints or writes the table of the workdir."""
    if values["workdir"].value is None:
        raise command.UsageError("--workdir is missing; name the folder of a sweep")
    print_table(
        values["workdir"].value,
        values["format"].value,
        out=values["out"].value,
        metric=BLEUS[values["bleu"].value],
        rate=values["sustained_flops"].value,
    )


def print_table(
    workdir: str | Path,
    format: str = "text",
    out: str | Path | None = None,
    metric: str = "bleu",
    rate: float | None = None,
) -> None:
    """Prints the table of a workdir, or writes it whole to the file ``out``.

    Raises:
      TableError, RecordError: for a folder or format that gives no table.
    """
    check_format(format)
    place = None if out is None else _place(out)
    text = render(read_table(workdir, metric, rate), format)
    if place is None:
        print_text(text)
    else:
        write_text(place, text)
        print(f"wrote {out}")


def _place(out: str | Path) -> Path:
    """The file to write.

    Raises:
      UsageError: if it is no name, a folder, or something else than a plain file.
    """
    path = Path(out)
    if not str(out).strip() or path.is_dir() or (path.exists() and not path.is_file()):
        what = "a folder" if path.is_dir() and str(out).strip() else "no file"
        raise command.UsageError(
            f"--out={out}: is {what}; name a file, or leave --out away to print"
        )
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
        "python -m experiments.tables --workdir=runs/table3 --format=markdown "
        "--out=runs/table3.md",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
