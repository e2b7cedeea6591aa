"""Agreement with the paper: signs by hand, Kendall's tau-b by scipy."""

import numpy as np
import pytest
from scipy import stats

from transformer_ablation.report import agreement as module
from transformer_ablation.report.agreement import agreement, same_sign

OURS = [-2.5, -0.5, 0.25, -0.5, 1.5, 0.75, -3.0]
# 25.5 - 25.8 and 4.7 - 5.0 are one difference in print.
PAPERS = [-0.9, 25.5 - 25.8, 0.0, -0.4, 4.7 - 5.0, 0.6, -2.1]


def test_signs_count_where_the_paper_has_a_difference():
    found = agreement(list(zip(OURS, PAPERS, strict=True)))
    assert (found.rows, found.signed, found.same) == (7, 6, 5)
    assert same_sign(1.0, 0.0) is None and same_sign(None, 1.0) is None
    assert same_sign(-0.01, -2.0) is True and same_sign(0.0, 1.0) is False


def test_tau_is_scipys_with_ties_of_printed_numbers():
    found = agreement(list(zip(OURS, PAPERS, strict=True)))
    rounded = [round(p, 2) for p in PAPERS]
    assert rounded[1] == rounded[4]
    assert found.tau == pytest.approx(stats.kendalltau(OURS, rounded).statistic)


def test_tau_by_hand():
    """Of 3 pairs of rows one is tied in the paper: (1 - 1) and (2 - 0)."""
    assert agreement([(1, 1), (3, 2), (2, 2)]).tau == pytest.approx(2 / 6**0.5)
    assert agreement([(1, 3), (2, 2), (3, 1)]).tau == -1
    assert agreement([(1, 3), (2, 3)]).tau is None


def test_interval_is_that_of_resampled_rows(monkeypatch):
    monkeypatch.setattr(module, "RESAMPLES", 300)
    found = agreement(list(zip(OURS, PAPERS, strict=True)))
    drawn = np.random.default_rng(12345).integers(0, 7, (300, 7))
    ours, papers = np.array(OURS), np.round(PAPERS, 2)
    taus = [stats.kendalltau(ours[i], papers[i]).statistic for i in drawn]
    expected = np.nanquantile(taus, [0.025, 0.975])
    assert found.interval == pytest.approx(tuple(expected))


def test_few_rows_have_no_interval_and_none_no_agreement():
    assert agreement(list(zip(OURS, PAPERS, strict=True))[:4]).interval is None
    assert agreement([(None, 1.0), (1.0, None)]) is None
