"""Where every run stands: ``python -m experiments.status --workdir=DIR``."""

import dataclasses
import json
import textwrap
from collections.abc import Sequence

from absl import flags

from experiments import command, slurm_status
from experiments.tables import print_text
from transformer_ablation.report.run_status import RunStatus, read_status
from transformer_ablation.sweep.plan import duration

HEADINGS = ("row", "seed", "state", "step", "steps/s", "tokens/s", "spent", "left")
LEFT_ALIGNED = ("row", "state")
FORMATS = ("text", "json")


def define(values: flags.FlagValues) -> None:
    """The flags of this command."""
    flags.DEFINE_string("workdir", None, "folder of a sweep", flag_values=values)
    flags.DEFINE_enum("format", "text", FORMATS, "for people or programs", values)


def body(values: flags.FlagValues) -> None:
    """Prints the state of every run of the workdir."""
    if values["workdir"].value is None:
        raise command.UsageError("--workdir is missing; name the folder of a sweep")
    runs = slurm_status.with_queue(
        values["workdir"].value, read_status(values["workdir"].value)
    )
    print_text(as_json(runs) if values["format"].value == "json" else as_text(runs))


def as_json(runs: Sequence[RunStatus]) -> str:
    """One object whose ``rows`` are the runs."""
    rows = [dataclasses.asdict(run) for run in runs]
    return json.dumps({"rows": rows}, indent=1, ensure_ascii=False) + "\n"


def as_text(runs: Sequence[RunStatus]) -> str:
    """A line a run, its reason below it, and a count of every state."""
    table = [HEADINGS, *(cells(run) for run in runs)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    lines = [_line(HEADINGS, widths)]
    for run, line in zip(runs, table[1:], strict=True):
        lines.append(_line(line, widths))
        if run.reason:
            lines += textwrap.wrap(
                run.reason,
                100,
                initial_indent="    ",
                subsequent_indent="    ",
                break_long_words=False,
            )
    states = [run.state for run in runs]
    counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
    return "\n".join([*lines, "", f"{len(runs)} runs: {counts}"]) + "\n"


def cells(run: RunStatus) -> tuple[str, ...]:
    """A run under ``HEADINGS``; what is not known stays blank."""
    step = f"{run.step}/{run.steps}" if run.step is not None else f"-/{run.steps}"
    speed = "" if run.steps_per_second is None else f"{run.steps_per_second:.3g}"
    tokens = "" if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f}"
    spent = "" if run.seconds is None else duration(run.seconds)
    left = "" if run.seconds_left is None else duration(run.seconds_left)
    return run.row, str(run.seed), run.state, step, speed, tokens, spent, left


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if heading in LEFT_ALIGNED else cell.rjust(width)
        for cell, width, heading in zip(cells, widths, HEADINGS, strict=True)
    ]
    return "  ".join(padded).rstrip()


COMMAND = command.Command(
    name="status",
    summary="The state, step, speed and time left of every run.",
    examples=(
        "python -m experiments.status --workdir=runs/table3",
        "python -m experiments.status --workdir=runs/table3 --format=json",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
