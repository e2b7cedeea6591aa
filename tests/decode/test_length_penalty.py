"""The length penalty by formula, and the bound that lets the search stop early."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ablation.decode.length_penalty import (
    best_reachable_score,
    length_penalty,
)

# Room for the rounding of float64 where two numbers are equal on paper.
ROUNDING = 1e-12


@pytest.mark.parametrize(
    ("length", "alpha", "by_hand"),
    [
        (1, 0.6, 1.0),  # (6 / 6) ** 0.6
        (7, 0.6, 2**0.6),  # (12 / 6) ** 0.6
        (7, 1.0, 2.0),
        (13, 2.0, 9.0),  # (18 / 6) ** 2
        (7, -1.0, 0.5),
        (49, 0.5, 3.0),  # sqrt(54 / 6)
        (31, 0.0, 1.0),
    ],
)
def test_length_penalty_is_the_formula_of_wu_et_al(length, alpha, by_hand):
    assert length_penalty(length, alpha) == pytest.approx(by_hand, rel=ROUNDING)


@pytest.mark.parametrize(
    ("length", "alpha", "by_hand"),
    [(1, 0.6, 1.0), (4, 0.5, 2.0), (9, 1.0, 9.0), (8, -1.0, 0.125), (7, 0.0, 1.0)],
)
def test_power_is_the_length_alone(length, alpha, by_hand):
    found = length_penalty(length, alpha, "power")
    assert found == pytest.approx(by_hand, rel=ROUNDING)


def test_unknown_penalty_is_refused():
    with pytest.raises(ValueError, match="unknown length penalty 'google'"):
        length_penalty(3, 0.6, "google")


def by_formula(length, alpha, kind):
    base = (5 + length) / 6 if kind == "wu2016" else length
    return base**alpha


@given(st.floats(-3, 3), st.integers(1, 500))
def test_length_penalty_grows_with_length_for_positive_alpha_only(alpha, length):
    ratio = length_penalty(length + 1, alpha) / length_penalty(length, alpha)
    # Of the logarithms: (6 + length) / (5 + length) to the power alpha.
    expected = alpha * math.log1p(1 / (5 + length))
    assert math.log(ratio) == pytest.approx(expected, rel=1e-9, abs=ROUNDING)


@given(
    alpha=st.floats(-3, 3),
    log_probability=st.floats(-40, 0),
    length=st.integers(1, 60),
    further=st.lists(st.floats(-5, 0), min_size=0, max_size=12),
    spare=st.integers(0, 20),
    kind=st.sampled_from(("wu2016", "power")),
)
def test_no_continuation_scores_above_best_reachable_score(
    alpha, log_probability, length, further, spare, kind
):
    """Whatever is added, wherever up to the longest length it ends."""
    longest = length + len(further) + spare
    bound = best_reachable_score(log_probability, length, longest, alpha, kind)
    total = log_probability
    for more, added in enumerate([0.0, *further]):
        total += added
        score = total / by_formula(length + more, alpha, kind)
        assert score <= bound + ROUNDING * abs(bound)


@given(
    alpha=st.floats(-3, 3),
    log_probability=st.floats(-40, -0.001),
    length=st.integers(1, 60),
    spare=st.integers(0, 30),
    kind=st.sampled_from(("wu2016", "power")),
)
def test_best_reachable_score_can_be_reached(
    alpha, log_probability, length, spare, kind
):
    """Not only a bound: certain tokens (log p = 0) attain it, so no search that
    could still win is kept from stopping, nor one that could not kept going."""
    longest = length + spare
    bound = best_reachable_score(log_probability, length, longest, alpha, kind)
    reachable = [
        log_probability / by_formula(n, alpha, kind) for n in range(length, longest + 1)
    ]
    assert bound == pytest.approx(max(reachable), rel=ROUNDING)
