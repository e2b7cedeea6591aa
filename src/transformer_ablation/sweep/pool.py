"""The launcher: workers that do a sweep's runs, none twice, however they end."""

import contextlib
import dataclasses
import errno
import os
import queue
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformer_ablation.sweep import claims, stopping
from transformer_ablation.sweep.devices import Share
from transformer_ablation.sweep.failures import death, killed
from transformer_ablation.sweep.outcome import Outcome
from transformer_ablation.sweep.protocols import Reporter, StartWorker, Worker
from transformer_ablation.sweep.runs import (
    ReadRecord,
    Run,
    SweepError,
    check_folders,
    final_status,
    finals,
    run_to_mapping,
)
from transformer_ablation.sweep.trainings import Trainings
from transformer_ablation.sweep.worker import LOG_FILE, MarkStopped

# How often runs that another launcher holds are looked at.
POLL_SECONDS = 2.0
AT_ONCE = "interrupted at once, nothing was saved"


def launch(
    runs: Sequence[Run],
    start_worker: StartWorker,
    *,
    shares: Sequence[Share] = (Share(),),
    read_record: ReadRecord,
    mark_stopped: MarkStopped,
    reporter: Reporter,
    cost: Callable[[Run], float] = lambda run: 1.0,
    stop: stopping.Stop | None = None,
    wait_for_training: bool = True,
) -> Outcome:
    """Do whatever has no result yet, a worker for each of ``shares``.

    With several workers the longest runs go first, by ``cost``; with one, in order. A
    worker that dies fails its run only, and is replaced; a run that lacked memory is
    tried once more, with no other beside it. Runs that other launchers hold are
    waited for, and with ``wait_for_training`` also for what one of them trains that
    another run here can have. ``stopping.SIGNALS``, and ``stop`` once it is set, have
    the workers save and stop; a second SIGINT ends them at once.

    Raises:
      SweepError: a folder that holds another run.
      OSError: no space left on the device; the runs that remain would fail too.
    """
    check_folders(runs, read_record)
    tools = read_record, mark_stopped, reporter, cost, stop or stopping.Stop()
    pool = _Pool(runs, start_worker, shares, *tools, wait_for_training)
    with stopping.on_signals(pool.interrupt):
        try:
            pool.work()
        finally:
            pool.close()
    if pool.fatal is not None:
        raise pool.fatal
    preempted = "preempted" in pool.states.values()  # as by another of its processes
    return Outcome(pool.states, pool.reasons, pool.stops > 0 or preempted)


@dataclasses.dataclass
class _Slot:
    """A share of the devices, its worker, and the run that the worker does."""

    share: Share
    worker: Worker | None = None
    run: Run | None = None
    after: int = 0
    claimed: bool = False
    started: float = 0.0


class _Pool:
    """The state of a launch. All of it is changed by one thread, in ``work``."""

    def __init__(
        self,
        runs: Sequence[Run],
        start_worker: StartWorker,
        shares: Sequence[Share],
        read_record: ReadRecord,
        mark_stopped: MarkStopped,
        reporter: Reporter,
        cost: Callable[[Run], float],
        stop: stopping.Stop,
        wait_for_training: bool,
    ):
        self.start_worker, self.reporter = start_worker, reporter
        self.read_record, self.mark_stopped = read_record, mark_stopped
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.slots = [_Slot(share) for share in shares]
        done = finals(runs, read_record)
        self.states = {run.name: done.get(run.name, "pending") for run in runs}
        self.reasons: dict[str, str] = {}
        self.watch, self.told = claims.Watch(), False
        self.wait_for_training = wait_for_training
        self.trainings = Trainings(runs, read_record, self.watch)
        self.training = {run.name: self.trainings.of(run) for run in runs}
        self.pending = [run for run in runs if run.name not in done]
        if len(shares) > 1:
            self.pending.sort(key=cost, reverse=True)
        self.order = {run.name: i for i, run in enumerate(self.pending)}
        self.first = {run.name: _number(run) for run in self.pending}
        self.alone: list[Run] = []  # lacked memory beside others
        self.retried: set[str] = set()
        self.stop, self.stops, self.heeded = stop, 0, 0
        self.fatal: OSError | SweepError | None = None
        reporter.start(self.pending, len(done))

    def interrupt(self, number: int) -> None:
        """Called by a signal: once to stop, by a second SIGINT at once."""
        self.stops += 1 if number == signal.SIGINT or not self.stops else 0
        self.stop.signalled(number)
        self.events.put(None)

    def work(self) -> None:
        """Until everything has ended that this launcher can do or wait for."""
        while True:
            self._heed_stops()
            if not self.stops:
                self._fill()
            if not self._busy() and (self.stops or not (self.pending or self.alone)):
                return
            with contextlib.suppress(queue.Empty):
                event = self.events.get(timeout=POLL_SECONDS)
                if event is not None:
                    self._hear(*event)

    def close(self) -> None:
        """End all workers; one that still has a run saves it first."""
        workers = [slot.worker for slot in self.slots if slot.worker is not None]
        for worker in workers:
            worker.close()
        for worker in workers:
            worker.wait()

    def _busy(self) -> list[_Slot]:
        return [slot for slot in self.slots if slot.run is not None]

    def _heed_stops(self) -> None:
        if self.stop.is_set():  # by a limit of time, where it was no signal
            self.stops = max(1, self.stops)
        if self.stops == self.heeded:
            return
        self.heeded, busy = self.stops, self._busy()
        if self.stops == 1 and busy:
            self.reporter.note(
                f"stopping: {_runs(len(busy))} will be saved; "
                "Ctrl-C again stops at once"
            )
        for slot in busy:
            assert slot.worker is not None
            if self.stops == 1:
                slot.worker.send({"stop": self.stop.reason or "the launcher stops"})
            else:
                slot.worker.kill()

    def _fill(self) -> None:
        """Give idle workers something to do."""
        busy = self._busy()
        if any(slot.run and slot.run.name in self.retried for slot in busy):
            return  # it is to be alone
        for slot in self.slots:
            if slot.run is None:
                found = self._next()
                if found is None:
                    break
                self._give(slot, *found)
        if self.alone and not self._busy():
            for slot in self.slots:  # their memory is wanted
                self._retire(slot)
            run = self.alone.pop(0)
            number = self._free(run)
            if number is None:
                self._put_back(run)
            else:
                self._give(self.slots[0], run, number)
        elif self.pending and not self._busy() and not self.told:
            self.told = True
            self.reporter.note(self._waiting())

    def _next(self) -> tuple[Run, int] | None:
        """The first run that nobody holds or trains, and the number of its dead claim.

        What is being trained a run can have once it is finished.
        """
        own = [slot.run for slot in self._busy() if slot.run]
        there = [n for n, state in self.states.items() if state == "finished"]
        trained = {self.training[name] for name in there}
        going = {self.training[run.name] for run in own} - trained
        for run in list(self.pending):
            training = self.training[run.name]
            if training in going or (number := self._free(run)) is None:
                continue
            if training not in trained and self._trained_elsewhere(run):
                going.add(training)
                continue
            status = self._ended_elsewhere(run, number)
            self.pending.remove(run)
            if status is None:
                return run, number
            self.states[run.name] = status
            self.reporter.run_elsewhere(run, status)
        return None

    def _trained_elsewhere(self, run: Run) -> str | None:
        if not self.wait_for_training:
            return None
        own = [slot.run.directory for slot in self._busy() if slot.run]
        return self.trainings.elsewhere(run, own)

    def _free(self, run: Run) -> int | None:
        """The number of the run's dead claim, 0 for none; None if somebody has it."""
        holder = claims.current(run.directory)
        if holder and not self.watch.is_dead(run.directory, holder):
            return None
        return holder.number if holder else 0

    def _ended_elsewhere(self, run: Run, number: int) -> str | None:
        """How another launcher has ended the run since this one started, or None."""
        try:
            record = self.read_record(run.directory) or {}
            status = final_status(run, lambda _: record)
        except ValueError:
            return None  # the worker will say what is wrong with it
        tried = number > self.first[run.name] and record.get("status") == "failed"
        if status is None and tried:
            self.reasons[run.name] = f"{record.get('reason')} (in another launcher)"
            return "failed"
        return status

    def _waiting(self) -> str:
        held = []
        for run in self.pending:
            holder = self._trained_elsewhere(run) or claims.current(run.directory)
            held.append(f"{run.name} ({holder})" if holder else run.name)
        shown = ", ".join(held[:3]) + (" and others" if len(held) > 3 else "")
        return f"waiting for {_runs(len(held))} of other launchers: {shown}"

    def _give(self, slot: _Slot, run: Run, after: int) -> None:
        if slot.worker is None:
            put = self.events.put
            slot.worker = self.start_worker(slot.share, lambda *event: put(event))
        slot.run, slot.after, slot.claimed = run, after, False
        slot.started = time.monotonic()
        slot.worker.send({"run": run_to_mapping(run), "after": after})

    def _hear(self, worker: Worker, message: Mapping[str, Any] | int) -> None:
        slot = next((slot for slot in self.slots if slot.worker is worker), None)
        if slot is None:
            return  # of a worker that was sent away
        run = slot.run
        if isinstance(message, int):
            slot.worker = slot.run = None
            if run is not None:
                self._died(slot, run, message)
        elif run is None:
            return
        elif "claimed" in message:
            slot.claimed = True
            self.reporter.run_started(run)
        elif "progress" in message:
            self.reporter.update(run, message["progress"])
        else:
            slot.run = None
            self._ended(slot, run, message)

    def _ended(self, slot: _Slot, run: Run, message: Mapping[str, Any]) -> None:
        status = message.get("ended")
        if "taken" in message or "lost" in message:
            self._put_back(run)
            if "lost" in message:
                self.reporter.run_put_back(run, "taken over by another launcher")
                self._retire(slot)
        elif "away" in message:
            self.fatal = SweepError(
                f"{message['away']}: the folder has gone, or its disk has; bring it "
                "back and run the same command again"
            )
            self.reporter.run_put_back(run, "its folder has gone")
            self.stop.because("a folder has gone")
        elif "full" in message:
            text = os.strerror(errno.ENOSPC)
            self.fatal = OSError(errno.ENOSPC, text, message["full"])
            self.reporter.run_put_back(run, "disk full")
            self.stop.because("disk full")
        elif message.get("already"):
            self.states[run.name] = str(status)
            self.reporter.run_elsewhere(run, str(status))
        else:
            memory = bool(message.get("memory"))
            self._finish(slot, run, str(status), message.get("reason"), memory)
        if status == "preempted" or message.get("memory"):
            self._retire(slot)  # it was told to stop, or holds memory

    def _died(self, slot: _Slot, run: Run, code: int) -> None:
        at_once = self.stops > 1
        status = "preempted" if at_once else "failed"
        reason = AT_ONCE if at_once else death(code)
        if not self._mark(slot, run, status, reason):
            self._put_back(run)
            self.reporter.run_put_back(run, f"{reason}; another launcher has it now")
            return
        log = run.directory / LOG_FILE
        told = f"{reason} (what it printed: {log})" if log.exists() else reason
        memory = killed(code) and not at_once
        self._finish(slot, run, status, None if at_once else told, memory)

    def _mark(self, slot: _Slot, run: Run, status: str, reason: str) -> bool:
        """Write into the record how a dead worker's run ended, if nobody has it."""
        holder = claims.current(run.directory)
        own = holder and slot.claimed and holder.number == slot.after + 1
        if holder and not own and not self.watch.is_dead(run.directory, holder):
            return False
        try:
            claim = claims.acquire(run.directory, holder.number if holder else 0)
        except OSError:
            return True  # nothing can be written there
        if claim is None:
            return False
        try:
            with contextlib.suppress(OSError):  # the reason is told all the same
                self.mark_stopped(run, status, reason)
        finally:
            claim.release(final=False)
        return True

    def _finish(
        self, slot: _Slot, run: Run, status: str, reason: str | None, memory: bool
    ) -> None:
        seconds = time.monotonic() - slot.started
        if memory and run.name not in self.retried and not self.stops:
            self.retried.add(run.name)
            self.alone.append(run)
            self.reporter.run_put_back(run, f"{reason}; tried once more later, alone")
            return
        self.states[run.name] = status
        if reason:
            self.reasons[run.name] = reason
        self.reporter.run_ended(run, status, seconds)

    def _put_back(self, run: Run) -> None:
        self.pending.append(run)
        self.pending.sort(key=lambda each: self.order[each.name])

    def _retire(self, slot: _Slot) -> None:
        if slot.worker is not None:
            slot.worker.close()
            slot.worker.wait()
            slot.worker = None


def _number(run: Run) -> int:
    holder = claims.current(run.directory)
    return holder.number if holder else 0


def _runs(count: int) -> str:
    return f"{count} run{'s' * (count != 1)}"
