"""Progress of a sweep: live on a terminal, otherwise a line a phase and now and then.

It goes to stderr, so that stdout holds the table alone.
"""

import contextlib
import dataclasses
import heapq
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from transformer_ablation.sweep.plan import duration
from transformer_ablation.sweep.runs import Run


@dataclasses.dataclass
class _Going:
    """A run at hand: its cost, the share done, and how long it will train yet."""

    cost: float
    started: float
    share: float = 0.0
    before: float = 0.0  # the share that was done in an earlier process
    first_step: tuple[float, int] | None = None
    left: float | None = None
    told: float = 0.0  # when ``left`` was


class Clock:
    """Time left, from the work done so far by this launcher.

    ``cost(run)`` is the expected work of a run in any unit; ``jobs`` runs go at a time.
    """

    def __init__(
        self,
        cost: Callable[[Run], float],
        now: Callable[[], float] = time.monotonic,
        jobs: int = 1,
    ):
        self.cost, self.now, self.jobs = cost, now, jobs
        self.waiting: dict[str, float] = {}
        self.going: dict[str, _Going] = {}
        self.done = self.spent = 0.0

    def start(self, runs: Sequence[Run]) -> None:
        self.waiting = {run.name: self.cost(run) for run in runs}

    def run_started(self, run: Run) -> None:
        self.waiting.pop(run.name, None)
        self.going[run.name] = _Going(self.cost(run), self.now())

    def run_ended(self, run: Run, completed: bool) -> None:
        """Only runs done as a whole here say how long the others will take."""
        self.waiting.pop(run.name, None)
        going = self.going.pop(run.name, None)
        if completed and going and not going.before:
            self.done += going.cost
            self.spent += self.now() - going.started

    def run_put_back(self, run: Run) -> None:
        """It will be done later."""
        self.going.pop(run.name, None)
        self.waiting[run.name] = self.cost(run)

    def update(self, run: Run, step: int | None, steps: int | None) -> float | None:
        """Seconds left of the run's training, measured from the first step heard of.

        None after its last update: how long scoring takes, steps do not say.
        """
        going = self.going.get(run.name)
        if not step or not steps or going is None:
            return None
        going.share, going.left, going.told = step / steps, None, self.now()
        if going.first_step is None:
            going.first_step = (going.told, step)
            going.before = (step - 1) / steps
        since, first = going.first_step
        if first < step < steps:
            going.left = (going.told - since) / (step - first) * (steps - step)
        return going.left

    def sweep_left(self) -> float | None:
        """Seconds left for the sweep, those of the runs at hand included.

        Where a run does not say its own, those done before it do; None where there
        are none, or where it has taken longer than they.
        """
        done, spent, free = self.done, self.spent, []
        for going in self.going.values():
            now = self.now()
            elapsed = now - going.started
            whole = 0.0
            if self.done:
                whole = going.cost * (1 - going.before) * self.spent / self.done
            if going.left is not None:
                done += going.cost * (going.share - going.before)
                spent += elapsed
            elif whole <= elapsed:
                return None
            left = 0.0 if going.left is None else going.left - (now - going.told)
            # Those runs were scored as well, which steps do not foresee.
            free.append(max(left, whole - elapsed))
        if not done:
            return None
        # Who is free first takes the next.
        free += [0.0] * (self.jobs - len(free))
        heapq.heapify(free)
        for cost in self.waiting.values():
            heapq.heapreplace(free, free[0] + cost * spent / done)
        return max(free)


@dataclasses.dataclass
class _Shown:
    """What has been told of a run at hand."""

    number: int
    phases: set[str] = dataclasses.field(default_factory=set)
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    spoken: float = 0.0
    bar: TaskID | None = None


class Reporter:
    """Tells people how a launch is getting on (``protocols.Reporter``).

    Values of ``update``: any of step, steps, loss, tokens_per_second, phase; ``note``
    is a text for a line of its own.
    """

    def __init__(
        self,
        cost: Callable[[Run], float] = lambda run: 1.0,
        stream: TextIO | None = None,
        every_seconds: float = 30.0,
        now: Callable[[], float] = time.monotonic,
        jobs: int = 1,
    ):
        self.stream = stream or sys.stderr
        self.every_seconds, self.now = every_seconds, now
        self.clock = Clock(cost, now, jobs)
        self.runs: dict[str, _Shown] = {}
        self.total = self.ended = self.begun = 0
        self.live: Progress | None = None
        self.silent = False
        self.bar: TaskID | None = None

    def start(self, runs: Sequence[Run], skipped: int) -> None:
        self.clock.start(runs)
        self.total, self.ended = len(runs) + skipped, skipped
        self.begun = skipped
        if self.stream.isatty() and runs:
            self.live = _live(self.stream)
            self.bar = self.live.add_task(
                "sweep", total=self.total, completed=skipped, details=""
            )
            self.live.start()
        if skipped:
            are = "is" if skipped == 1 else "are"
            self._say(f"{skipped} of {self.total} runs {are} finished already")

    def run_started(self, run: Run) -> None:
        self.begun += 1
        self.runs[run.name] = _Shown(self.begun, spoken=self.now())
        self.clock.run_started(run)
        if self.live is None:
            self._tell(run, "started")
        self._show(run, None)

    def update(self, run: Run, values: Mapping[str, Any]) -> None:
        shown = self.runs.get(run.name)
        if shown is None:
            return
        if "note" in values:
            self._tell(run, str(values["note"]))
        shown.values |= {k: v for k, v in values.items() if k != "note"}
        left = self.clock.update(
            run, shown.values.get("step"), shown.values.get("steps")
        )
        if self.live is None and self._worth_a_line(shown, values.get("phase")):
            shown.spoken = self.now()
            sweep = self._sweep_left()
            self._tell(run, ", ".join([*details(shown.values, left), *sweep]))
        self._show(run, left)

    def _worth_a_line(self, shown: _Shown, phase: str | None) -> bool:
        """The first of a phase of the run, or one after a while of silence."""
        if phase is not None and phase not in shown.phases:
            shown.phases.add(phase)
            return True
        return self.now() - shown.spoken >= self.every_seconds

    def run_ended(self, run: Run, status: str, seconds: float) -> None:
        self.clock.run_ended(run, status == "finished")
        self.ended += status != "preempted"  # that one will go on
        tail = "".join(f"; {left}" for left in self._sweep_left())
        self._tell(run, f"{status} after {duration(seconds)}{tail}")
        self._forget(run)

    def run_put_back(self, run: Run, why: str) -> None:
        """It has not ended, and does not go on for now."""
        self.clock.run_put_back(run)
        self._tell(run, why)
        if self.runs.get(run.name):
            self.begun -= 1
        self._forget(run)

    def run_elsewhere(self, run: Run, status: str) -> None:
        """Another launcher has ended it."""
        self.clock.run_ended(run, completed=False)
        self.ended += 1
        self.begun += 1
        self.runs.setdefault(run.name, _Shown(self.begun))
        self._tell(run, f"{status}, by another launcher")
        self._forget(run)

    def note(self, text: str) -> None:
        self._say(text)

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self.live is not None:
            with contextlib.suppress(OSError):
                self.live.stop()
            self.live = None

    def _tell(self, run: Run, text: str) -> None:
        shown = self.runs.get(run.name)
        number = f"[{shown.number}/{self.total}] " if shown else ""
        self._say(f"{number}{run.name}: {text}")

    def _forget(self, run: Run) -> None:
        shown = self.runs.pop(run.name, None)
        self._on_screen(lambda live: self._remove(live, shown))

    def _remove(self, live: Progress, shown: _Shown | None) -> None:
        if shown and shown.bar is not None:
            live.remove_task(shown.bar)
        self._show_sweep(live)

    def _show(self, run: Run, left: float | None) -> None:
        """Bring the live display up to date."""
        self._on_screen(lambda live: self._show_run(live, run, left))

    def _on_screen(self, draw: Callable[[Progress], None]) -> None:
        if self.live is None:
            return
        try:
            draw(self.live)
        except OSError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        """The terminal or the pipe is gone: that ends no run."""
        self.live, self.silent = None, True

    def _show_run(self, live: Progress, run: Run, left: float | None) -> None:
        shown = self.runs[run.name]
        if shown.bar is None:
            shown.bar = live.add_task(run.name, total=None, details="")
        live.update(
            shown.bar,
            completed=shown.values.get("step") or 0,
            total=shown.values.get("steps"),
            details=", ".join(details(shown.values, left)),
        )
        self._show_sweep(live)

    def _show_sweep(self, live: Progress) -> None:
        assert self.bar is not None
        text = ", ".join(self._sweep_left())
        live.update(self.bar, completed=self.ended, details=text)

    def _sweep_left(self) -> list[str]:
        """Nothing where it is not known, or nothing is left."""
        left = self.clock.sweep_left()
        return [f"sweep {duration(left)} left"] if left else []

    def _say(self, line: str) -> None:
        if self.silent:
            return
        try:
            if self.live is not None:
                self.live.console.print(line, markup=False, highlight=False)
            else:
                print(line, file=self.stream, flush=True)
        except (OSError, ValueError):  # ValueError: the stream has been closed
            self._fall_silent()


def details(values: Mapping[str, Any], left: float | None) -> list[str]:
    """Phase, step, loss, speed and the time left of a run, as far as known."""
    parts = []
    if values.get("phase"):
        parts.append(str(values["phase"]))
    if values.get("step") is not None:
        parts.append(f"step {values['step']:,} of {values.get('steps') or 0:,}")
    if values.get("loss") is not None:
        parts.append(f"loss {values['loss']:.3f}")
    if values.get("tokens_per_second") is not None:
        parts.append(f"{values['tokens_per_second']:,.0f} tokens/s")
    if left is not None:
        parts.append(f"row {duration(left)} left")
    return parts


def _live(stream: TextIO) -> Progress:
    """A bar for the runs of the sweep, and one for the steps of each run at hand."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[details]}", markup=False),
        console=Console(file=stream),
        refresh_per_second=2,
    )
