"""Batches of a fixed token budget (section 5.1) in an order anyone can recompute."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from transformer_ablation.data.buckets import assign, choose_buckets, choose_rows
from transformer_ablation.data.ragged import TokenizedSplit
from transformer_ablation.vocabulary import PAD

_ORDER = 1  # purpose of the random numbers drawn here, beside seed and epoch
_EPOCHS_KEPT = 2
# Up to so many batches of a split are evaluated in one shape: compiling another
# costs more than the padding it saves.
_FEW_BATCHES = 16
_MULTIPLE = 8


class Batch(NamedTuple):
    """Padded ids, int32, and how many of them are real.

    ``source`` and ``target`` are [rows, length], or [devices, accumulation steps,
    rows, length] once arranged. A sequence ends in EOS; the rest is PAD.
    """

    source: np.ndarray
    target: np.ndarray
    source_tokens: int
    target_tokens: int


class Shape(NamedTuple):
    """Size of a batch over all devices and accumulation steps."""

    rows: int
    source_length: int
    target_length: int


class TrainBatches:
    """Updates 0, 1, 2, ... of training: a function of data, settings and seed.

    An epoch holds every pair exactly once. What does not fill a batch of its bucket
    moves up to the next, so only the last bucket has a batch that is not full.
    """

    def __init__(
        self,
        tokens: TokenizedSplit,
        *,
        tokens_per_batch: int,
        length_buckets: int,
        max_train_length: int,
        accumulation_steps: int,
        seed: int,
    ):
        """``tokens_per_batch`` counts padded target positions over all devices.

        Raises:
          ValueError: if there are no pairs, or one is longer than allowed.
        """
        source, target = tokens.source.lengths, tokens.target.lengths
        if len(tokens) == 0:
            raise ValueError("there are no training pairs")
        longest = int(max(source.max(), target.max())) - 1
        if longest > max_train_length:
            raise ValueError(
                f"a training pair has {longest} pieces on a side, more than "
                f"max_train_length = {max_train_length}; filter it first"
            )
        buckets = choose_buckets(source, target, length_buckets)
        self._tokens = tokens
        self._accumulation_steps = accumulation_steps
        self._seed = seed
        self._shapes = [
            Shape(choose_rows(tokens_per_batch, t, accumulation_steps), s, t)
            for s, t in buckets
        ]
        of_pair = assign(source, target, buckets)
        self._members = [np.flatnonzero(of_pair == k) for k in range(len(buckets))]
        self._counts = self._batches_by_bucket()
        self._epochs: dict[int, list[tuple[int, np.ndarray]]] = {}

    @property
    def shapes(self) -> list[Shape]:
        """The shapes in use, from short to long; each is compiled once."""
        return [s for s, n in zip(self._shapes, self._counts, strict=True) if n]

    @property
    def updates_per_epoch(self) -> int:
        """Batches that hold every pair once."""
        return sum(self._counts)

    def padding(self) -> dict[str, float]:
        """Share of positions of an epoch that hold PAD, by side."""
        used = list(zip(self._shapes, self._counts, strict=True))
        sources = sum(n * shape.rows * shape.source_length for shape, n in used)
        targets = sum(n * shape.rows * shape.target_length for shape, n in used)
        return {
            "source": 1 - len(self._tokens.source.ids) / sources,
            "target": 1 - len(self._tokens.target.ids) / targets,
        }

    def indices(self, update: int) -> np.ndarray:
        """Numbers of the pairs of an update."""
        return self._at(update)[1]

    def batch(self, update: int) -> Batch:
        """The batch of an update, over all devices."""
        bucket, indices = self._at(update)
        return _batch(self._tokens, indices, self._shapes[bucket])

    def arrange(self, batch: Batch, num_devices: int) -> Batch:
        """The batch as [devices, accumulation steps, rows, length].

        Rows of PAD are added where the rows do not divide.
        """
        parts = num_devices * self._accumulation_steps

        def split(ids_RL: np.ndarray) -> np.ndarray:
            rows, length = ids_RL.shape
            added = np.full((-rows % parts, length), PAD, np.int32)
            ids_RL = np.concatenate([ids_RL, added])
            return ids_RL.reshape(num_devices, self._accumulation_steps, -1, length)

        return batch._replace(source=split(batch.source), target=split(batch.target))

    def iterate(self, start: int, stop: int, num_devices: int) -> Iterator[Batch]:
        """Arranged batches of updates start to stop - 1, made ahead of their use."""
        import grain  # imports JAX, which preparing data does without

        def make(update: int) -> Batch:
            return self.arrange(self.batch(update), num_devices)

        options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=4)
        updates = grain.MapDataset.range(start, stop)
        batches = iter(updates.map(make).to_iter_dataset(options))
        try:
            yield from batches
        finally:
            batches.close()

    def _at(self, update: int) -> tuple[int, np.ndarray]:
        """Bucket and pairs of an update."""
        if update < 0:
            raise ValueError(f"there is no update {update}; the first is 0")
        epoch, number = divmod(update, self.updates_per_epoch)
        batches = self._epochs.get(epoch)
        if batches is None:
            batches = self._epoch(epoch)
            # A new dict: the thread that makes batches ahead comes here too.
            kept = list(self._epochs.items())[1 - _EPOCHS_KEPT :]
            self._epochs = {**dict(kept), epoch: batches}
        return batches[number]

    def _epoch(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        """The batches of an epoch as (bucket, pairs), in order."""
        seeds = np.random.SeedSequence([self._seed, _ORDER, epoch])
        random = np.random.Generator(np.random.PCG64(seeds))
        batches = []
        moved: np.ndarray = np.zeros(0, np.int64)
        for k, members in enumerate(self._members):
            # Those that moved up come first, so that none moves up for ever.
            pool = np.concatenate([moved, random.permutation(members)])
            rows = self._shapes[k].rows
            full = self._counts[k] * rows
            batches += [(k, pool[i : i + rows]) for i in range(0, full, rows)]
            moved = pool[full:]
        return [batches[i] for i in random.permutation(len(batches))]

    def _batches_by_bucket(self) -> list[int]:
        """Batches of each bucket in an epoch, the same in every epoch."""
        counts, moved = [], 0
        for shape, members in zip(self._shapes, self._members, strict=True):
            full, moved = divmod(moved + len(members), shape.rows)
            counts.append(full)
        counts[-1] += moved > 0
        return counts


class EvaluationBatch(NamedTuple):
    """Sentences ``indices`` of a split; rows beyond them hold PAD.

    ``source`` and ``target`` are int32 [rows, length].
    """

    indices: np.ndarray
    source: np.ndarray
    target: np.ndarray


def evaluation_batches(
    tokens: TokenizedSplit,
    rows: int,
    max_shapes: int | None = None,
    longest: int | None = None,
) -> list[EvaluationBatch]:
    """Every sentence once, short ones first, in at most ``max_shapes`` shapes.

    By default a small split has one shape and a large one three. Lengths are
    rounded up to a multiple of 8, though not beyond ``longest``, so that splits
    of one corpus mostly share their shapes.
    """
    order = np.lexsort((tokens.target.lengths, tokens.source.lengths))
    parts = [order[i : i + rows] for i in range(0, len(order), rows)]
    lengths = [
        (tokens.source.lengths[part].max(), tokens.target.lengths[part].max())
        for part in parts
    ]
    if max_shapes is None:
        max_shapes = 1 if len(parts) <= _FEW_BATCHES else 3
    shapes = _shared_shapes(np.array(lengths).reshape(-1, 2), max_shapes)
    shapes = np.maximum(shapes, _rounded(shapes, longest))
    return [
        EvaluationBatch(
            part,
            tokens.source.padded(part, rows, int(source_length)),
            tokens.target.padded(part, rows, int(target_length)),
        )
        for part, (source_length, target_length) in zip(parts, shapes, strict=True)
    ]


def _rounded(lengths: np.ndarray, longest: int | None) -> np.ndarray:
    """Up to a multiple of 8, at most ``longest``."""
    rounded: np.ndarray = -(-lengths // _MULTIPLE) * _MULTIPLE
    return rounded if longest is None else np.minimum(rounded, longest)


def _shared_shapes(lengths: np.ndarray, max_shapes: int) -> np.ndarray:
    """Lengths of both sides for every part: neighbours share the larger ones.

    ``lengths`` is [parts, 2]. The cuts between groups of neighbours are those with
    the fewest positions in all (dynamic programming over their ends).
    """
    parts = len(lengths)
    groups = min(max_shapes, parts)
    best = np.full((groups + 1, parts + 1), np.inf)
    cut: np.ndarray = np.zeros((groups + 1, parts + 1), np.int64)
    best[:, 0] = 0
    for end in range(1, parts + 1):
        largest = np.maximum.accumulate(lengths[:end][::-1], axis=0)[::-1]
        costs = largest.sum(axis=1) * (end - np.arange(end))
        for group in range(1, groups + 1):
            total = best[group - 1, :end] + costs
            cut[group, end] = np.argmin(total)
            best[group, end] = total[cut[group, end]]
    shapes = lengths.copy()
    end, group = parts, groups
    while end:
        start = int(cut[group, end])
        shapes[start:end] = lengths[start:end].max(axis=0)
        end, group = start, group - 1
    return shapes


def _batch(tokens: TokenizedSplit, indices: np.ndarray, shape: Shape) -> Batch:
    return Batch(
        tokens.source.padded(indices, shape.rows, shape.source_length),
        tokens.target.padded(indices, shape.rows, shape.target_length),
        int(tokens.source.lengths[indices].sum()),
        int(tokens.target.lengths[indices].sum()),
    )
