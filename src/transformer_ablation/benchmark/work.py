"""What an update works on: batches by shape, their real tokens, their operations."""

from typing import NamedTuple

from transformer_ablation.config import ModelConfig
from transformer_ablation.data.batches import Batch, TrainBatches
from transformer_ablation.data.buckets import Shape
from transformer_ablation.model.accounting import TRAINING_OVER_FORWARD, forward_flops

# Batches of one shape differ only in how full they are.
BATCHES_PER_SHAPE = 4


class Work(NamedTuple):
    """Pairs and real tokens, padding left out, as a mean over some updates."""

    pairs: float
    source_tokens: float
    target_tokens: float


class Sample(NamedTuple):
    """Some arranged batches of one shape, and how many an epoch has."""

    shape: Shape
    updates_per_epoch: int
    batches: list[Batch]
    work: Work


def samples(batches: TrainBatches, num_devices: int) -> list[Sample]:
    """The first batches of each shape in use, from short to long."""
    counts = batches.updates_by_shape
    found: dict[Shape, list[tuple[int, Batch]]] = {shape: [] for shape in counts}
    missing = sum(min(BATCHES_PER_SHAPE, n) for n in counts.values())
    for update in range(batches.updates_per_epoch):
        if not missing:
            break
        batch = batches.batch(update)
        rows, source_length = batch.source.shape
        kept = found[Shape(rows, source_length, batch.target.shape[1])]
        if len(kept) < BATCHES_PER_SHAPE:
            kept.append((len(batches.indices(update)), batch))
            missing -= 1
    return [
        Sample(
            shape,
            counts[shape],
            [batches.arrange(batch, num_devices) for _, batch in kept],
            mean_work(kept),
        )
        for shape, kept in found.items()
    ]


def mean_work(counted: list[tuple[int, Batch]]) -> Work:
    """The mean over batches, each with its number of pairs."""
    n = len(counted)
    return Work(
        sum(pairs for pairs, _ in counted) / n,
        sum(batch.source_tokens for _, batch in counted) / n,
        sum(batch.target_tokens for _, batch in counted) / n,
    )


def training_flops(model: ModelConfig, vocabulary_size: int, work: Work) -> float:
    """Operations of the matrix products of one update, of its real tokens alone.

    Attention is counted for pairs of the mean length.
    """
    forward = forward_flops(
        model,
        vocabulary_size,
        work.source_tokens,
        work.target_tokens,
        work.source_tokens / work.pairs,
        work.target_tokens / work.pairs,
    )
    return TRAINING_OVER_FORWARD * forward


class Rates(NamedTuple):
    """Real tokens and model operations a second."""

    source_tokens_per_second: float
    target_tokens_per_second: float
    flops_per_second: float


def rates(work: Work, flops: float, seconds: float) -> Rates:
    """What one update does in so many seconds."""
    return Rates(
        work.source_tokens / seconds, work.target_tokens / seconds, flops / seconds
    )


def epoch_rates(parts: list[tuple[int, Work, float, float]]) -> tuple[float, Rates]:
    """Seconds and rates of an epoch: (updates, work, operations, seconds) by shape."""
    seconds = sum(n * time for n, _, _, time in parts)
    work = Work(
        *(
            sum(n * getattr(each, name) for n, each, _, _ in parts)
            for name in Work._fields
        )
    )
    flops = sum(n * each for n, _, each, _ in parts)
    return seconds, rates(work, flops, seconds)
