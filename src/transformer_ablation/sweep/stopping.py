"""What tells a run to save and stop: a signal, a limit of time, the end of a job."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping

# Exit code of a command that was told to stop and has saved: run it again. It is
# EX_TEMPFAIL of sysexits.h.
REQUEUE = 75
# SIGUSR1 and SIGUSR2 are what Slurm's --signal and submitit send before a limit.
SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
# Left for a last update, a checkpoint and the record before Slurm ends a job; of a
# shorter time half is left. Slurm's own warnings came up to 20 seconds late.
SAVE_SECONDS = 120.0
JOB_END = "SLURM_JOB_END_TIME"


class Stop(threading.Event):
    """An event with the reason why it was set; the first reason stays."""

    def __init__(self) -> None:
        super().__init__()
        self.reason: str | None = None

    def because(self, reason: str) -> None:
        """Sets it."""
        self.reason = self.reason or reason
        self.set()

    def signalled(self, number: int) -> None:
        """Sets it, with a signal's name as the reason."""
        self.because(signal.Signals(number).name)

    def obey(self, number: int) -> None:
        """As ``signalled``; a SIGINT after that raises KeyboardInterrupt."""
        if self.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signalled(number)


class Signalled(KeyboardInterrupt):
    """A signal to stop that came before there was anything to save."""


def told(error: KeyboardInterrupt) -> tuple[str, int]:
    """What to say of it, and the exit code."""
    if isinstance(error, Signalled):
        return f"stopped ({error}); run the same command again to go on", REQUEUE
    words = "interrupted; run the same command again to go on"
    return str(error) or words, 1


class Stopped(Exception):
    """Something that takes long was given up, as the run is to stop."""


def check(stop: threading.Event | None) -> None:
    """Raises Stopped where it is set; None never is."""
    if stop is not None and stop.is_set():
        raise Stopped


def reason(stop: threading.Event, what: str) -> str:
    """What was stopped, and why where that is known."""
    why = getattr(stop, "reason", None)
    return what if why is None else f"{what} ({why})"


def heeded() -> list[signal.Signals]:
    """``SIGNALS`` without those that are ignored, as ``nohup`` has it of SIGHUP."""
    return [n for n in SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]


@contextlib.contextmanager
def on_signals(handle: Callable[[int], None]) -> Iterator[None]:
    """Inside it the signals call ``handle``; only the main thread can say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {
        number: signal.signal(number, lambda number, _: handle(number))
        for number in heeded()
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def at_limits(
    stop: Stop, minutes: float | None, environment: Mapping[str, str] = os.environ
) -> Iterator[None]:
    """Inside it ``stop`` is set after so many minutes, or before a Slurm job ends.

    Where nobody else listens, ``SIGNALS`` raise Signalled.
    """
    timers = [
        threading.Timer(seconds, stop.because, [reason])
        for seconds, reason in _limits(minutes, environment, time.time())
    ]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        with on_signals(_raise):
            yield
    finally:
        for timer in timers:
            timer.cancel()


def _raise(number: int) -> None:
    raise Signalled(signal.Signals(number).name)


def _limits(
    minutes: float | None, environment: Mapping[str, str], now: float
) -> list[tuple[float, str]]:
    """Seconds from now, and what is the reason then."""
    limits = []
    if minutes is not None:
        limits.append((60 * minutes, f"time limit of {minutes:g} minutes"))
    end = environment.get(JOB_END, "")
    # One that is past is of a job that this process has outlived.
    if end.isascii() and end.isdigit() and (left := int(end) - now) > 0:
        seconds = max(left - SAVE_SECONDS, left / 2)
        limits.append((seconds, "the Slurm job is about to end"))
    return limits
