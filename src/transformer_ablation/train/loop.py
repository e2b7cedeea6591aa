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

    ``seconds`` are those since the update before it was done, or since the hooks that
    had the state of that; ``compiled`` how many of them went by with compiling, and
    ``waited`` how many with waiting for its batch. The norms in ``metrics`` are still
    on the device.
    """

    step: int
    metrics: Metrics
    rates: Rates
    batch: Any
    seconds: float
    compiled: float
    waited: float


class _Mark(NamedTuple):
    """A time, and the seconds of compiling until then."""

    time: float
    compiled: float


class _Pending(NamedTuple):
    """An update that is dispatched; ``done`` is when it was, if that is known."""

    step: int
    metrics: Metrics
    rates: Rates
    batch: Any
    waited: float
    done: _Mark | None


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
    compiling: Callable[[], float] = lambda: 0.0,
) -> TrainState:
    """Runs one update a batch; the first is ``state.step + 1``.

    ``compiling`` gives the seconds of compiling so far.

    The metrics of an update are read after the next one is dispatched, unless
    a hook wants its state. When ``stop`` is set the loop ends before another update,
    and every hook has seen the last one; it is asked once before each.

    Raises:
      Diverged: at the first loss or gradient that is not finite, before any hook
        sees it.
    """

    def now() -> _Mark:
        return _Mark(time.monotonic(), compiling())

    step = int(state.step)
    pending = None
    mark = now()
    for batch, waited in _waiting(batches):
        if stop is not None and stop.is_set():
            break
        step += 1
        rates = rates_at(step)
        state, metrics = update(state, batch, key, rates)
        done = now() if _is_done(metrics) else None
        if pending is not None:
            mark = _finish(pending, None, hooks, mark, now)
        pending = _Pending(step, metrics, rates, batch, waited, done)
        if any(hook.needs_state(step) for hook in hooks):
            _finish(pending, state, hooks, mark, now)
            pending, mark = None, now()
    if pending is not None:
        _finish(pending, state, hooks, mark, now)
    return state


def _is_done(metrics: Metrics) -> bool:
    """Whether an update is over as soon as it is dispatched, as on one CPU device.

    Then the time at which its metrics are read, after the next, is not its own.
    """
    return not isinstance(metrics.loss, jax.Array) or metrics.loss.is_ready()


def _waiting(batches: Iterable[Any]) -> Iterator[tuple[Any, float]]:
    """Each batch with the seconds that it was waited for."""
    source, start = iter(batches), time.monotonic()
    for batch in source:
        yield batch, time.monotonic() - start
        start = time.monotonic()


def _finish(
    update: _Pending,
    state: TrainState | None,
    hooks: Sequence[Hook],
    before: _Mark,
    now: Callable[[], _Mark],
) -> _Mark:
    """Reads the metrics of an update and calls the hooks; when the update was done."""
    numbers = jax.device_get(update.metrics._replace(norms=None))
    metrics = jax.tree.map(float, numbers)._replace(norms=update.metrics.norms)
    # A finite loss can have a gradient that spoils the parameters it made.
    for what, value in (
        ("loss", metrics.loss),
        ("gradient norm", metrics.gradient_norm),
    ):
        if not math.isfinite(value):
            raise Diverged(update.step, what, value)
    done = update.done or now()
    report = Report(
        update.step,
        metrics,
        update.rates,
        update.batch,
        max(0.0, done.time - before.time),
        max(0.0, done.compiled - before.compiled),
        update.waited,
    )
    for hook in hooks:
        hook.after(report, state)
    return done
