"""How operations and time of a layer grow with the length and the width (Table 1)."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from transformer_ablation.benchmark import timing
from transformer_ablation.benchmark.program import Program, compiled
from transformer_ablation.model.layer_types import Layer, drawn

LEAST_ROUNDS, MOST_ROUNDS = 3, 30
RESAMPLES = 2000


class Size(NamedTuple):
    """Length and width."""

    n: int
    d: int


class Point(NamedTuple):
    """One layer at one size: costs of one sequence; medians over ``rounds``.

    ``seconds`` and ``cpu_seconds`` are None where it was not run; ``note`` says why.
    """

    n: int
    d: int
    flops: float
    sequential: int | None
    seconds: float | None
    cpu_seconds: float | None
    rounds: int
    note: str | None = None


class Power(NamedTuple):
    """The exponent of a size: over all points with an interval, and over the last.

    ``low`` and ``high`` hold 95% of the slopes of resampled points: how far the points
    are from one power, not how they would vary if measured again. ``last`` is of the
    upper half of the points, where what does not grow weighs least.
    """

    exponent: float
    low: float
    high: float
    last: float
    points: int


def power(sizes: Sequence[float], values: Sequence[float | None]) -> Power | None:
    """The least-squares slope of log value against log size; None of two points.

    A value of None or 0 is left out.
    """
    pairs = [(s, v) for s, v in zip(sizes, values, strict=True) if v]
    if len(pairs) < 3:
        return None
    x, y = np.log(np.asarray(pairs, float)).T
    draws = np.random.default_rng(0).integers(len(x), size=(RESAMPLES, len(x)))
    draws = draws[(x[draws] != x[draws][:, :1]).any(axis=1)]
    low, high = np.quantile(_slopes(x[draws], y[draws]), [0.025, 0.975])
    upper = len(x) // 2 if len(x) > 3 else 1
    return Power(
        *map(float, (_slopes(x, y), low, high, _slopes(x[upper:], y[upper:]))), len(x)
    )


def _slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x = x - x.mean(axis=-1, keepdims=True)
    return (x * y).sum(axis=-1) / (x * x).sum(axis=-1)


class Budget(NamedTuple):
    """Seconds for the rounds of one size, each layer's share; and for one call.

    ``memory`` is what a call may take, in bytes.
    """

    seconds: float
    most: float
    memory: float = math.inf


Clocks = tuple[timing.Clock, timing.Clock]


class _Ready(NamedTuple):
    call: Callable[[], Any]
    program: Program


def measure(
    layers: Mapping[str, Callable[[int], Layer]],
    sizes: Sequence[Size],
    budget: Budget,
    tell: Callable[[str], None] = lambda line: None,
    batch: int = 1,
    clocks: Clocks = (time.perf_counter, time.process_time),
) -> dict[str, list[Point]]:
    """Points by name, sizes from small to large; ``layers[name](d)`` makes one.

    At each size all layers are timed in alternation. A layer that would by its last
    point and its operations take longer than ``budget.most`` a call is not run, nor
    is one whose program needs more than ``budget.memory``.
    """
    found: dict[str, list[Point]] = {name: [] for name in layers}
    for size in sizes:
        tell(f"n = {size.n:,}, d = {size.d:,}")
        ready = {
            name: _ready(make(size.d), size, batch) for name, make in layers.items()
        }
        notes = {
            name: _too_large(each.program.memory, budget.memory)
            or _too_long(found[name], each.program.flops / batch, batch, budget.most)
            for name, each in ready.items()
        }
        run = [name for name, note in notes.items() if note is None]
        times = _rounds([ready[name].call for name in run], budget.seconds, clocks)
        spent = dict(zip(run, times, strict=True))
        for name, each in ready.items():
            medians = np.median(spent[name], axis=0) / batch if name in spent else None
            found[name].append(
                Point(
                    *size,
                    each.program.flops / batch,
                    each.program.sequential,
                    *((None, None) if medians is None else map(float, medians)),
                    len(spent.get(name, ())),
                    notes[name],
                )
            )
    return found


def _ready(layer: Layer, size: Size, batch: int) -> _Ready:
    shapes = layer.parameters, *layer.inputs(batch, size.n)
    given = jax.device_put(drawn(shapes))
    program = compiled(layer.apply, *given)
    return _Ready(lambda: jax.block_until_ready(program.run(*given)), program)


def _too_large(memory: int, most: float) -> str | None:
    if memory <= most:
        return None
    needed, there = (f"{size / 2**30:,.1f} GiB" for size in (memory, most))
    return f"not timed: a call would take {needed} of memory, over {there}"


def _too_long(points: list[Point], flops: float, batch: int, most: float) -> str | None:
    timed = [point for point in points if point.seconds]
    if not timed:
        return None
    expected = batch * timed[-1].seconds * max(1.0, flops / timed[-1].flops)
    if expected <= most:
        return None
    return f"not timed: a call would take some {expected:.0f} s, over {most:g}"


def _rounds(
    calls: Sequence[Callable[[], Any]], seconds: float, clocks: Clocks
) -> list[list[tuple[float, ...]]]:
    """What each clock says of each call, in rounds of all calls after one of each."""
    for call in calls:
        call()
    found: list[list[tuple[float, ...]]] = [[] for _ in calls]
    start, wall = clocks[0](), clocks[0]
    for done in range(MOST_ROUNDS if calls else 0):
        if done >= LEAST_ROUNDS and wall() - start >= seconds * len(calls):
            break
        for times, call in zip(found, calls, strict=True):
            before = [clock() for clock in clocks]
            call()
            times.append(tuple(c() - b for c, b in zip(clocks, before, strict=True)))
    return found
