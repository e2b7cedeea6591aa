"""Batches of a fixed token budget (section 5.1) in an order anyone can recompute."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from transformer_ablation.config import Config
from transformer_ablation.data.buckets import BucketedRows, Selection, Shape
from transformer_ablation.data.packing import PackedRows
from transformer_ablation.data.ragged import TokenizedSplit
from transformer_ablation.data.row_plan import RowPlan
from transformer_ablation.vocabulary import PAD

_ORDER = 1  # purpose of the random numbers drawn here, beside seed and epoch
_EPOCHS_KEPT = 2
# Up to so many batches of a split are evaluated in one shape: compiling another
# costs more than the padding it saves.
_FEW_BATCHES = 16
_MULTIPLE = 8
# Longer sentences are evaluated apart, with a quarter of the rows for every doubling:
# then not even attention, which grows with the square of the length, needs more
# memory than it does for a whole batch of this length.
_ORDINARY_LENGTH = 256


class Batch(NamedTuple):
    """Padded ids, int32, and how many of them are real.

    ``source`` and ``target`` are [rows, length], or [devices, accumulation steps,
    rows, length] once arranged. A sequence ends in EOS; the rest is PAD.
    """

    source: np.ndarray
    target: np.ndarray
    source_tokens: int
    target_tokens: int


class TrainBatches:
    """Updates 0, 1, 2, ... of training: a function of data, settings and seed.

    An epoch holds every pair exactly once, and at most one batch that is not full.
    """

    def __init__(
        self,
        tokens: TokenizedSplit,
        *,
        tokens_per_batch: int,
        length_buckets: int,
        packed_length: int | None,
        max_train_length: int,
        accumulation_steps: int,
        seed: int,
        plan: RowPlan | None = None,
    ):
        """``tokens_per_batch`` counts padded target positions over all devices.

        Rows of ``packed_length`` hold several pairs; None puts one into a row, in
        ``length_buckets`` shapes. ``plan`` is that of the packed rows, if it is there.

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
        self._tokens = tokens
        self._accumulation_steps = accumulation_steps
        self._seed = seed
        self._rows: BucketedRows | PackedRows
        if packed_length is None:
            self._rows = BucketedRows(
                source,
                target,
                tokens_per_batch=tokens_per_batch,
                length_buckets=length_buckets,
                accumulation_steps=accumulation_steps,
            )
        else:
            self._rows = PackedRows(
                source,
                target,
                tokens_per_batch=tokens_per_batch,
                packed_length=packed_length,
                accumulation_steps=accumulation_steps,
                plan=plan,
            )
        self._epochs: dict[int, list[Selection]] = {}

    @property
    def shapes(self) -> list[Shape]:
        """The shapes in use, from short to long; each is compiled once."""
        return [shape for shape, n in self._counted() if n]

    @property
    def updates_by_shape(self) -> dict[Shape, int]:
        """How many batches of an epoch have each of the shapes in use."""
        return {shape: n for shape, n in self._counted() if n}

    @property
    def updates_per_epoch(self) -> int:
        """Batches that hold every pair once."""
        return sum(self._rows.counts)

    def padding(self) -> dict[str, float]:
        """Share of positions of an epoch that hold PAD, by side."""
        used = self._counted()
        sources = sum(n * shape.rows * shape.source_length for shape, n in used)
        targets = sum(n * shape.rows * shape.target_length for shape, n in used)
        return {
            "source": 1 - self._tokens.source.token_count / sources,
            "target": 1 - self._tokens.target.token_count / targets,
        }

    def indices(self, update: int) -> np.ndarray:
        """Numbers of the pairs of an update."""
        return self._at(update).pairs

    def batch(self, update: int) -> Batch:
        """The batch of an update, over all devices."""
        number, pairs, rows = self._at(update)
        shape, taken = self._rows.shapes[number], self._tokens.take(pairs)
        return Batch(
            taken.source.laid_out(rows, shape.rows, shape.source_length),
            taken.target.laid_out(rows, shape.rows, shape.target_length),
            taken.source.token_count,
            taken.target.token_count,
        )

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

    def iterate(
        self,
        start: int,
        stop: int,
        num_devices: int,
        process: int = 0,
        processes: int = 1,
    ) -> Iterator[Batch]:
        """Arranged batches of updates start to stop - 1, made ahead of their use.

        ``num_devices`` are those of each of ``processes``. A process gets the rows
        of its own devices: as many batches of the same shapes as every other, which
        together hold what one process with all the devices would get. The counts of
        tokens are those of the whole batch.
        """
        import grain  # imports JAX, which preparing data does without

        own = slice(process * num_devices, (process + 1) * num_devices)

        def make(update: int) -> Batch:
            whole = self.arrange(self.batch(update), processes * num_devices)
            return whole._replace(source=whole.source[own], target=whole.target[own])

        options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=4)
        updates = grain.MapDataset.range(start, stop)
        batches = iter(updates.map(make).to_iter_dataset(options))
        try:
            yield from batches
        finally:
            batches.close()

    def _counted(self) -> list[tuple[Shape, int]]:
        """Shapes, and how many batches of an epoch have them."""
        return list(zip(self._rows.shapes, self._rows.counts, strict=True))

    def _at(self, update: int) -> Selection:
        """The pairs of an update and their places."""
        if update < 0:
            raise ValueError(f"there is no update {update}; the first is 0")
        epoch, number = divmod(update, self.updates_per_epoch)
        batches = self._epochs.get(epoch)
        if batches is None:
            seeds = np.random.SeedSequence([self._seed, _ORDER, epoch])
            batches = self._rows.epoch(np.random.Generator(np.random.PCG64(seeds)))
            # A new dict: the thread that makes batches ahead comes here too.
            kept = list(self._epochs.items())[1 - _EPOCHS_KEPT :]
            self._epochs = {**dict(kept), epoch: batches}
        return batches[number]


def train_batches(
    config: Config, tokens: TokenizedSplit, plan: RowPlan | None = None
) -> TrainBatches:
    """The batches of a config's training, in the order of its seed."""
    return TrainBatches(
        tokens,
        tokens_per_batch=config.data.tokens_per_batch,
        length_buckets=config.data.length_buckets,
        packed_length=config.data.packed_length,
        max_train_length=config.data.max_train_length,
        accumulation_steps=config.optimizer.accumulation_steps,
        seed=config.train.seed,
        plan=plan,
    )


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
    row_multiple: int = 1,
) -> list[EvaluationBatch]:
    """Every sentence once, short ones first, in at most ``max_shapes`` shapes.

    By default a small split has one shape and a large one three. Lengths are
    rounded up to a multiple of 8, though not beyond ``longest``, so that splits
    of one corpus mostly share their shapes.

    Pairs of more than 256 ids on a side come last and have shapes of their own, one
    for each doubling, with fewer rows, a multiple of ``row_multiple``: memory does not
    grow with the longest of them, unless that alone needs more.
    """
    longer = np.maximum(tokens.source.lengths, tokens.target.lengths)
    doublings = np.searchsorted(_ORDINARY_LENGTH << np.arange(32), longer)
    batches = []
    for number in np.unique(doublings):
        members = np.flatnonzero(doublings == number)
        fewer = (rows >> 2 * int(number)) // row_multiple * row_multiple
        some = (rows, max_shapes) if number == 0 else (max(fewer, row_multiple), 1)
        batches += _batches_of(tokens, members, *some, longest)
    return batches


def _batches_of(
    tokens: TokenizedSplit,
    members: np.ndarray,
    rows: int,
    max_shapes: int | None,
    longest: int | None,
) -> list[EvaluationBatch]:
    """Some sentences of a split, by length, in batches of ``rows``."""
    source, target = tokens.source.lengths[members], tokens.target.lengths[members]
    order = members[np.lexsort((target, source))]
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
