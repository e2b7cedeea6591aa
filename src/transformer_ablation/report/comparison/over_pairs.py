"""What several pairs of runs say together: means, and the test over seeds."""

import statistics
from collections.abc import Iterable, Sequence

from transformer_ablation.report.comparison.result import (
    Both,
    LengthGroup,
    PairResult,
)
from transformer_ablation.report.seed_tests import SeedTest, seed_test


def over_seeds(pairs: Sequence[PairResult]) -> dict[str, SeedTest]:
    """By corpus score: the second side against the first over equal seeds."""
    if len(pairs) < 2:
        return {}
    tests = {}
    for name in pairs[0].corpus:
        ours = {p.seeds[0]: p.corpus[name].second or 0.0 for p in pairs}
        theirs = {p.seeds[0]: p.corpus[name].first or 0.0 for p in pairs}
        test = seed_test(ours, theirs)
        if test is not None:
            tests[name] = test
    return tests


def mean_lengths(pairs: Sequence[PairResult]) -> list[LengthGroup]:
    """Means over pairs; the sentences of a bucket are the same in all."""
    return [
        LengthGroup(
            groups[0].bucket,
            groups[0].sentences,
            {
                name: mean([group.scores[name] for group in groups])
                for name in groups[0].scores
            },
        )
        for groups in zip(*(pair.lengths for pair in pairs), strict=True)
    ]


def mean(values: Iterable[Both]) -> Both:
    """The mean of each side over the pairs that have it."""
    sides = zip(*values, strict=True)
    known = [[v for v in side if v is not None] for side in sides]
    first, second = (statistics.fmean(side) if side else None for side in known)
    return Both(first, second)
