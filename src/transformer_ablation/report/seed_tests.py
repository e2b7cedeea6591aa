"""Tests of a row against base over seeds that both have, and what they could see.

The unit is a trained model: the pair is base and the row with one seed. A test of
sentences (``sentence_tests.py``) asks instead whether two given models differ.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LEVEL = 0.05  # two-sided
POWER = 0.8
EFFECT = 0.3  # BLEU that the line on power speaks of
EXACT_FLIPS = 20  # seeds up to which all sign flips are counted
METHODS = ("paired-t", "sign-flip")


class SeedTest(NamedTuple):
    """A row's differences to base by seed, and what they say.

    ``interval`` is Student's 95% interval of the mean; it and ``deviation`` need two
    seeds. ``p`` is that of the table's method, ``adjusted`` after Holm over the rows.
    A p is None where nothing can be tested: one seed, or differences without spread.
    """

    differences: Mapping[int, float]
    mean: float
    deviation: float | None
    interval: tuple[float, float] | None
    p_paired_t: float | None
    p_sign_flip: float | None
    p: float | None
    adjusted: float | None = None

    @property
    def n(self) -> int:
        """Seeds that both rows have."""
        return len(self.differences)


def seed_test(
    row: Mapping[int, float], base: Mapping[int, float], method: str = METHODS[0]
) -> SeedTest | None:
    """The test of ``{seed: value}`` of a row against base's; None with no seed shared.

    Raises:
      ValueError: for a method that is not one of ``METHODS``.
    """
    if method not in METHODS:
        raise ValueError(f"no seed test {method!r}; one of {', '.join(METHODS)}")
    shared = sorted(row.keys() & base.keys())
    differences = {seed: row[seed] - base[seed] for seed in shared}
    if not differences:
        return None
    values = list(differences.values())
    several = len(values) >= 2
    t, flips = paired_t(values), sign_flip(values) if several else None
    return SeedTest(
        differences,
        statistics.fmean(values),
        statistics.stdev(values) if several else None,
        t_interval(values),
        t,
        flips,
        t if method == "paired-t" else flips,
    )


def paired_t(differences: Sequence[float]) -> float | None:
    """Two-sided p of the mean by Student's t with n - 1 degrees of freedom.

    1 where all are 0; None for fewer than two differences, or others that are equal:
    they have no spread.
    """
    if len(differences) > 1 and not any(differences):
        return 1.0
    if len(differences) < 2 or _equal(differences):
        return None
    from scipy.special import stdtr

    n = len(differences)
    error = statistics.stdev(differences) / math.sqrt(n)
    return float(2 * stdtr(n - 1, -abs(statistics.fmean(differences)) / error))


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided p of the mean among all 2^n choices of the differences' signs.

    Exact, and never below 2^(1 - n). Beyond ``EXACT_FLIPS`` differences it is that of
    100,000 random choices, drawn with seed 0.
    """
    import numpy as np

    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    if n > EXACT_FLIPS:
        signs = np.random.default_rng(0).integers(0, 2, (100_000, n)) * 2.0 - 1
        sums, itself = np.abs(signs @ values), 1
    else:
        # With the first sign held: the other half are the same sums, negated.
        sums, itself = np.abs(_sums(values)), 0
    # Sums of the same numbers in another order may differ by rounding.
    seen = abs(values.sum()) * (1 - 1e-12) - 1e-12
    return float((np.sum(sums >= seen) + itself) / (len(sums) + itself))


def _sums(values: Any) -> Any:
    """All 2^(n-1) signed sums of the values, the first one's sign being plus."""
    import numpy as np

    sums = values[:1]
    for value in values[1:]:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _equal(values: Sequence[float]) -> bool:
    """Whether they differ by no more than rounding."""
    return max(values) - min(values) <= 1e-9 * max(1.0, *map(abs, values))


def t_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95% interval of the mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    from scipy.special import stdtrit

    n, mean = len(values), statistics.fmean(values)
    quantile = float(stdtrit(n - 1, 1 - LEVEL / 2))
    half = quantile * statistics.stdev(values) / math.sqrt(n)
    return mean - half, mean + half


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """p-values after Holm's step-down correction (1979) over those that are known."""
    known = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    highest = 0.0
    for place, (p, name) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - place)))
        adjusted[name] = highest
    return adjusted


class Power(NamedTuple):
    """Seeds needed to see ``effect`` where differences have ``deviation``."""

    effect: float
    deviation: float
    degrees: int  # of freedom that the deviation comes from
    seeds: int


def needed_seeds(
    tests: Sequence[SeedTest], effect: float = EFFECT, most: int = 1_000_000
) -> Power | None:
    """From the spread of all rows' differences, pooled; None without any spread."""
    spread = [t for t in tests if t.deviation is not None]
    degrees = sum(t.n - 1 for t in spread)
    squares = math.fsum((t.n - 1) * (t.deviation or 0.0) ** 2 for t in spread)
    if squares <= 0:
        return None
    deviation = math.sqrt(squares / degrees)
    low, high = 1, 2
    while high < most and power(high, effect, deviation) < POWER:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if power(middle, effect, deviation) < POWER:
            low = middle
        else:
            high = middle
    return Power(effect, deviation, degrees, high)


def power(seeds: int, effect: float, deviation: float) -> float:
    """Chance that a paired t-test of that many seeds finds a mean difference.

    t has then a noncentral distribution, with n - 1 degrees of freedom and the
    noncentrality effect * sqrt(n) / deviation. Its other tail is left out: a
    difference that is found with the wrong sign is not found.
    """
    from scipy.special import nctdtr, stdtrit

    critical = float(stdtrit(seeds - 1, 1 - LEVEL / 2))
    centre = effect * math.sqrt(seeds) / deviation
    return 1 - float(nctdtr(seeds - 1, centre, critical))
