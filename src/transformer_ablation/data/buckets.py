"""Shapes of batches: few of them, with little padding."""

from typing import NamedTuple

import numpy as np

# A target position costs about twice a source position: the decoder has a third
# sublayer and the projection onto the vocabulary.
TARGET_WEIGHT = 2


class Shape(NamedTuple):
    """Size of a batch over all devices and accumulation steps."""

    rows: int
    source_length: int
    target_length: int


class Selection(NamedTuple):
    """One batch: the number of its shape, its pairs, and the row of each pair."""

    shape: int
    pairs: np.ndarray
    rows: np.ndarray


class BucketedRows:
    """Batches of pairs of similar length, one pair a row (section 5.1).

    What does not fill a batch of its bucket moves up to the next, so only the last
    bucket has a batch that is not full.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        *,
        tokens_per_batch: int,
        length_buckets: int,
        accumulation_steps: int,
    ):
        """Raises ValueError if a row of a bucket does not fit the budget."""
        buckets = choose_buckets(source_lengths, target_lengths, length_buckets)
        self.shapes = [
            Shape(choose_rows(tokens_per_batch, t, accumulation_steps), s, t)
            for s, t in buckets
        ]
        of_pair = assign(source_lengths, target_lengths, buckets)
        # Numbers of pairs, all of an epoch and more: int32 takes half the memory.
        self._members: list[np.ndarray] = [
            np.flatnonzero(of_pair == k).astype(np.int32) for k in range(len(buckets))
        ]
        self.counts = self._batches_by_bucket()

    def epoch(self, random: np.random.Generator) -> list[Selection]:
        """The batches of an epoch, in order."""
        batches = []
        moved: np.ndarray = np.zeros(0, np.int32)
        for k, members in enumerate(self._members):
            # Those that moved up come first, so that none moves up for ever.
            pool = np.concatenate([moved, random.permutation(members)])
            rows = self.shapes[k].rows
            full = self.counts[k] * rows
            batches += [(k, pool[i : i + rows]) for i in range(0, full, rows)]
            moved = pool[full:]
        shuffled = (batches[i] for i in random.permutation(len(batches)))
        places = np.arange(max(shape.rows for shape in self.shapes))
        return [Selection(k, pairs, places[: len(pairs)]) for k, pairs in shuffled]

    def _batches_by_bucket(self) -> list[int]:
        """Batches of each bucket in an epoch, the same in every epoch."""
        counts, moved = [], 0
        for shape, members in zip(self.shapes, self._members, strict=True):
            full, moved = divmod(moved + len(members), shape.rows)
            counts.append(full)
        counts[-1] += moved > 0
        return counts


def choose_buckets(
    source_lengths: np.ndarray, target_lengths: np.ndarray, count: int
) -> list[tuple[int, int]]:
    """At most ``count`` nested (source length, target length), the last holds all.

    A pair goes into the first bucket that holds both of its sides, so one with a
    source out of the ordinary moves up. Starts from equal shares of the pairs, then
    moves one bucket at a time to where the padded positions are fewest.
    """
    below = _pairs_within(source_lengths, target_lengths)
    buckets = list(
        zip(_shares(below[:, -1], count), _shares(below[-1], count), strict=True)
    )
    while True:
        improved = _improve(buckets, below)
        if improved == buckets:
            break
        buckets = improved
    held = [0, *(int(below[bucket]) for bucket in buckets)]
    return [b for k, b in enumerate(buckets) if held[k + 1] > held[k]]


def assign(
    source_lengths: np.ndarray, target_lengths: np.ndarray, buckets: list
) -> np.ndarray:
    """The number of the first bucket that holds each pair."""
    source_length, target_length = buckets[-1]
    table: np.ndarray = np.zeros((source_length + 1, target_length + 1), np.uint8)
    for k, (s, t) in reversed(list(enumerate(buckets))):
        table[: s + 1, : t + 1] = k
    return table[source_lengths, target_lengths]


def choose_rows(
    tokens_per_batch: int, target_length: int, accumulation_steps: int
) -> int:
    """Rows of a batch: whole accumulation steps, even on 8 devices where cheap.

    The devices there are play no part, so the sentences of an update never
    depend on them. Where rows are short enough for it, 98% of the budget is used.
    """
    rows = tokens_per_batch // target_length
    steps = [n * accumulation_steps for n in (8, 4, 2, 1)]
    choices = [rows // step * step for step in steps]
    if choices[-1] > 0:
        least = (0.98 * tokens_per_batch / target_length, 0.96 * rows, choices[-1])
        return next(n for few in least for n in choices if n >= few)
    raise ValueError(
        f"{tokens_per_batch} tokens cannot hold a target of {target_length} in each "
        f"of {accumulation_steps} accumulation steps"
    )


def _pairs_within(source_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    """int64 [s, t]: pairs of at most s source and t target ids."""
    shape = (source_lengths.max() + 1, target_lengths.max() + 1)
    cells = np.ravel_multi_index((source_lengths, target_lengths), shape)
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return counts.cumsum(axis=0).cumsum(axis=1)


def _shares(below: np.ndarray, count: int) -> list[int]:
    """Lengths that cut the pairs into ``count`` equal shares, the last holds all.

    ``below[n]`` pairs have a length of at most n. These are the quantiles by numpy's
    method "higher", from counts: millions of lengths are not sorted for them.
    """
    ranks: np.ndarray = np.ceil((below[-1] - 1) * (np.arange(1, count + 1) / count))
    return [int(np.searchsorted(below, rank, side="right")) for rank in ranks]


def _improve(buckets: list, below: np.ndarray) -> list:
    """Each bucket but the last put at its best place between its neighbours."""
    buckets = list(buckets)
    for k in range(len(buckets) - 1):
        s0, t0 = buckets[k - 1] if k else (0, 0)
        s1, t1 = buckets[k + 1]
        inside = below[s0 : s1 + 1, t0 : t1 + 1]
        s = np.arange(s0, s1 + 1)[:, None]
        t = np.arange(t0, t1 + 1)
        cost = (inside - below[s0, t0]) * (s + TARGET_WEIGHT * t)
        cost += (below[s1, t1] - inside) * (s1 + TARGET_WEIGHT * t1)
        i, j = (buckets[k][0] - s0, buckets[k][1] - t0)
        best = np.unravel_index(np.argmin(cost), cost.shape)
        if cost[best] < cost[i, j]:
            buckets[k] = (int(best[0]) + s0, int(best[1]) + t0)
    return buckets
