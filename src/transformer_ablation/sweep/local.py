"""One worker in this process: runs one after the other, none twice."""

import contextlib
import dataclasses
import errno
import fcntl
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from transformer_ablation.sweep import stopping
from transformer_ablation.sweep.runs import (
    FINAL,
    ReadRecord,
    Run,
    SweepError,
    check_folders,
    finals,
)

RunOne = Callable[[Run, threading.Event, Callable[[dict[str, Any]], None]], str]
MarkStopped = Callable[[Run, str, str], None]  # run, status, reason


class Reporter(Protocol):
    """What hears of a launch; see ``progress.py``."""

    def start(self, runs: Sequence[Run], skipped: int) -> None: ...
    def run_started(self, run: Run) -> None: ...
    def update(self, values: dict[str, Any]) -> None: ...
    def run_ended(self, run: Run, status: str, seconds: float) -> None: ...


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How every run of a launch ended; ``reasons`` of those that failed."""

    states: dict[str, str]
    reasons: dict[str, str]
    interrupted: bool

    @property
    def left(self) -> int:
        """Runs that the same command would run again."""
        return sum(state not in FINAL for state in self.states.values())

    @property
    def diverged(self) -> int:
        """Runs that ended without a result and would end so again."""
        return sum(state == "diverged" for state in self.states.values())

    @property
    def exit_code(self) -> int:
        """0 where every run has its result; one of its own where it was stopped."""
        if self.complete:
            return 0
        return stopping.REQUEUE if self.interrupted and self.left else 1

    @property
    def complete(self) -> bool:
        """Whether every run has its result."""
        return not self.left and not self.diverged

    def message(self) -> str:
        """What is missing, why, and what to do."""
        lines = [f"{name} failed: {why}" for name, why in self.reasons.items()]
        word = "stopped" if self.interrupted else "not complete"
        if self.left:
            lines.append(
                f"{word}: {self.left} of {len(self.states)} runs have no result yet; "
                "run the same command again to go on, finished runs are kept"
            )
        if self.diverged:
            lines.append(
                f"{self.diverged} of {len(self.states)} runs diverged and would do so "
                "again; the table says at which update"
            )
        return "\n".join(lines)


def launch(
    runs: Sequence[Run],
    run_one: RunOne,
    *,
    read_record: ReadRecord,
    mark_stopped: MarkStopped,
    reporter: Reporter,
    stop: stopping.Stop | None = None,
) -> Outcome:
    """Run whatever has no result yet; the caller holds ``locked(workdir)``.

    ``run_one(run, stop, progress)`` trains and scores one run, saves and returns
    "preempted" soon after ``stop`` is set, and otherwise returns its final status.
    A run that raises is marked failed, its traceback is kept in error.txt of its
    folder, and the next one starts. ``stopping.SIGNALS`` set ``stop``.

    Raises:
      SweepError: a folder that holds another run.
      OSError: no space left on the device; the runs that remain would fail too.
    """
    check_folders(runs, read_record)
    stop = stop or stopping.Stop()
    done = finals(runs, read_record)
    pending = [run for run in runs if run.name not in done]
    states = {run.name: done.get(run.name, "pending") for run in runs}
    reasons: dict[str, str] = {}
    reporter.start(pending, len(done))
    with stopping.on_signals(stop):
        for run in pending:
            if stop.is_set():
                break
            reporter.run_started(run)
            started = time.monotonic()
            states[run.name], reason = _attempt(
                run, run_one, stop, mark_stopped, reporter.update
            )
            if reason:
                reasons[run.name] = reason
            seconds = time.monotonic() - started
            reporter.run_ended(run, states[run.name], seconds)
    return Outcome(states, reasons, stop.is_set())


def _attempt(
    run: Run,
    run_one: RunOne,
    stop: threading.Event,
    mark_stopped: MarkStopped,
    progress: Callable[[dict[str, Any]], None],
) -> tuple[str, str | None]:
    """Final status of one run, and the reason where it failed."""
    try:
        return run_one(run, stop, progress), None
    except KeyboardInterrupt:
        stop.set()
        mark_stopped(run, "preempted", "interrupted at once, nothing was saved")
        return "preempted", None
    except Exception as error:
        if out_of_space(error) is not None:
            raise
        reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
        run.directory.mkdir(parents=True, exist_ok=True)
        text = "".join(traceback.format_exception(error))
        path = run.directory / "error.txt"
        path.write_text(text, encoding="utf-8")
        mark_stopped(run, "failed", reason)
        return "failed", f"{reason} (traceback in {path})"


@contextlib.contextmanager
def locked(workdir: Path) -> Iterator[None]:
    """Hold the workdir alone; the lock goes when the process ends, however it ends.

    Raises:
      SweepError: another sweep holds it, with its process id.
    """
    if workdir.exists() and not workdir.is_dir():
        raise SweepError(f"{workdir}: is a file; name a folder with --workdir")
    workdir.mkdir(parents=True, exist_ok=True)
    with open(workdir / "sweep.lock", "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise SweepError(
                f"{workdir}: another sweep is running there (process {holder}); "
                "wait for it, stop it, or use another --workdir"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def out_of_space(error: BaseException | None) -> OSError | None:
    """The "no space left" or "quota exceeded" error behind an exception, if any."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return error
        # Libraries with a C++ core pass on the system's words, not its number.
        if os.strerror(errno.ENOSPC) in str(error):
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        error = error.__cause__ or error.__context__
    return None
