"""The loop on updates that only count: the order of hooks, states and stops."""

import math
import threading
from typing import NamedTuple

import numpy as np
import pytest

from transformer_ablation.train import loop
from transformer_ablation.train.loop import Diverged, Every, train
from transformer_ablation.train.step import Metrics, Rates, TrainState

KEY = object()  # handed through, never looked at


class Batch(NamedTuple):
    number: int


class Hook:
    """Writes down what it is shown; wants the states of some updates."""

    def __init__(self, log, name, wants=()):
        self._log, self._name, self._wants = log, name, wants

    def needs_state(self, step):
        return step in self._wants

    def after(self, report, state):
        seen = None if state is None else int(state.step)
        self._log.append((self._name, report.step, seen))


class Counter:
    """An update whose state counts and whose loss is 10 times the update's number.

    ``live`` is the only state not yet donated: to look at another one is an error.
    """

    def __init__(self, losses=None, on_call=lambda step: None, log=None):
        self.live, self.calls = None, []
        self._losses, self._on_call, self._log = losses or {}, on_call, log

    def __call__(self, state, batch, key, rates):
        assert key is KEY
        assert self.live is None or state is self.live
        step = int(state.step) + 1
        self.calls.append((step, batch.number, rates.learning_rate))
        if self._log is not None:
            self._log.append(("update", step, None))
        self._on_call(step)
        self.live = TrainState(np.int32(step), {"w": np.float32(step)}, ())
        loss = self._losses.get(step, 10.0 * step)
        return self.live, Metrics(loss, loss + 1, 7.0, 0.5, {})


def rates_at(step):
    return Rates(100.0 + step, 0.1, 0.0, None, None)


def start(step=0):
    return TrainState(np.int32(step), {"w": np.float32(step)}, ())


def run(update, hooks, first=0, last=4, stop=None):
    batches = [Batch(number) for number in range(first, last)]
    return train(
        start(first),
        update,
        batches,
        key=KEY,
        rates_at=rates_at,
        hooks=hooks,
        stop=stop,
    )


def test_hooks_see_every_update_in_order():
    log = []
    final = run(Counter(), [Hook(log, "a"), Hook(log, "b")], last=3)
    shown = [(name, step) for name, step, _ in log]
    assert shown == [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("b", 3)]
    assert int(final.step) == 3


def test_updates_go_on_from_the_step_of_the_state():
    update, log = Counter(), []
    final = run(update, [Hook(log, "a")], first=5, last=8)
    assert update.calls == [(6, 5, 106.0), (7, 6, 107.0), (8, 7, 108.0)]
    assert [step for _, step, _ in log] == [6, 7, 8]
    assert int(final.step) == 8


def test_report_holds_the_updates_own_metrics_rates_and_batch():
    reports = []

    class Keep(Hook):
        def after(self, report, state):
            reports.append(report)

    run(Counter(), [Keep([], "a")], last=3)
    for number, report in enumerate(reports):
        step = number + 1
        assert report.step == step
        assert report.metrics == Metrics(10.0 * step, 10.0 * step + 1, 7.0, 0.5, {})
        assert all(type(x) is float for x in report.metrics[:4])
        assert report.rates == rates_at(step)
        assert report.batch == Batch(number)
        assert report.seconds >= 0 and report.waited >= 0


class Clock:
    """Stands in for the time module of the loop; it stands until it is moved."""

    def __init__(self):
        self.now, self.compiled = 1000.0, 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    return clock


class Times(Hook):
    """Seconds of each update; hooks that are given the state take 100 more."""

    def __init__(self, clock, wants):
        super().__init__([], "times", wants)
        self.clock, self.seconds, self.compiled = clock, [], []

    def after(self, report, state):
        self.seconds.append(report.seconds)
        self.compiled.append(report.compiled)
        if state is not None:
            self.clock.now += 100


def timed(clock, update):
    times = Times(clock, wants=(2, 4))
    train(
        start(),
        update,
        [Batch(number) for number in range(6)],
        key=KEY,
        rates_at=rates_at,
        hooks=[times],
        compiling=lambda: clock.compiled,
    )
    return times


def test_update_that_is_done_when_dispatched_has_its_own_time(clock):
    """As on one CPU device: 2 s each, two of them after compiling for 7 s."""

    def work(step):
        compiling = 7 if step in (1, 5) else 0
        clock.compiled += compiling
        clock.now += 2 + compiling

    times = timed(clock, Counter(on_call=work))
    assert times.seconds == [9, 2, 2, 2, 9, 2]
    assert times.compiled == [7, 0, 0, 0, 7, 0]


def test_update_that_is_done_later_is_timed_when_it_is_read(clock, monkeypatch):
    """As on a GPU: dispatching takes no time, reading an update's metrics 3 s."""

    def read(metrics):
        clock.now += 3
        return metrics

    monkeypatch.setattr(loop, "_is_done", lambda metrics: False)
    monkeypatch.setattr(loop.jax, "device_get", read)
    assert timed(clock, Counter()).seconds == [3] * 6


def test_metrics_are_read_after_the_next_update_is_dispatched():
    log = []
    run(Counter(log=log), [Hook(log, "hook", wants=(3,))], last=4)
    order = [(name, step) for name, step, _ in log]
    assert order == [
        ("update", 1),
        ("update", 2),
        ("hook", 1),
        ("update", 3),
        ("hook", 2),
        ("hook", 3),  # its state is wanted, and would be donated to update 4
        ("update", 4),
        ("hook", 4),
    ]


def test_hook_gets_the_state_of_the_very_update():
    log = []
    hooks = [Hook(log, "often", wants=(1, 2)), Hook(log, "never")]
    run(Counter(), hooks, last=5)
    states = {step: seen for name, step, seen in log if name == "often"}
    assert states[1] == 1 and states[2] == 2
    assert states[3] is states[4] is None
    # Whatever is shown is of that update, never of the one after it.
    assert all(seen in (None, step) for _, step, seen in log)


def test_stop_ends_after_the_update_at_hand():
    stop, log = threading.Event(), []
    update = Counter(on_call=lambda step: step == 3 and stop.set())
    final = run(update, [Hook(log, "a")], last=9, stop=stop)
    assert int(final.step) == 3
    assert [step for step, *_ in update.calls] == [1, 2, 3]
    assert [step for _, step, _ in log] == [1, 2, 3]


def test_no_batch_leaves_the_state_as_it_was():
    log = []
    assert int(run(Counter(), [Hook(log, "a")], first=4, last=4).step) == 4
    assert log == []


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wants", [(), (3,), (1, 2, 3, 4)])
def test_loss_that_is_not_finite_stops_before_any_hook_sees_it(loss, wants):
    log = []
    with pytest.raises(Diverged, match=f"loss is {loss} at update 3") as caught:
        run(Counter({3: loss}), [Hook(log, "a"), Hook(log, "save", wants)], last=9)
    assert caught.value.step == 3
    assert [step for name, step, _ in log if name == "save"] == [1, 2]


def test_loss_of_the_last_update_is_looked_at_too():
    log = []
    with pytest.raises(Diverged) as caught:
        run(Counter({4: math.nan}), [Hook(log, "a")], last=4)
    assert caught.value.step == 4 and [step for _, step, _ in log] == [1, 2, 3]


def saved(clock, steps, last, minutes=None, first=0, stop_at=None):
    """(update, step of the state) of every call of an ``Every``."""
    calls, stop = [], threading.Event()

    def tick(step):
        clock.now += 20
        if step == stop_at:
            stop.set()

    every = Every(
        lambda step, state: calls.append((step, int(state.step))), steps, last, minutes
    )
    run(Counter(on_call=tick), [every], first=first, last=last, stop=stop)
    return calls


def test_every_acts_on_multiples_and_at_the_last(clock):
    assert saved(clock, 3, 8) == [(3, 3), (6, 6), (8, 8)]
    assert saved(clock, 3, 6) == [(3, 3), (6, 6)]


def test_every_counts_updates_of_the_run_not_of_the_process(clock):
    assert saved(clock, 3, 8, first=4) == [(6, 6), (8, 8)]


def test_every_without_steps_acts_at_the_last_only(clock):
    assert saved(clock, None, 8) == [(8, 8)]


def test_every_acts_by_the_clock(clock):
    # One minute is three updates of 20 seconds, counted anew from each action.
    assert saved(clock, None, 8, minutes=1.0) == [(3, 3), (6, 6), (8, 8)]
    assert saved(clock, 5, 9, minutes=1.0) == [(3, 3), (5, 5), (8, 8), (9, 9)]


def test_every_does_not_act_out_of_turn_when_stopped(clock):
    assert saved(clock, 3, 9, stop_at=4) == [(3, 3)]


def test_seconds_of_a_report_leave_out_the_hooks(clock):
    seconds = []

    class Slow(Hook):
        def after(self, report, state):
            seconds.append(report.seconds)
            clock.now += 500

    def tick(step):
        clock.now += 20

    run(Counter(on_call=tick), [Slow([], "a", wants=range(9))], last=3)
    assert seconds == [20, 20, 20]
