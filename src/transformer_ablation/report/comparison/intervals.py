"""Whole numbers in buckets: lengths of sentences, frequencies of words."""

import bisect
from collections.abc import Sequence
from typing import NamedTuple


class Bucket(NamedTuple):
    """Numbers from ``low`` to ``high``; None is no end."""

    low: int
    high: int | None

    @property
    def label(self) -> str:
        """``5-9``, ``1``, or ``1000+``."""
        if self.high is None:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def buckets(starts: Sequence[int]) -> list[Bucket]:
    """Buckets from 0 on; a new one begins at each of ``starts``, which ascend."""
    lows = [0, *starts]
    highs = [start - 1 for start in starts]
    return [Bucket(*ends) for ends in zip(lows, [*highs, None], strict=True)]


def place(starts: Sequence[int], number: int) -> int:
    """Which of the buckets a number belongs to."""
    return bisect.bisect_right(starts, number)
