"""``python -m experiments.attention --run=DIR``: what its heads attend to."""

from absl import flags

from experiments import (
    attention_pictures,
    attention_runs,
    attention_texts,
    command,
    decoding_flags,
    output,
    shared_flags,
)
from transformer_ablation.report import head_table

SENTENCES = 1000


def define(values: flags.FlagValues) -> None:
    """Flags of the pictures and of the tables."""
    shared_flags.define_run(values)
    text = "a sentence to translate and to show; again for more; - for lines on stdin"
    flags.DEFINE_multi_string("source", None, text, flag_values=values)
    text = "its target, once for each --source; else the run's own translation"
    flags.DEFINE_multi_string("target", None, text, flag_values=values)
    text = "in place of --source: a line of the validation split, or FROM:TO, from 1 on"
    flags.DEFINE_string("validation", None, text, flag_values=values)
    text = "a table of what each head does over the validation split"
    flags.DEFINE_bool("summary", False, text, flag_values=values)
    text = "a table of the loss and perplexity that each head is worth there"
    flags.DEFINE_bool("importance", False, text, flag_values=values)
    text = "with --importance: also of BLEU, which translates once a head"
    flags.DEFINE_bool("bleu", False, text, flag_values=values)
    text = "of the tables: at most so many sentences, at equal distances in the split"
    flags.DEFINE_integer(
        "sentences", SENTENCES, text, lower_bound=1, flag_values=values
    )
    text = "in place of --run, of the tables: folders of runs, with commas"
    flags.DEFINE_list("runs", None, text, flag_values=values)
    text = (
        "folder of the pictures, else attention/ in the run's; a table's file, else it "
        "is printed"
    )
    flags.DEFINE_string("out", None, text, flag_values=values)
    shared_flags.define_format(values, head_table.FORMATS)
    decoding_flags.define(values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues) -> None:
    """Pictures of sentences, or a table of heads."""
    _check(options)
    if not (options.summary or options.importance):
        run = shared_flags.run_folder(options)
        attention_pictures.write(run, attention_texts.given(options), options)
        return
    place = output.output_file(options.out, options.format)
    runs = attention_runs.checked(options)
    from experiments import attention_heads  # it loads JAX

    attention_heads.put(runs, options, place)


def _check(options: flags.FlagValues) -> None:
    """Refuses flags that ask for nothing, or for two things.

    Raises:
      UsageError: naming them.
    """
    tables = [f"--{name}" for name in ("summary", "importance") if options[name].value]
    shown = [
        f"--{name}"
        for name in ("source", "validation")
        if options[name].value is not None
    ]
    if not tables and not shown:
        raise command.UsageError(
            "nothing is asked for: name a sentence, for example "
            '--source="A dog is running." or --validation=3, or a table, --summary or '
            "--importance"
        )
    if len(shown) > 1 or tables and shown:
        asked = " and ".join([*shown, *tables])
        raise command.UsageError(f"{asked}: ask for one after the other")
    for name, needed in (("target", "source"), ("bleu", "importance")):
        if options[name].value and not options[needed].value:
            raise command.UsageError(f"--{name} goes with --{needed}")
    several = options.runs is not None
    if shown and (several or options["format"].present):
        name = "runs" if several else "format"
        raise command.UsageError(
            f"--{name} is of the tables, --summary and --importance"
        )
    if several and options.run:
        raise command.UsageError("--runs names all runs; leave --run away")


COMMAND = command.Command(
    name="attention",
    summary="Attention of every layer and head for a sentence, as pictures and as a "
    "page to explore; or tables of what each head does and what it is worth.",
    examples=(
        "python -m experiments.attention --run=runs/table3/runs/base/seed0 "
        '--source="the old dog sleeps"',
        "python -m experiments.attention --run=runs/table3/runs/base/seed0 "
        "--validation=3",
        "python -m experiments.attention --run=runs/table3/runs/base/seed0 --summary "
        "--importance",
        "python -m experiments.attention --summary --format=html --out=heads.html "
        "--runs=runs/table3/runs/base/seed0,runs/table3/runs/A_h32/seed0",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
