"""The learning rate against eq. 3 of the paper, worked out by hand."""

import pytest

from transformer_ablation.train.schedule import learning_rate


@pytest.mark.parametrize(
    ("step", "d_model", "expected"),
    [
        # 512**-0.5 = 0.04419417; 4000**-1.5 = 3.952847e-6; 4000**-0.5 = 0.01581139.
        (1, 512, 1.746928e-7),
        (2, 512, 3.493856e-7),
        (2000, 512, 3.493856e-4),
        (4000, 512, 6.987712e-4),
        (16000, 512, 3.493856e-4),  # four times the warm-up: half the peak
        (100_000, 512, 1.397542e-4),  # 0.04419417 * 0.003162278
        (4000, 1024, 4.941059e-4),  # big: the peak divided by sqrt(2)
    ],
)
def test_learning_rate_is_the_papers(step, d_model, expected):
    # Seven digits stand above.
    assert learning_rate(step, d_model, 4000, 1.0) == pytest.approx(expected, rel=5e-7)


def test_learning_rate_peaks_where_the_warm_up_ends():
    rates = [learning_rate(step, 512, 7, 1.0) for step in range(1, 30)]
    assert max(rates) == rates[7 - 1]
    assert rates[:7] == sorted(rates[:7]) and rates[6:] == sorted(rates[6:])[::-1]
    # Linear before the peak.
    assert rates[4] == pytest.approx(5 * rates[0], rel=1e-12)


def test_learning_rate_is_proportional_to_its_scale():
    for step in (3, 4000, 9000):
        doubled = learning_rate(step, 512, 4000, 2.0)
        assert doubled == pytest.approx(
            2 * learning_rate(step, 512, 4000, 1.0), rel=1e-12
        )


@pytest.mark.parametrize("step", [0, -1])
def test_learning_rate_of_no_update_is_refused(step):
    # Counted from 0 the first update would have rate 0: it would teach nothing.
    with pytest.raises(ValueError, match=f"updates count from 1, not {step}"):
        learning_rate(step, 512, 4000, 1.0)
