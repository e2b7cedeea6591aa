"""Whether our differences to base go the way of the paper's."""

from collections.abc import Sequence
from typing import Any, NamedTuple

RESAMPLES = 10_000
SEED = 12345
FEWEST = 5  # rows below which resampling rows tells nothing


class Agreement(NamedTuple):
    """Of one quantity over the rows that both have a difference for.

    ``signed`` are the rows in which the paper has a difference at all, ``same`` those
    of them whose sign is ours too. ``tau`` is Kendall's tau-b, None where one side is
    all ties; ``interval`` its 95% interval, None for fewer than ``FEWEST`` rows.
    """

    rows: int
    signed: int
    same: int
    tau: float | None
    interval: tuple[float, float] | None


def same_sign(ours: float | None, papers: float | None) -> bool | None:
    """Whether the signs are one; None where either is not known or the paper's is 0."""
    if ours is None or papers is None or printed(papers) == 0:
        return None
    return ours * papers > 0


def printed(difference: float) -> float:
    """A difference of printed numbers, without the rounding of binary fractions."""
    return round(difference, 4)


def agreement(pairs: Sequence[tuple[float | None, float | None]]) -> Agreement | None:
    """Of (our difference, the paper's) a row; None where no row has both.

    The interval is that of the percentile bootstrap: rows are drawn with replacement
    ``RESAMPLES`` times from numpy's generator with seed ``SEED``, and resamples in
    which one side is all ties are left out.
    """
    known = [(x, printed(y)) for x, y in pairs if x is not None and y is not None]
    if not known:
        return None
    import numpy as np

    signs = [same_sign(x, y) for x, y in known if y != 0]
    ours, papers = np.array(known, dtype=np.float64).T
    interval = None
    if len(known) >= FEWEST:
        rng = np.random.default_rng(SEED)
        drawn = rng.integers(0, len(known), (RESAMPLES, len(known)))
        taus = _tau_b(ours[drawn], papers[drawn])
        taus = taus[np.isfinite(taus)]
        if len(taus):
            low, high = np.quantile(taus, [0.025, 0.975])
            interval = float(low), float(high)
    tau = float(_tau_b(ours[None], papers[None])[0])
    return Agreement(
        len(known),
        len(signs),
        sum(bool(sign) for sign in signs),
        tau if tau == tau else None,  # NaN: one side is all ties
        interval,
    )


def _tau_b(x_BN: Any, y_BN: Any) -> Any:
    """Kendall's tau-b of each of B pairs of N values; NaN where one side is all ties.

    Concordant minus discordant pairs, over the geometric mean of the pairs that are
    no ties on either side (Kendall 1945).
    """
    import numpy as np

    first, second = np.triu_indices(x_BN.shape[1], 1)
    x_BP, y_BP = (np.sign(v[:, first] - v[:, second]) for v in (x_BN, y_BN))
    free = np.abs(x_BP).sum(1) * np.abs(y_BP).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (x_BP * y_BP).sum(1) / np.sqrt(free)
