"""Batches of rows that hold several pairs each."""

import numpy as np

from transformer_ablation.data.buckets import Selection, Shape, choose_rows
from transformer_ablation.data.row_plan import (
    RowPlan,
    Slots,
    length_kinds,
    plan_rows,
)


class PackedRows:
    """Batches of rows that hold several pairs each, all of one shape.

    Which lengths share a row is fixed; which pairs of these lengths do is drawn
    anew for each epoch.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        *,
        tokens_per_batch: int,
        packed_length: int,
        accumulation_steps: int,
        plan: RowPlan | None = None,
    ):
        """``packed_length`` is the length of a target row; source rows follow.

        ``plan`` is ``plan_rows`` of the same lengths, which is made here without it.

        Raises:
          ValueError: if a pair is longer than a row, no row fits the budget, or the
            plan is of other lengths.
        """
        if plan is None:
            plan = plan_rows(source_lengths, target_lengths, packed_length)
        _, counts, self._of_pair = length_kinds(source_lengths, target_lengths)
        self._slots = plan.slots()
        planned = np.bincount(self._slots.kinds, minlength=len(counts))
        if plan.target_length != packed_length or not np.array_equal(planned, counts):
            raise ValueError("the plan of rows was made for other pairs")
        rows = choose_rows(tokens_per_batch, packed_length, accumulation_steps)
        self.shapes = [Shape(rows, plan.source_length, packed_length)]
        self.counts = [-(-plan.row_count // rows)]
        # Small numbers are sorted many times faster.
        kinds = self._slots.kinds.astype(self._of_pair.dtype)
        self._by_kind = np.argsort(kinds, kind="stable")

    def epoch(self, random: np.random.Generator) -> list[Selection]:
        """The batches of an epoch, in order; only the last may not be full."""
        slots = self._slots
        # Pairs of the same lengths, in random order, into the slots for them.
        drawn = _ascending(random.random(len(slots.rows)))
        pairs: np.ndarray = np.empty(len(drawn), np.int64)
        pairs[self._by_kind] = drawn[np.argsort(self._of_pair[drawn], kind="stable")]
        by_row, rows = _moved(slots, random.permutation(slots.row_count))
        size = self.shapes[0].rows
        cuts = np.cumsum(np.bincount(rows // size))[:-1]
        parts = zip(
            np.split(pairs[by_row], cuts), np.split(rows % size, cuts), strict=True
        )
        return [Selection(0, *part) for part in parts]


def _ascending(values: np.ndarray) -> np.ndarray:
    """Places of the values from small to large, of equal ones in their order."""
    order = np.argsort(values)  # three times faster than the sort that keeps order
    if (np.diff(values[order]) == 0).any():
        return np.argsort(values, kind="stable")
    return order


def _moved(slots: Slots, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slots row by row, and the rows of these, once row r is row ``place[r]``."""
    row_at: np.ndarray = np.empty_like(place)
    row_at[place] = np.arange(len(place))
    held = np.bincount(slots.rows, minlength=len(place))
    first = (np.cumsum(held) - held)[row_at]
    held = held[row_at]
    shift = first - (np.cumsum(held) - held)
    by_row = np.arange(len(slots.rows)) + np.repeat(shift, held)
    return by_row, np.repeat(np.arange(len(place)), held)
