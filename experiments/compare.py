"""Two rows of a sweep sentence by sentence: ``python -m experiments.compare``."""

from pathlib import Path

from absl import flags

from experiments import command, compare_flags, shared_flags, training_words
from experiments.output import output_file, put
from experiments.telling import tell
from transformer_ablation.report.comparison import data, page, text
from transformer_ablation.report.comparison.compare import compare
from transformer_ablation.report.comparison.result import Comparison
from transformer_ablation.report.comparison.runs import Found, find_rows, find_runs
from transformer_ablation.sweep.runs import parse_seeds

SENTENCES = {"text": 5, "html": 2000, "json": None}


def body(values: flags.FlagValues) -> None:
    """Prints or writes the comparison."""
    options = compare_flags.options(values)
    place = output_file(values.out, values.format)
    found = _found(values)
    record = found.pairs[0].sides[0].record
    cache = shared_flags.cache_folder(values)
    frequencies = training_words.frequencies(record, cache, values.frequencies)
    made = _formatted(compare(found, options, frequencies, tell), values)
    put(made, place, values.format)


def _found(values: flags.FlagValues) -> Found:
    """The runs that the flags name.

    Raises:
      UsageError: for flags that name none, or in two ways.
      ComparisonError, RecordError, TableError: what the runs or their texts lack.
    """
    if values.runs is not None:
        given = [n for n in ("workdir", "rows", "seeds") if values[n].value is not None]
        if given:
            raise command.UsageError(
                f"--runs names both runs; leave --{given[0]} away, or --runs"
            )
        return find_runs([Path(run) for run in values.runs], values.split, tell)
    for name, example in (("workdir", "runs/table3"), ("rows", "base,A_h1")):
        if not values[name].value:
            raise command.UsageError(
                f"--{name} is missing; for example --{name}={example} (or name two "
                "folders with --runs)"
            )
    shared_flags.check_sweep("workdir", values.workdir)
    seeds = None if values.seeds is None else parse_seeds(values.seeds, 0)
    return find_rows(Path(values.workdir), values.rows, seeds, values.split, tell)


def _formatted(made: Comparison, values: flags.FlagValues) -> str:
    asked = values.sentences
    sentences = SENTENCES[values.format] if asked is None else asked
    if values.format == "json":
        return data.as_json(made, sentences)
    if values.format == "html":
        return page.as_html(made, sentences)
    return text.as_text(made, sentences or 0)


COMMAND = command.Command(
    name="compare",
    summary="Two rows of a sweep, or two runs, sentence by sentence: scores, wins, "
    "lengths, words and n-grams that one gets and the other misses.",
    examples=(
        "python -m experiments.compare --workdir=runs/table3 --rows=base,A_h1",
        "python -m experiments.compare --workdir=runs/table3 --rows=base,A_h1 "
        "--format=html --out=runs/base_A_h1.html",
        "python -m experiments.compare "
        "--runs=runs/table3/runs/base/seed0,runs/table3/runs/base/seed1",
    ),
    define=compare_flags.define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
