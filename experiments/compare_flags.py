"""Flags of ``compare``, and the options that they ask for."""

from absl import flags

from experiments import shared_flags
from experiments.command import UsageError
from experiments.table_flags import MOST_SAMPLES, TESTS
from transformer_ablation.report.comparison.result import (
    FREQUENCY_STARTS,
    LENGTH_STARTS,
    Options,
)
from transformer_ablation.report.comparison.words import KINDS
from transformer_ablation.report.sentence_tests import SAMPLES, SEED, Settings
from transformer_ablation.report.text_metrics import METRICS

FORMATS = ("text", "html", "json")
FREQUENCIES = ("auto", "training", "references")
MOST = 1_000_000


def define(values: flags.FlagValues) -> None:
    """The flags of the command."""
    shared_flags.define_workdir(values)
    given = {"flag_values": values}
    flags.DEFINE_list("rows", None, "two rows of the sweep, with a comma", **given)
    text = "seeds to pair, with commas; all that both rows have finished by default"
    flags.DEFINE_string("seeds", None, text, **given)
    text = "instead of --workdir and --rows: folders of two runs, with a comma"
    flags.DEFINE_list("runs", None, text, **given)
    text = "validation, test, or the split's own name"
    flags.DEFINE_string("split", "validation", text, **given)
    shared_flags.define_format(values, FORMATS)
    flags.DEFINE_string("out", None, "write to this file instead", **given)
    _define_measures(values)
    shared_flags.define_cache(values)


def _define_measures(values: flags.FlagValues) -> None:
    given = {"flag_values": values}
    text = (
        "sentences to show each way; by default 5 as text, 2,000 as html (and as many "
        "ties), all as json"
    )
    flags.DEFINE_integer("sentences", None, text, 0, MOST, **given)
    text = "score of a sentence that says who has it better"
    flags.DEFINE_enum("sentence_metric", "chrf", ("chrf", "bleu"), text, **given)
    flags.DEFINE_integer("ngrams", 10, "n-grams to show each way", 0, MOST, **given)
    told = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
    flags.DEFINE_enum("ngram_kind", "match", list(KINDS), told, **given)
    starts = "; ".join(f"{_csv(x)} for {unit}" for unit, x in LENGTH_STARTS.items())
    text = f"lengths of sources at which buckets begin; by default {starts}"
    flags.DEFINE_string("length_buckets", None, text, **given)
    text = "unit of these; characters for sources written without spaces"
    flags.DEFINE_enum("length_unit", "words", list(LENGTH_STARTS), text, **given)
    text = "frequencies of words at which buckets begin"
    starts = _csv(FREQUENCY_STARTS)
    flags.DEFINE_string("frequency_buckets", starts, text, **given)
    text = "text that they are counted in; auto: the training text if --cache has it"
    flags.DEFINE_enum("frequencies", "auto", FREQUENCIES, text, **given)
    flags.DEFINE_boolean("ter", True, "TER, the slowest of the scores", **given)
    text = f"sacreBLEU's paired tests: {', '.join(TESTS)}"
    flags.DEFINE_enum("test", "both", list(TESTS), text, **given)
    text = f"scores to test, with commas, of {', '.join(METRICS)}"
    flags.DEFINE_list("test_metrics", ["bleu"], text, **given)
    counts = ", ".join(f"{count:,} for {kind}" for kind, count in SAMPLES.items())
    text = f"resamples or trials of each test; by default {counts}"
    flags.DEFINE_integer("samples", None, text, 1, MOST_SAMPLES, **given)
    text = "seed of these tests; those of the runs are --seeds"
    flags.DEFINE_integer("test_seed", SEED, text, 1, 2**32 - 1, **given)


def options(values: flags.FlagValues) -> Options:
    """What the flags ask for.

    Raises:
      UsageError: for buckets that do not ascend, or a metric that there is not.
    """
    kinds = TESTS[values.test]
    for metric in values.test_metrics:
        if metric not in METRICS:
            allowed = ", ".join(METRICS)
            raise UsageError(f"--test_metrics={metric}: it must be of {allowed}")
    if "ter" in values.test_metrics and not values.ter:
        raise UsageError("--test_metrics=ter and --noter: leave one of them out")
    lengths = values.length_buckets
    return Options(
        length_unit=values.length_unit,
        length_starts=lengths and _starts("length_buckets", lengths),
        frequency_starts=_starts("frequency_buckets", values.frequency_buckets),
        ngrams=values.ngram_kind,
        most_ngrams=values.ngrams,
        sentence_metric=values.sentence_metric,
        ter=values.ter,
        tests=Settings(kinds, values.samples, values.test_seed) if kinds else None,
        test_metrics=tuple(dict.fromkeys(values.test_metrics)),
    )


def _csv(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _starts(flag: str, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    good = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    starts = tuple(map(int, parts)) if good else ()
    if not starts or starts[0] < 1 or sorted(set(starts)) != list(starts):
        raise UsageError(
            f"--{flag}={text}: it must be whole numbers from 1 that ascend, with commas"
            " between them, for example 10,20,40: then 0-9, 10-19, 20-39 and 40+"
        )
    return starts
