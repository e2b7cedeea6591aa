"""Tests over seeds against scipy.stats and hand arithmetic."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from transformer_ablation.report.seed_tests import (
    SeedTest,
    holm,
    needed_seeds,
    paired_t,
    power,
    seed_test,
    sign_flip,
)

BASE = {0: 20.0, 1: 21.5, 2: 19.75, 3: 20.5, 4: 22.0}
ROW = {0: 20.5, 1: 21.25, 2: 20.75, 3: 21.0, 4: 22.5, 9: 99.0}


def test_paired_t_and_interval_are_scipys():
    found = seed_test(ROW, BASE)
    ours, base = [ROW[s] for s in BASE], list(BASE.values())
    expected = stats.ttest_rel(ours, base)
    assert found.p == found.p_paired_t == pytest.approx(expected.pvalue, rel=1e-9)
    low, high = expected.confidence_interval(0.95)
    assert found.interval == pytest.approx((low, high), rel=1e-9)
    # 0.5, -0.25, 1, 0.5, 0.5: the seed that base lacks is left out.
    assert found.mean == pytest.approx(0.45) and found.n == 5
    squares = 2 * 0.05**2 + 0.05**2 + 0.7**2 + 0.55**2
    assert found.deviation == pytest.approx(math.sqrt(squares / 4))


def test_sign_flip_counts_all_choices_of_signs():
    differences = [0.5, -0.25, 1.0, 0.5, 0.5]
    seen = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=5)
    ]
    expected = sum(total >= seen for total in sums) / 32
    assert sign_flip(differences) == pytest.approx(expected)
    assert seed_test(ROW, BASE, "sign-flip").p == pytest.approx(expected)
    by_scipy = stats.permutation_test(
        (np.array(differences),),
        lambda x, axis: np.sum(x, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    assert sign_flip(differences) == pytest.approx(by_scipy.pvalue)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_least_p_of_sign_flips_is_two_of_all(n):
    """Differences of one sign: only they and their negatives are as extreme."""
    values = [0.1 * (i + 1) for i in range(n)]
    assert sign_flip(values) == pytest.approx(2 / 2**n)


def test_many_sign_flips_are_drawn_and_near_the_normal():
    values = np.random.default_rng(3).normal(0.3, 1.0, 40)
    z = values.sum() / math.sqrt((values**2).sum())
    assert sign_flip(list(values)) == pytest.approx(2 * stats.norm.sf(z), abs=0.01)


def test_nothing_is_tested_without_spread_or_a_second_seed():
    single = seed_test({0: 1.0}, {0: 0.5})
    assert single.mean == 0.5
    assert (single.p, single.deviation, single.interval) == (None, None, None)
    assert seed_test({0: 1.0}, {1: 0.5}) is None
    assert paired_t([0.1 + 0.2, 0.3, 0.3]) is None  # equal but for rounding
    assert paired_t([0.0, 0.0]) == 1.0  # no difference at all
    with pytest.raises(ValueError, match="paired-t, sign-flip"):
        seed_test({0: 1.0}, {0: 0.5}, "anova")


def test_holm_by_hand():
    """Sorted .005 .01 .03 .04 times 4 3 2 1, never falling."""
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005, "e": None})
    expected = {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}
    assert found.pop("e") is None
    assert found == pytest.approx(expected)
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}


def of_spread(*differences):
    values = dict(enumerate(differences))
    return seed_test(values, dict.fromkeys(values, 0.0))


def test_power_is_that_of_the_noncentral_t():
    for n, deviation in ((3, 0.2), (8, 0.5), (60, 1.0)):
        critical = stats.t.ppf(0.975, n - 1)
        centre = 0.3 * math.sqrt(n) / deviation
        expected = stats.nct.sf(critical, n - 1, centre)
        assert power(n, 0.3, deviation) == pytest.approx(expected, rel=1e-6)


def test_needed_seeds_are_the_fewest():
    """Squares of the deviations, 0.02 and 0.08, pooled with 1 degree each: 0.05."""
    found = needed_seeds([of_spread(0.1, -0.1), of_spread(0.3, -0.1)])
    assert found.deviation == pytest.approx(math.sqrt(0.05)) and found.degrees == 2

    def chance(n):
        critical = stats.t.ppf(0.975, n - 1)
        return stats.nct.sf(critical, n - 1, 0.3 * math.sqrt(n / 0.05))

    assert chance(found.seeds) >= 0.8 > chance(found.seeds - 1)
    # Table of Cohen (1988): effect size 0.5, two-sided 5%, power 80%: 34 pairs.
    pair = of_spread(0.6 / math.sqrt(2), -0.6 / math.sqrt(2))
    assert needed_seeds([pair]).seeds == 34


def test_no_spread_needs_no_count():
    assert needed_seeds([of_spread(0.5)]) is None
    assert needed_seeds([of_spread(0.5, 0.5)]) is None
    assert isinstance(of_spread(0.5, 0.5), SeedTest)
