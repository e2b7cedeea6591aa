"""Several pairs in one row, so that hardly a position of a batch is padding.

Rows are filled from the counts of each pair of lengths (histogram packing, Krell et
al. 2021), so the work grows with the lengths there are and not with the corpus.
"""

from typing import NamedTuple

import numpy as np

from transformer_ablation.data.buckets import (
    TARGET_WEIGHT,
    Selection,
    Shape,
    choose_rows,
)

# Room of a source row over what the target's row would need on average.
_SLACK = (1.0, 1.04, 1.1, 1.18)


class Slots(NamedTuple):
    """Places for pairs: slot i, in row ``rows[i]``, is for a pair of one length kind.

    Attributes:
      kinds: int64, numbers of the pair of lengths that a slot holds.
      rows: int64, ascending.
      row_count: how many rows there are.
    """

    kinds: np.ndarray
    rows: np.ndarray
    row_count: int


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
    ):
        """``packed_length`` is the length of a target row; source rows follow.

        Raises:
          ValueError: if a pair is longer than a row, or no row fits the budget.
        """
        longest = int(max(source_lengths.max(), target_lengths.max()))
        if longest > packed_length:
            raise ValueError(
                f"a pair of {longest} ids on a side does not fit into rows of "
                f"packed_length = {packed_length}"
            )
        kinds, counts, self._of_pair = _kinds(source_lengths, target_lengths)
        source_length, self._slots = _best_rows(kinds, counts, packed_length)
        rows = choose_rows(tokens_per_batch, packed_length, accumulation_steps)
        self.shapes = [Shape(rows, source_length, packed_length)]
        self.counts = [-(-self._slots.row_count // rows)]
        self._by_kind = np.argsort(self._slots.kinds, kind="stable")

    def epoch(self, random: np.random.Generator) -> list[Selection]:
        """The batches of an epoch, in order; only the last may not be full."""
        slots = self._slots
        # Pairs of the same lengths, in random order, into the slots for them.
        drawn = np.argsort(random.random(len(slots.rows)), kind="stable")
        pairs: np.ndarray = np.empty(len(drawn), np.int64)
        pairs[self._by_kind] = drawn[np.argsort(self._of_pair[drawn], kind="stable")]
        by_row, rows = _moved(slots, random.permutation(slots.row_count))
        size = self.shapes[0].rows
        cuts = np.cumsum(np.bincount(rows // size))[:-1]
        parts = zip(
            np.split(pairs[by_row], cuts), np.split(rows % size, cuts), strict=True
        )
        return [Selection(0, *part) for part in parts]


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


def _kinds(
    source_lengths: np.ndarray, target_lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of lengths [kinds, 2], how many pairs have them, and the kind of each."""
    shape = (int(source_lengths.max()) + 1, int(target_lengths.max()) + 1)
    cells = np.ravel_multi_index((source_lengths, target_lengths), shape)
    counts = np.bincount(cells, minlength=shape[0] * shape[1])
    present = np.flatnonzero(counts)
    # Small numbers are sorted many times faster.
    small = np.uint16 if len(present) <= 2**16 else np.int64
    numbers: np.ndarray = np.zeros(len(counts), small)
    numbers[present] = np.arange(len(present))
    kinds = np.stack(np.unravel_index(present, shape), axis=1)
    return kinds, counts[present], numbers[cells]


def _best_rows(
    kinds: np.ndarray, counts: np.ndarray, target_room: int
) -> tuple[int, Slots]:
    """Length of the source rows, and the slots, with the fewest positions."""
    source, target = counts @ kinds
    lengths = {
        max(int(kinds[:, 0].max()), round(room))
        for room in (slack * target_room * source / target for slack in _SLACK)
    }
    found = [(length, pack(kinds, counts, length, target_room)) for length in lengths]

    def cost(length: int, slots: Slots) -> tuple[int, int]:
        return slots.row_count * (length + TARGET_WEIGHT * target_room), length

    return min(found, key=lambda pair: cost(*pair))


def pack(
    kinds: np.ndarray, counts: np.ndarray, source_room: int, target_room: int
) -> Slots:
    """Rows for ``counts[i]`` pairs of lengths ``kinds[i]`` [kinds, 2]: best fit.

    Long pairs come first; each goes where the least room is left beside it. Rows
    that hold the same lengths are one entry with a count.
    """
    entries = _Entries()
    share = kinds / (source_room, target_room)
    for kind in np.lexsort((share.sum(axis=1), share.max(axis=1)))[::-1].tolist():
        left = int(counts[kind])
        source, target = kinds[kind].tolist()
        while left:
            source_free, target_free, rows, held = entries.take(
                source, target, 1 / source_room, 1 / target_room
            ) or (source_room, target_room, left, ())
            copies = min(source_free // source, target_free // target, left)
            filled = min(rows, left // copies)
            entries.add(
                source_free - copies * source,
                target_free - copies * target,
                filled,
                (*held, (kind, copies)),
            )
            if held and rows > filled:
                entries.add(source_free, target_free, rows - filled, held)
            left -= filled * copies
    return _slots(entries.held, entries.rows[: entries.number])


class _Entries:
    """Kinds of rows: the room left in them, how many there are, what they hold.

    Only those that are there take part in a search, so arrays stay short.
    """

    def __init__(self) -> None:
        self.number = 0
        self.source_free: np.ndarray = np.zeros(64, np.int32)
        self.target_free: np.ndarray = np.zeros(64, np.int32)
        self.rows: np.ndarray = np.zeros(64, np.int64)
        self.held: list[tuple[tuple[int, int], ...]] = []  # (kind, copies) of a row

    def add(self, source_free: int, target_free: int, rows: int, held: tuple) -> None:
        if self.number == len(self.rows):
            for name in ("source_free", "target_free", "rows"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        self.source_free[self.number] = source_free
        self.target_free[self.number] = target_free
        self.rows[self.number] = rows
        self.held.append(held)
        self.number += 1

    def take(
        self, source: int, target: int, source_weight: float, target_weight: float
    ) -> tuple[int, int, int, tuple] | None:
        """Removes and returns the entry with the least room that holds a pair."""
        n = self.number
        source_free, target_free = self.source_free[:n], self.target_free[:n]
        fitting = np.flatnonzero((source_free >= source) & (target_free >= target))
        if not len(fitting):
            return None
        room = source_free[fitting] * source_weight
        room += target_free[fitting] * target_weight
        i, last = int(fitting[np.argmin(room)]), n - 1
        found = int(source_free[i]), int(target_free[i]), int(self.rows[i])
        held = self.held[i]
        for array in (source_free, target_free, self.rows):
            array[i] = array[last]
        self.held[i] = self.held[last]
        self.held.pop()
        self.number = last
        return *found, held


def _slots(held: list, rows: np.ndarray) -> Slots:
    """The slots of all rows of all entries."""
    kinds: list[np.ndarray] = []
    of_row: list[np.ndarray] = []
    first = 0
    for one, times in zip(held, rows.tolist(), strict=True):
        row: np.ndarray = np.repeat([kind for kind, _ in one], [n for _, n in one])
        kinds.append(np.tile(row, times))
        of_row.append(np.repeat(np.arange(first, first + times), len(row)))
        first += times
    return Slots(np.concatenate(kinds), np.concatenate(of_row), first)
