"""How the cost of a token grows with one size, beside what its operations grow with.

Batches are made up and full, so no corpus is read and every position is real.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation import parallel
from transformer_ablation.benchmark import timing, work
from transformer_ablation.benchmark.decoding import Search
from transformer_ablation.benchmark.updates import Updater
from transformer_ablation.config import UNREAD, Config, replace
from transformer_ablation.data.batches import Batch
from transformer_ablation.model.accounting import forward_flops
from transformer_ablation.vocabulary import EOS

FIRST_PIECE = EOS + 1
SENTENCES = 16  # of a search


class Axis(NamedTuple):
    """``order`` is the power of the size that no part of a token's cost exceeds.

    ``fields`` are multiplied with the ``factors`` of the config's own, or set to
    them where they are counts of their own (``absolute``).
    """

    name: str
    fields: tuple[str, ...]
    factors: tuple[int, ...]
    order: int
    absolute: bool = False


WIDTHS = ("model.d_model", "model.d_ff", "model.d_k", "model.d_v")
AXES = {
    axis.name: axis
    for axis in (
        # All costs of a batch are sums over its tokens.
        Axis("batch tokens", ("data.tokens_per_batch",), (1, 2, 4, 8), 0),
        # A token is compared with every other of its row.
        Axis("length", ("data.packed_length",), (1, 2, 4, 8), 1),
        # Matrices of a width times another.
        Axis("d_model", WIDTHS, (1, 2, 4, 8), 2),
        Axis("N", ("model.num_layers", "model.decoder_layers"), (1, 2, 4), 1),
        Axis("vocabulary", ("data.vocabulary_size",), (1, 2, 4, 8), 1),
        # Every candidate has its own token, and its own past.
        Axis("beam", ("decode.beam_size",), (1, 2, 4, 8, 16), 1, absolute=True),
    )
}


class Point(NamedTuple):
    """One size of an axis: what a token costs, in seconds and in operations."""

    size: int
    tokens: int
    seconds: float
    flops: float


class Growth(NamedTuple):
    """Powers of the size: over all points, and from the last but one to the last."""

    fitted: float
    last: float


def growth(sizes: Sequence[float], values: Sequence[float]) -> Growth:
    """Slopes of log value against log size: least squares, and the last interval.

    Raises:
      ValueError: for fewer than two points.
    """
    if len(sizes) < 2:
        raise ValueError(f"{len(sizes)} points have no slope")
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(values, float))
    slope = np.polyfit(x, y, 1)[0]
    return Growth(float(slope), float((y[-1] - y[-2]) / (x[-1] - x[-2])))


def configs(base: Config, axis: Axis) -> list[tuple[int, Config]]:
    """The sizes of an axis and their configs, in rows of the length of base's."""
    length = base.data.packed_length or base.data.max_train_length + 1
    packed = {"data.packed_length": length, "data.length_buckets": 1}
    base, found = replace(base, packed), []
    unread = UNREAD[base.model.architecture]
    for factor in axis.factors:
        sizes = {
            path: factor if axis.absolute else factor * _get(base, path)
            for path in axis.fields
            if path not in unread and _get(base, path) is not None
        }
        found.append((sizes[axis.fields[0]], replace(base, sizes)))
    return found


def _get(config: Config, path: str) -> int | None:
    section, _, name = path.partition(".")
    return getattr(getattr(config, section), name)


def _rows(config: Config, devices: int) -> int:
    """Of a full batch, for each device."""
    length = config.data.packed_length
    return max(1, config.data.tokens_per_batch // (length * devices))


def batch(config: Config, devices: int) -> Batch:
    """A full batch of made-up pieces: [devices, 1, rows, length] of either side."""
    shape = (2, devices, 1, _rows(config, devices), config.data.packed_length)
    ids = np.random.default_rng(0).integers(
        FIRST_PIECE, config.data.vocabulary_size, shape, np.int32
    )
    ids[..., -1] = EOS
    return Batch(ids[0], ids[1], ids[0].size, ids[1].size)


def measure_update(model: Any, config: Config, size: int, seconds: float) -> Point:
    """The median time of updates, after one that compiles."""
    updater, given = Updater(model, config), batch(config, parallel.device_count())
    updater.update(given)
    times = timing.repeat(partial(updater.update, given), seconds)
    return _point(size, timing.spread(times).median, update_call(config))


def measure_search(model: Any, config: Config, size: int, seconds: float) -> Point:
    """The median time of searches whose hypotheses are as long as their sources."""
    params = Updater(model, config).params
    length = config.data.packed_length
    source_BS = np.random.default_rng(0).integers(
        FIRST_PIECE, config.data.vocabulary_size, (SENTENCES, length), np.int32
    )
    source_BS[:, -1] = EOS
    call = partial(
        Search(model, config.decode),
        params,
        source_BS,
        np.full(SENTENCES, length, np.int32),
    )
    call()
    median = timing.spread(timing.repeat(call, seconds)).median
    return _point(size, median, search_call(config))


class Call(NamedTuple):
    """Target tokens and operations of an update, or of a search."""

    tokens: int
    flops: float


def update_call(config: Config) -> Call:
    """Of one full batch on all devices."""
    devices, length = parallel.device_count(), config.data.packed_length
    tokens = devices * _rows(config, devices) * length
    of = work.Work(tokens / length, tokens, tokens)
    vocabulary = config.data.vocabulary_size
    return Call(tokens, work.training_flops(config.model, vocabulary, of))


def search_call(config: Config) -> Call:
    """Of ``SENTENCES`` sentences."""
    tokens = SENTENCES * config.data.packed_length
    return Call(tokens, search_flops(config, tokens, config.data.packed_length))


def search_flops(config: Config, tokens: int, length: int) -> float:
    """Operations of a search: each sentence encoded once, each candidate stepped.

    A candidate's past is half of its length on average.
    """
    # A step has products over all that its candidate has been, also with "banded".
    model = dataclasses.replace(config.model, attention_implementation="own")
    of = partial(forward_flops, model, config.data.vocabulary_size)
    encoder = of(tokens, 0, length, 0)
    return encoder + of(0, config.decode.beam_size * tokens, length, length / 2)


def _point(size: int, seconds: float, call: Call) -> Point:
    return Point(size, call.tokens, seconds / call.tokens, call.flops / call.tokens)


def measure(
    build: Callable[[Config, int], Any],
    base: Config,
    axis: Axis,
    seconds: float,
    hear: Callable[[int, float | None], None] = lambda size, left: None,
    clock: timing.Clock = time.monotonic,
) -> list[Point]:
    """The points of an axis; ``build(config, vocabulary size)`` makes the model.

    ``hear`` is told of each size before it is measured, and about how many seconds it
    and those after it will take: None for the first.
    """
    search = axis.name == "beam"
    call, of = (
        (measure_search, search_call) if search else (measure_update, update_call)
    )
    found: list[Point] = []
    spent: list[float] = []
    asked = configs(base, axis)
    for number, (size, config) in enumerate(asked):
        flops = [of(other).flops for _, other in asked[number:]]
        hear(size, to_go(found, spent, flops, seconds))
        start = clock()
        model = build(config, config.data.vocabulary_size)
        found.append(call(model, config, size, seconds))
        parallel.forget_programs()
        spent.append(clock() - start)
    return found


def to_go(
    found: Sequence[Point],
    spent: Sequence[float],
    flops: Sequence[float],
    seconds: float,
) -> float | None:
    """Seconds for points with calls of so many ``flops``; None without one to go by.

    Calls are as fast an operation as the last point's. What the points took in all,
    ``spent``, beside their calls is compiling, and as long again at most.
    """
    if not found:
        return None

    def calls(each: float) -> float:  # one to compile, and the rounds
        return each + max(3 * each, seconds + each)

    apart = max(
        max(0.0, all_ - calls(p.seconds * p.tokens))
        for all_, p in zip(spent, found, strict=True)
    )
    rate = found[-1].seconds / found[-1].flops
    return sum(apart + calls(each * rate) for each in flops)
