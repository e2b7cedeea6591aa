"""What stops a run, and the reason that is kept."""

import os
import signal
import threading

import pytest

from transformer_ablation.sweep import stopping


@pytest.mark.parametrize("number", stopping.SIGNALS)
def test_signal_sets_it_and_is_named(number):
    stop, before = stopping.Stop(), signal.getsignal(number)
    with stopping.on_signals(stop.obey):
        os.kill(os.getpid(), number)
        assert stop.wait(60)
    assert signal.getsignal(number) is before
    assert stop.reason == number.name
    assert stopping.reason(stop, "stopped") == f"stopped ({number.name})"


def test_first_reason_stays_and_a_second_interrupt_is_at_once():
    stop = stopping.Stop()
    with stopping.on_signals(stop.obey):
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert stop.reason == "SIGUSR1"


def test_event_without_a_reason_has_none():
    assert stopping.reason(threading.Event(), "stopped") == "stopped"


@pytest.mark.parametrize(
    ("minutes", "end", "limits"),
    [
        (None, None, []),
        (5, None, [(300, "time limit of 5 minutes")]),
        (None, "1600", [(600 - 120, "the Slurm job is about to end")]),
        (None, "1100", [(50, "the Slurm job is about to end")]),  # half of 100
        (None, "900", []),  # past: of another job
        (None, "soon", []),
        (
            0.5,
            "1600",
            [(30, "time limit of 0.5 minutes"), (480, "the Slurm job is about to end")],
        ),
    ],
)
def test_limits_in_seconds_from_now(minutes, end, limits):
    environment = {} if end is None else {"SLURM_JOB_END_TIME": end}
    assert stopping._limits(minutes, environment, 1000.0) == limits


def test_limit_sets_it_and_is_forgotten_outside():
    stop = stopping.Stop()
    with stopping.at_limits(stop, 0.001, {}):
        assert stop.wait(60)
    assert stop.reason == "time limit of 0.001 minutes"
    later = stopping.Stop()
    with stopping.at_limits(later, 0.002, {}):
        pass
    assert not later.wait(0.3)


def test_check_raises_only_where_it_is_set():
    stop = stopping.Stop()
    stopping.check(stop)
    stopping.check(None)
    stop.because("told to")
    with pytest.raises(stopping.Stopped):
        stopping.check(stop)


@pytest.mark.parametrize("number", stopping.SIGNALS)
def test_signal_before_there_is_anything_to_save_ends_with_75(number):
    stop, before = stopping.Stop(), signal.getsignal(number)
    with (
        pytest.raises(stopping.Signalled, match=number.name) as caught,
        stopping.at_limits(stop, None, {}),
    ):
        signal.raise_signal(number)
    text, code = stopping.told(caught.value)
    assert code == 75 and text.startswith(f"stopped ({number.name}); run the same")
    assert signal.getsignal(number) is before and not stop.is_set()
    assert stopping.told(KeyboardInterrupt())[1] == 1
