"""Progress of a sweep: live on a terminal, otherwise a line a phase and now and then.

It goes to stderr, so that stdout holds the table alone.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from transformer_ablation.sweep.plan import duration
from transformer_ablation.sweep.runs import Run


class Clock:
    """Time left, from the work done so far in this process.

    ``cost(run)`` is the expected work of a run in any unit.
    """

    def __init__(self, cost: Callable[[Run], float], now: Callable[[], float]):
        self.cost, self.now = cost, now
        self.remaining = self.done = self.spent = 0.0
        self.current, self.share, self.started = 0.0, 0.0, 0.0
        self.before = 0.0  # the share that the run at hand did in an earlier process
        self.first_step: tuple[float, int] | None = None

    def start(self, runs: Sequence[Run]) -> None:
        self.remaining = sum(map(self.cost, runs))

    def run_started(self, run: Run) -> None:
        self.current, self.share, self.started = self.cost(run), 0.0, self.now()
        self.first_step, self.before = None, 0.0
        self.remaining -= self.current

    def run_ended(self, completed: bool) -> None:
        """Only runs done as a whole here say how long the others will take."""
        if completed and not self.before:
            self.done += self.current
            self.spent += self.now() - self.started
        self.current = self.share = 0.0

    def update(self, step: int | None, steps: int | None) -> float | None:
        """Seconds left of the run's training, measured from the first step heard of.

        None after its last update: how long scoring takes, steps do not say.
        """
        if not step or not steps:
            return None
        self.share = step / steps
        if self.first_step is None:
            self.first_step = (self.now(), step)
            self.before = (step - 1) / steps
        since, first = self.first_step
        if step <= first or step >= steps:
            return None
        return (self.now() - since) / (step - first) * (steps - step)

    def sweep_left(self, run_left: float | None) -> float | None:
        """Seconds left for the sweep, those of the run at hand included.

        Where the run does not say its own, those done before it do; None where there
        are none, or where it has taken longer than they.
        """
        done, spent = self.done, self.spent
        if self.current:
            elapsed = self.now() - self.started
            whole = self.current * (1 - self.before) * spent / done if done else 0.0
            if run_left is not None:
                done += self.current * (self.share - self.before)
                spent += elapsed
            elif whole <= elapsed:
                return None
            # Those runs were scored as well, which steps do not foresee.
            run_left = max(run_left or 0.0, whole - elapsed)
        if not done:
            return None
        return (run_left or 0.0) + self.remaining * spent / done


class Reporter:
    """Tells people how a launch is getting on (the protocol of ``local.Reporter``).

    Values of ``update``: any of step, steps, loss, tokens_per_second, phase.
    """

    def __init__(
        self,
        cost: Callable[[Run], float] = lambda run: 1.0,
        stream: TextIO | None = None,
        every_seconds: float = 30.0,
        now: Callable[[], float] = time.monotonic,
    ):
        self.stream = stream or sys.stderr
        self.every_seconds, self.now = every_seconds, now
        self.clock = Clock(cost, now)
        self.run: Run | None = None
        self.values: dict[str, Any] = {}
        self.phases: set[str] = set()
        self.total = self.ended = 0
        self.spoken = now()
        self.live: Progress | None = None
        self.silent = False
        self.bars: list[TaskID] = []

    def start(self, runs: Sequence[Run], skipped: int) -> None:
        self.clock.start(runs)
        self.total, self.ended = len(runs) + skipped, skipped
        if self.stream.isatty() and runs:
            self.live = _live(self.stream)
            self.bars = [
                self.live.add_task(
                    "sweep", total=self.total, completed=skipped, details=""
                ),
                self.live.add_task("", total=None, details=""),
            ]
            self.live.start()
        if skipped:
            self._say(f"{skipped} of {self.total} runs are finished already")

    def run_started(self, run: Run) -> None:
        self.run, self.values, self.phases = run, {}, set()
        self.clock.run_started(run)
        self.spoken = self.now()
        if self.live is None:
            self._say(f"[{self.ended + 1}/{self.total}] {run.name}: started")
        self._show(None)

    def update(self, values: Mapping[str, Any]) -> None:
        self.values = {**self.values, **values}
        left = self.clock.update(self.values.get("step"), self.values.get("steps"))
        if self.live is None and self._worth_a_line(values.get("phase")):
            self.spoken = self.now()
            name = self.run.name if self.run else ""
            self._say(f"[{self.ended + 1}/{self.total}] {name}: {self.details(left)}")
        self._show(left)

    def _worth_a_line(self, phase: str | None) -> bool:
        """The first of a phase of the run, or one after a while of silence."""
        if phase is not None and phase not in self.phases:
            self.phases.add(phase)
            return True
        return self.now() - self.spoken >= self.every_seconds

    def run_ended(self, run: Run, status: str, seconds: float) -> None:
        self.clock.run_ended(status == "finished")
        self.ended += 1
        message = f"[{self.ended}/{self.total}] {run.name}: {status}"
        left = self.clock.sweep_left(None)
        tail = f"; sweep {duration(left)} left" if left else ""
        self._say(f"{message} after {duration(seconds)}{tail}")
        self.run, self.values = None, {}
        self._show(None)

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self.live is not None:
            with contextlib.suppress(OSError):
                self.live.stop()
            self.live = None

    def details(self, left: float | None) -> str:
        """Phase, step, loss, speed and the times left, as far as known."""
        values, parts = self.values, []
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
        sweep = self.clock.sweep_left(left)
        if sweep is not None:
            parts.append(f"sweep {duration(sweep)} left")
        return ", ".join(parts)

    def _show(self, left: float | None) -> None:
        """Bring the live display up to date."""
        try:
            self._show_live(left)
        except OSError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        """The terminal or the pipe is gone: that ends no run."""
        self.live, self.silent = None, True

    def _show_live(self, left: float | None) -> None:
        if self.live is None:
            return
        sweep, row = self.bars
        self.live.update(sweep, completed=self.ended)
        self.live.update(
            row,
            description=self.run.name if self.run else "",
            completed=self.values.get("step") or 0,
            total=self.values.get("steps"),
            details=self.details(left),
        )

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


def _live(stream: TextIO) -> Progress:
    """Two bars: runs of the sweep, steps of the row."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[details]}", markup=False),
        console=Console(file=stream),
        refresh_per_second=2,
    )
