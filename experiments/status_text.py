"""The runs of ``experiments.status`` as text, once or again and again, and as JSON."""

import dataclasses
import json
import textwrap
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.live import Live
from rich.text import Text

from transformer_ablation.report.run_status import RunStatus
from transformer_ablation.sweep.plan import counted, duration

HEADINGS = tuple("row seed state step loss steps/s tokens/s spent left sign".split())
LEFT_ALIGNED = ("row", "state")
# Others have nothing more to say for themselves.
ALIVE = ("running", "stale")


def as_json(runs: Sequence[RunStatus]) -> str:
    """One object whose ``rows`` are the runs."""
    rows = [dataclasses.asdict(run) for run in runs]
    return json.dumps({"rows": rows}, indent=1, ensure_ascii=False) + "\n"


def as_text(runs: Sequence[RunStatus]) -> str:
    """A line a run, below it its reason, log and holder, and a count of every state."""
    table = [HEADINGS, *(cells(run) for run in runs)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    lines = [_line(HEADINGS, widths)]
    for run, line in zip(runs, table[1:], strict=True):
        lines.append(_line(line, widths))
        if run.reason:
            lines += _indented(run.reason)
        lines += [f"    | {line}" for line in run.log]
        if run.held_by:
            lines.append(f"    held by {run.held_by}")
    states = [run.state for run in runs]
    counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
    return "\n".join([*lines, "", f"{counted(len(runs), 'run')}: {counts}"]) + "\n"


def _indented(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        100,
        initial_indent="    ",
        subsequent_indent="    ",
        break_long_words=False,
    )


def cells(run: RunStatus) -> tuple[str, ...]:
    """A run under ``HEADINGS``; what is not known stays blank."""
    step = f"{run.step}/{run.steps}" if run.step is not None else f"-/{run.steps}"
    loss = "" if run.loss is None else f"{run.loss:.3f}"
    speed = "" if run.steps_per_second is None else f"{run.steps_per_second:.3g}"
    tokens = "" if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f}"
    spent = "" if run.seconds is None else duration(run.seconds)
    left = "" if run.seconds_left is None else duration(run.seconds_left)
    seen = run.sign_seconds if run.state in ALIVE else None
    sign = "" if seen is None else f"{duration(seen)} ago"
    start = run.row, str(run.seed), run.state, step, loss
    return *start, speed, tokens, spent, left, sign


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if heading in LEFT_ALIGNED else cell.rjust(width)
        for cell, width, heading in zip(cells, widths, HEADINGS, strict=True)
    ]
    return "  ".join(padded).rstrip()


def watch(
    text: Callable[[], str], every_seconds: float, console: Console | None = None
) -> None:
    """Show a text on the terminal and bring it up to date until Ctrl-C."""
    console = console or Console()
    shown = Text(text(), no_wrap=True, overflow="ellipsis")
    with Live(shown, console=console, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every_seconds)
                shown = Text(text(), no_wrap=True, overflow="ellipsis")
                live.update(shown, refresh=True)
        except KeyboardInterrupt:
            return
