"""Flags of ``tables``, and the options of a table that they ask for."""

import dataclasses
import math

from absl import flags

from experiments.command import UsageError
from transformer_ablation.report.render import FORMATS
from transformer_ablation.report.seed_tests import METHODS
from transformer_ablation.report.sentence_tests import KINDS, SAMPLES, SEED, Settings
from transformer_ablation.report.table import Options

# Values of --bleu, and the metric of a record that each shows.
BLEUS = {"sacrebleu": "bleu", "paper": "bleu_paper"}
TESTS = {"both": tuple(KINDS), **{kind: (kind,) for kind in KINDS}, "none": ()}
MOST_SAMPLES = 1_000_000


def define(values: flags.FlagValues) -> None:
    """The flags of the command."""
    formats = f"one of {', '.join(FORMATS)}; html is a report with figures"
    flags.DEFINE_string("workdir", None, "folder of a sweep", flag_values=values)
    flags.DEFINE_string("format", "text", formats, flag_values=values)
    define_shown(values)
    text = (
        "write figures for papers to this folder too, as PDF and PNG: one a group, "
        "agreement with the paper, cost"
    )
    flags.DEFINE_string("figures", None, text, flag_values=values)
    _define_tests(values)


def define_shown(values: flags.FlagValues) -> None:
    """What any table of sweeps shows, and where it goes."""
    text = "sacrebleu, or paper: tokenised and compounds split, as in its Table 2"
    flags.DEFINE_enum("bleu", "sacrebleu", list(BLEUS), text, flag_values=values)
    text = (
        "sustained FLOP/s of one device; adds the cost by the paper's rule, training "
        "time x devices x this (the paper's own for a P100: 9.5e12)"
    )
    flags.DEFINE_float("sustained_flops", None, text, 1.0, 1e21, flag_values=values)
    flags.DEFINE_string("out", None, "write to this file instead", flag_values=values)
    text = "show what may not stand in one table, with a mark, instead of refusing"
    flags.DEFINE_boolean("mixed", False, text, flag_values=values)


def _define_tests(values: flags.FlagValues) -> None:
    text = (
        "sacreBLEU's paired tests of a row's sentences against base's, per seed: "
        f"{', '.join(TESTS)}"
    )
    flags.DEFINE_enum("test", "both", list(TESTS), text, flag_values=values)
    counts = ", ".join(f"{count:,} for {kind}" for kind, count in SAMPLES.items())
    text = f"resamples or trials of each of these tests; by default {counts}"
    flags.DEFINE_integer("samples", None, text, 1, MOST_SAMPLES, flag_values=values)
    text = "seed of these tests; those of a run are --seeds of the sweep"
    flags.DEFINE_integer("test_seed", SEED, text, 1, 2**32 - 1, flag_values=values)
    text = f"paired test over seeds: {' or '.join(METHODS)}"
    flags.DEFINE_enum("seed_test", METHODS[0], METHODS, text, flag_values=values)


def shown(values: flags.FlagValues) -> Options:
    """What the flags of ``define_shown`` ask for.

    Raises:
      UsageError: for a rate that is no number.
    """
    rate = values["sustained_flops"].value
    if rate is not None and not math.isfinite(rate):
        raise UsageError(f"--sustained_flops={rate}: must be a number of FLOP/s")
    metric, mixed = BLEUS[values["bleu"].value], values["mixed"].value
    return Options(metric=metric, rate=rate, mixed=mixed)


def options(values: flags.FlagValues) -> Options:
    """What the flags ask for.

    Raises:
      UsageError: for a rate that is no number.
    """
    kinds = TESTS[values["test"].value]
    samples, seed = values["samples"].value, values["test_seed"].value
    return dataclasses.replace(
        shown(values),
        seed_test=values["seed_test"].value,
        sentences=Settings(kinds, samples, seed) if kinds else None,
    )
