"""Which lengths share a row, so that hardly a position of a batch is padding.

Rows are filled from the counts of each pair of lengths (histogram packing, Krell et
al. 2021), so the work grows with the lengths there are and not with the corpus.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer_ablation.data import storage
from transformer_ablation.data.buckets import TARGET_WEIGHT

# Room of a source row over what the target's row would need on average.
_SLACK = (1.0, 1.04, 1.1, 1.18)
_RULES = 1  # of this file; raised whenever a plan of the same lengths is another


class Slots(NamedTuple):
    """Places for pairs: slot i, in row ``rows[i]``, is for a pair of one length kind.

    Attributes:
      kinds: numbers of the pair of lengths that a slot holds.
      rows: int64, ascending.
      row_count: how many rows there are.
    """

    kinds: np.ndarray
    rows: np.ndarray
    row_count: int


class RowPlan(NamedTuple):
    """Kinds of rows of one shape, each as often as the corpus needs it.

    Attributes:
      source_length, target_length: of the rows.
      kinds: int32, numbers of pairs of lengths: what one row of each kind holds.
      sizes: int32, one a kind of row: pairs in it.
      rows: int64, one a kind of row: how many of them there are.
    """

    source_length: int
    target_length: int
    kinds: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray

    @property
    def row_count(self) -> int:
        """Rows of all kinds."""
        return int(self.rows.sum())

    def slots(self) -> Slots:
        """The slots of all rows, one kind of row after another."""
        held: np.ndarray = np.repeat(self.sizes, self.rows)
        # What a row holds stands in `kinds` so much further on than the slot itself.
        first = np.cumsum(self.sizes) - self.sizes
        shift: np.ndarray = np.repeat(first, self.rows)
        shift -= np.cumsum(held) - held
        numbers: np.ndarray = np.repeat(np.arange(len(held)), held)
        places = np.arange(len(numbers)) + np.repeat(shift, held)
        return Slots(self.kinds[places], numbers, len(held))


def plan_rows(
    source_lengths: np.ndarray, target_lengths: np.ndarray, target_room: int
) -> RowPlan:
    """Rows of ``target_room`` for all pairs, with the fewest positions on both sides.

    Raises:
      ValueError: if a pair is longer than a row.
    """
    longest = int(max(source_lengths.max(), target_lengths.max()))
    if longest > target_room:
        raise ValueError(
            f"a pair of {longest} ids on a side does not fit into rows of "
            f"packed_length = {target_room}"
        )
    kinds, counts, _ = length_kinds(source_lengths, target_lengths)
    source, target = counts @ kinds
    lengths = {
        max(int(kinds[:, 0].max()), round(room))
        for room in (slack * target_room * source / target for slack in _SLACK)
    }
    plans = [pack(kinds, counts, length, target_room) for length in lengths]

    def cost(plan: RowPlan) -> tuple[int, int]:
        positions = plan.source_length + TARGET_WEIGHT * target_room
        return plan.row_count * positions, plan.source_length

    return min(plans, key=cost)


def stored_plan(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    target_room: int,
    cache: Path,
) -> RowPlan:
    """What ``plan_rows`` gives, made once for a corpus and kept in the cache."""
    kinds, counts, _ = length_kinds(source_lengths, target_lengths)
    table = np.column_stack([kinds, counts]).tolist()
    key = storage.content_key([_RULES, target_room, table])
    folder = storage.place(cache, "rows", key[:32])
    arrays = ("kinds", "sizes", "rows")

    def fill(folder: Path) -> dict:
        plan = plan_rows(source_lengths, target_lengths, target_room)
        for name in arrays:
            np.save(folder / f"{name}.npy", getattr(plan, name), allow_pickle=False)
        return {"source_length": plan.source_length}

    facts = storage.read(folder)
    if facts is None:
        facts = storage.publish(folder, fill, digests=True)
    found = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in arrays)
    return RowPlan(facts["source_length"], target_room, *found)


def length_kinds(
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


def pack(
    kinds: np.ndarray, counts: np.ndarray, source_room: int, target_room: int
) -> RowPlan:
    """Rows for ``counts[i]`` pairs of lengths ``kinds[i]`` [kinds, 2]: best fit.

    Long pairs come first; each goes where the least room is left beside it.
    """
    entries = _Entries(1 / source_room, 1 / target_room)
    share = kinds / (source_room, target_room)
    for kind in np.lexsort((share.sum(axis=1), share.max(axis=1)))[::-1].tolist():
        left = int(counts[kind])
        source, target = kinds[kind].tolist()
        while left:
            source_free, target_free, rows, held = entries.take(source, target) or (
                source_room,
                target_room,
                left,
                (),
            )
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
    one: np.ndarray = np.array([x for held in entries.held for x in held], np.int32)
    sizes = np.array([sum(n for _, n in held) for held in entries.held], np.int32)
    pattern: np.ndarray = np.repeat(one[:, 0], one[:, 1])
    often = entries.rows[: entries.number]
    return RowPlan(source_room, target_room, pattern, sizes, often)


class _Entries:
    """Kinds of rows: the room left in them, how many there are, what they hold.

    Only those that are there take part in a search, so arrays stay short.
    """

    def __init__(self, source_weight: float, target_weight: float) -> None:
        """Weights of a position of either side in the room that is left."""
        self.number = 0
        self.source_free: np.ndarray = np.zeros(64, np.int32)
        self.target_free: np.ndarray = np.zeros(64, np.int32)
        self.room: np.ndarray = np.zeros(64)
        self.rows: np.ndarray = np.zeros(64, np.int64)
        self.held: list[tuple[tuple[int, int], ...]] = []  # (kind, copies) of a row
        self._weights = source_weight, target_weight

    def add(self, source_free: int, target_free: int, rows: int, held: tuple) -> None:
        n = self.number
        if n == len(self.rows):
            for name in ("source_free", "target_free", "room", "rows"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        source_weight, target_weight = self._weights
        self.source_free[n] = source_free
        self.target_free[n] = target_free
        self.room[n] = source_free * source_weight + target_free * target_weight
        self.rows[n] = rows
        self.held.append(held)
        self.number += 1

    def take(self, source: int, target: int) -> tuple[int, int, int, tuple] | None:
        """Removes and returns the entry with the least room that holds a pair."""
        n = self.number
        if not n:
            return None
        fits = self.source_free[:n] >= source
        fits &= self.target_free[:n] >= target
        i = int(np.where(fits, self.room[:n], np.inf).argmin())
        if not fits[i]:
            return None
        found = int(self.source_free[i]), int(self.target_free[i]), int(self.rows[i])
        held = self.held[i]
        for array in (self.source_free, self.target_free, self.room, self.rows):
            array[i] = array[n - 1]
        self.held[i] = self.held[-1]
        self.held.pop()
        self.number -= 1
        return *found, held
