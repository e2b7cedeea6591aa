"""Table 2, models by language pairs: ``python -m experiments.table2 --workdirs=A``."""

import math

from absl import flags

from experiments import command
from experiments.output import output_file, put
from experiments.table_flags import BLEUS
from transformer_ablation.report.pairs_table import read_pairs
from transformer_ablation.report.render_pairs import FORMATS, check_format, render
from transformer_ablation.report.table import Options


def define(values: flags.FlagValues) -> None:
    """The flags of the command."""
    text = "folders of the sweeps, one a language pair, with commas between them"
    flags.DEFINE_list("workdirs", None, text, flag_values=values)
    text = f"one of {', '.join(FORMATS)}"
    flags.DEFINE_string("format", "text", text, flag_values=values)
    text = "sacrebleu, or paper: tokenised and compounds split, as in the paper's"
    flags.DEFINE_enum("bleu", "sacrebleu", list(BLEUS), text, flag_values=values)
    text = (
        "sustained FLOP/s of one device; adds the cost by the paper's rule, training "
        "time x devices x this (the paper's own for a P100: 9.5e12)"
    )
    flags.DEFINE_float("sustained_flops", None, text, 1.0, 1e21, flag_values=values)
    text = "show what may not stand in one table, with a mark, instead of refusing"
    flags.DEFINE_boolean("mixed", False, text, flag_values=values)
    flags.DEFINE_string("out", None, "write to this file instead", flag_values=values)


def body(options: flags.FlagValues) -> None:
    """Prints or writes the table."""
    workdirs = [part.strip() for part in options.workdirs or [] if part.strip()]
    if not workdirs:
        raise command.UsageError(
            "--workdirs is missing; name the folders of sweeps of configs/table2.py, "
            "for example --workdirs=runs/table2_de,runs/table2_fr"
        )
    rate = options.sustained_flops
    if rate is not None and not math.isfinite(rate):
        raise command.UsageError(f"--sustained_flops={rate}: must be a number")
    check_format(options.format)
    place = output_file(options.out, options.format)
    asked = Options(metric=BLEUS[options.bleu], rate=rate, mixed=options.mixed)
    text = render(read_pairs(workdirs, asked), options.format)
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
