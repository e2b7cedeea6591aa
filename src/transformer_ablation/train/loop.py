"""The training loop: fetch, update, call hooks."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax

from transformer_ablation.train.step import Metrics, Rates, TrainState


class Diverged(RuntimeError):
    """The loss or the gradient of an update is not a finite number."""

    def __init__(self, step: int, what: str, value: float):
        self.step = step
        super().__init__(f"{what} is {value} at update {step}")


class Report(NamedTuple):
    """What is known of one finished update.

    ``waited`` are the seconds for which its batch was waited for. The norms in
    ``metrics`` are still on the device.
    """

    step: int
    metrics: Metrics
    rates: Rates
    batch: Any
    seconds: float
    waited: float


class Hook(Protocol):
    """Something done after updates: logging, evaluation, checkpoints."""

    def needs_state(self, step: int) -> bool:
        """Whether ``after`` wants the state of this update."""

    def after(self, report: Report, state: TrainState | None) -> None:
        """Called in order for every update; ``state`` is given where needed."""


class Every:
    """A hook that is given the state every ``steps`` updates and at the last.

    ``minutes`` asks for it by the clock as well. With neither, only the last.
    """

    def __init__(
        self,
        action: Callable[[int, TrainState], None],
        steps: int | None,
        last: int,
        minutes: float | None = None,
    ):
        self._action, self._steps, self._last = action, steps, last
        self._minutes = minutes
        self._time = time.monotonic()

    def needs_state(self, step: int) -> bool:
        if step == self._last or (self._steps and step % self._steps == 0):
            return True
        elapsed = time.monotonic() - self._time
        return self._minutes is not None and elapsed >= 60 * self._minutes

    def after(self, report: Report, state: TrainState | None) -> None:
        if state is not None and self.needs_state(report.step):
            self.act(report.step, state)

    def act(self, step: int, state: TrainState) -> None:
        """What is done; the clock starts again."""
        self._action(step, state)
        self._time = time.monotonic()


def train(
    state: TrainState,
    update: Callable,
    batches: Iterable[Any],
    *,
    key: jax.Array,
    rates_at: Callable[[int], Rates],
    hooks: Sequence[Hook],
    stop: threading.Event | None = None,
) -> TrainState:
    """Runs one update a batch; the first is ``state.step + 1``.

    The metrics of an update are read after the next one is dispatched, unless
    a hook wants its state. When ``stop`` is set the loop ends before another update,
    and every hook has seen the last one; it is asked once before each.

    Raises:
      Diverged: at the first loss or gradient that is not finite, before any hook
        sees it.
    """
    step = int(state.step)
    pending = None
    clock = time.monotonic()
    for batch, waited in _waiting(batches):
        if stop is not None and stop.is_set():
            break
        step += 1
        rates = rates_at(step)
        state, metrics = update(state, batch, key, rates)
        if pending is not None:
            clock = _finish(*pending, None, hooks, clock)
        pending = (step, metrics, rates, batch, waited)
        if any(hook.needs_state(step) for hook in hooks):
            clock = _finish(*pending, state, hooks, clock)
            pending = None
    if pending is not None:
        _finish(*pending, state, hooks, clock)
    return state


def _waiting(batches: Iterable[Any]) -> Iterator[tuple[Any, float]]:
    """Each batch with the seconds that it was waited for."""
    source, start = iter(batches), time.monotonic()
    for batch in source:
        yield batch, time.monotonic() - start
        start = time.monotonic()


def _finish(step, metrics, rates, batch, waited, state, hooks, clock) -> float:
    """Reads the metrics of an update and calls the hooks; returns the time."""
    numbers = jax.device_get(metrics._replace(norms=None))
    metrics = jax.tree.map(float, numbers)._replace(norms=metrics.norms)
    # A finite loss can have a gradient that spoils the parameters it made.
    for what, value in (
        ("loss", metrics.loss),
        ("gradient norm", metrics.gradient_norm),
    ):
        if not math.isfinite(value):
            raise Diverged(step, what, value)
    seconds = time.monotonic() - clock
    report = Report(step, metrics, rates, batch, seconds, waited)
    for hook in hooks:
        hook.after(report, state)
    return time.monotonic()
