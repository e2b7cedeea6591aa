"""Times of repeated work and what is said of them."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Clock = Callable[[], float]


class Spread(NamedTuple):
    """A median with its spread: the quartiles, and the smallest and largest value."""

    count: int
    median: float
    low: float
    high: float
    smallest: float
    largest: float


def spread(values: Sequence[float]) -> Spread:
    """Median, quartiles and extremes; ``low`` and ``high`` are the quartiles.

    Raises:
      ValueError: if there is no value.
    """
    if not values:
        raise ValueError("there is no value to summarise")
    low, median, high = (
        statistics.quantiles(values, n=4, method="inclusive")
        if len(values) > 1
        else [values[0]] * 3
    )
    return Spread(len(values), median, low, high, min(values), max(values))


def timed(call: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Seconds of one call, which must wait for its own result."""
    start = clock()
    call()
    return clock() - start


def repeat(
    call: Callable[[], object],
    seconds: float,
    least: int = 3,
    clock: Clock = time.perf_counter,
) -> list[float]:
    """Seconds of each of several calls: at least ``least``, until ``seconds`` are up.

    ``call`` must wait for its own result.
    """
    (times,) = in_turn([call], seconds, least, clock)
    return times


def in_turn(
    calls: Sequence[Callable[[], object]],
    seconds: float,
    least: int = 3,
    clock: Clock = time.perf_counter,
) -> list[list[float]]:
    """Seconds of several pieces of work, each called once in every round.

    What slows the machine down for a while then slows all of them. Rounds are at
    least ``least`` and go on until ``seconds`` are up.
    """
    found: list[list[float]] = [[] for _ in calls]
    start = clock()
    while len(found[0]) < least or clock() - start < seconds:
        for times, call in zip(found, calls, strict=True):
            times.append(timed(call, clock))
    return found


def ratios(over: Sequence[float], under: Sequence[float]) -> Spread:
    """The quotients of two measurements, round by round."""
    return spread([a / b for a, b in zip(over, under, strict=True)])
