"""The lines of the table of corpus scores, as every format shows them."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from transformer_ablation.report.cells import number
from transformer_ablation.report.comparison.notes import METRICS
from transformer_ablation.report.comparison.over_pairs import mean
from transformer_ablation.report.comparison.result import (
    Both,
    Comparison,
    PairResult,
)

DECIMALS = {"bleu": 2, "chrf": 2, "ter": 2, "length": 3}
TESTS = {"bootstrap": "p bootstrap", "randomization": "p randomisation"}


class Line(NamedTuple):
    """Values by metric; ``kind`` is score, difference or p, and says how they look."""

    group: str
    label: str
    values: Mapping[str, float | None]
    kind: str = "score"

    def cell(self, metric: str) -> str:
        """A value as people read it; blank where there is none."""
        value = self.values.get(metric)
        if self.kind == "p":
            return "" if value is None else f"{value:.3g}"
        sign = "+" if self.kind == "difference" else ""
        return number(value, DECIMALS[metric], sign)


def metrics(comparison: Comparison) -> list[str]:
    """The corpus scores that there are, in order."""
    return [name for name in METRICS if name in comparison.pairs[0].corpus]


def corpus_lines(comparison: Comparison) -> Iterator[Line]:
    """A block of lines a pair, and over several seeds."""
    for pair in comparison.pairs:
        yield from _sides(pair.name, comparison.labels, pair.corpus)
        yield from _tests(pair)
    tests, n = comparison.over_seeds, len(comparison.pairs)
    if not tests:
        return
    means = {name: mean([p.corpus[name] for p in comparison.pairs]) for name in tests}
    group = f"mean, n = {n}"
    yield from _sides(group, comparison.labels, means)
    deviations = {name: test.deviation for name, test in tests.items()}
    yield Line(group, "its deviation", deviations)
    yield Line(group, "p over seeds", {n: t.p for n, t in tests.items()}, "p")


def _sides(
    group: str, names: tuple[str, str], scores: Mapping[str, Both]
) -> Iterator[Line]:
    yield Line(group, names[0], {n: both.first for n, both in scores.items()})
    yield Line(group, names[1], {n: both.second for n, both in scores.items()})
    differences = {n: both.difference for n, both in scores.items()}
    yield Line(group, "difference", differences, "difference")


def _tests(pair: PairResult) -> Iterator[Line]:
    for kind in dict.fromkeys(k for found in pair.tests.values() for k in found):
        ps = {m: found[kind].p for m, found in pair.tests.items() if kind in found}
        yield Line(pair.name, TESTS[kind], ps, "p")
