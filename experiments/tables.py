"""The table of a sweep: ``python -m experiments.tables --workdir=DIR``."""

import sys
from pathlib import Path

from absl import flags

from experiments import command, shared_flags, table_flags
from experiments.figure_folder import need_matplotlib, writable_folder
from experiments.output import output_file, put
from experiments.telling import tell
from transformer_ablation.report.columns import counted
from transformer_ablation.report.damage import damage_named
from transformer_ablation.report.figure_files import write_figures
from transformer_ablation.report.render import check_format, render
from transformer_ablation.report.render_html import read_details
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
        values["figures"].value,
    )


def print_table(
    workdir: str | Path,
    format: str = "text",
    out: str | Path | None = None,
    options: Options | None = None,
    figures: str | Path | None = None,
) -> None:
    """Prints the table of a workdir, or writes it whole to the file ``out``.

    With ``figures``, a folder, draws the figures of the table too.

    Raises:
      TableError, RecordError: for a folder or format that gives no table.
    """
    check_format(format)
    place = output_file(out, format)
    folder = None
    if figures is not None:
        need_matplotlib("--figures")
        folder = writable_folder(figures, "figures")
    shared_flags.check_sweep("workdir", workdir)
    with damage_named(workdir):
        table = read_table(workdir, options, tell)
        details = read_details(workdir, table) if format == "html" else None
        text = render(table, format, details)
    put(text, place, format)
    if folder is not None:
        tell(f"drawing figures in {folder}")
        drawn = write_figures(table, folder, tell)
        print(f"wrote {counted(len(drawn), 'file')} in {folder}", file=sys.stderr)


COMMAND = command.Command(
    name="tables",
    summary="The table of a sweep, finished or not, from its records.",
    examples=(
        "python -m experiments.tables --workdir=runs/table3",
        "python -m experiments.tables --workdir=runs/table3 --format=latex "
        "--out=runs/table3.tex",
        "python -m experiments.tables --workdir=runs/table3 --format=html "
        "--out=runs/table3.html --figures=runs/figures",
    ),
    define=table_flags.define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
