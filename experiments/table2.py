"""Table 2, models by language pairs: ``python -m experiments.table2 --workdirs=A``."""

from absl import flags

from experiments import command, shared_flags, table_flags
from experiments.output import output_file, put
from transformer_ablation.report.pairs_table import read_pairs
from transformer_ablation.report.render import check_format
from transformer_ablation.report.render_pairs import FORMATS, render


def define(values: flags.FlagValues) -> None:
    """The flags of the command."""
    text = "folders of the sweeps, one a language pair, with commas between them"
    flags.DEFINE_list("workdirs", None, text, flag_values=values)
    text = f"one of {', '.join(FORMATS)}"
    flags.DEFINE_string("format", "text", text, flag_values=values)
    table_flags.define_shown(values)


def body(options: flags.FlagValues) -> None:
    """Prints or writes the table."""
    workdirs = [part.strip() for part in options.workdirs or [] if part.strip()]
    if not workdirs:
        raise command.UsageError(
            "--workdirs is missing; name the folders of sweeps of configs/table2.py, "
            "for example --workdirs=runs/table2_de,runs/table2_fr"
        )
    check_format(options.format, FORMATS)
    for workdir in workdirs:
        shared_flags.check_sweep("workdirs", workdir)
    place = output_file(options.out, options.format)
    found = read_pairs(workdirs, table_flags.shown(options))
    text = render(found, options.format)
    put(text, place, options.format)


COMMAND = command.Command(
    name="table2",
    summary="Table 2: architectures by language pairs, of sweeps of configs/table2.py.",
    examples=(
        "python -m experiments.table2 --workdirs=runs/table2_de,runs/table2_fr",
        "python -m experiments.table2 --workdirs=runs/table2_de "
        "--sustained_flops=9.5e12 --format=latex --out=runs/table2.tex",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
