"""What a sweep will cost, from its configs alone: no data, no device."""

import dataclasses
import textwrap
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol

from transformer_ablation.config import Config, ModelConfig, to_mapping
from transformer_ablation.sweep.identity import training
from transformer_ablation.sweep.rows import ExpandedRow
from transformer_ablation.sweep.runs import FINAL

# Parameters and Adam's two moments, 4 bytes each.
CHECKPOINT_BYTES_PER_PARAMETER = 12
NOTE_WIDTH = 120
# Of two cores of a laptop, in single precision.
DEFAULT_FLOPS_PER_SECOND = 4e10

ParameterCounts = Callable[[ModelConfig, int], dict[str, int]]
PaperCounts = Callable[[ModelConfig], dict[str, int]]
StepFlops = Callable[[Config], int]


class StepTimes(Protocol):
    """Times of updates from a few that were measured, and a word on which."""

    text: str

    def seconds(self, flops: int) -> float: ...


@dataclasses.dataclass(frozen=True)
class RowPlan:
    """One row; costs are those of one of its runs (one seed)."""

    item: ExpandedRow
    parameters: dict[str, int]
    paper_counts: dict[str, int]
    flops_per_step: int
    memory_bytes: int
    seconds: float
    states: dict[int, str]

    @property
    def steps(self) -> int:
        """Updates of the parameters."""
        return self.item.config.train.steps

    @property
    def target_tokens(self) -> int:
        """At most this many target positions are read, padding included."""
        return self.steps * self.item.config.data.tokens_per_batch

    @property
    def flops(self) -> int:
        """Operations of the training."""
        return self.steps * self.flops_per_step

    @property
    def disk_bytes(self) -> int:
        """Bytes of the checkpoints kept."""
        kept = self.item.config.train.keep_checkpoints
        return CHECKPOINT_BYTES_PER_PARAMETER * self.parameters["total"] * kept

    @property
    def training(self) -> str:
        """What rows have in common that differ in decoding alone."""
        return training(self.item.config)

    @property
    def runs_left(self) -> int:
        """Seeds without a result."""
        return sum(state not in FINAL for state in self.states.values())


@dataclasses.dataclass(frozen=True)
class Plan:
    """All rows of a sweep and the rate their times assume.

    ``measured`` says what the times were taken from instead, if they were.
    """

    title: str
    rows: tuple[RowPlan, ...]
    flops_per_second: float
    measured: str | None = None

    def left(self, quantity: str) -> float:
        """A quantity of RowPlan summed over all runs that are not finished.

        Time and FLOPs are of training, which rows that decode otherwise share.
        """
        if quantity not in ("flops", "seconds"):
            return sum(getattr(row, quantity) * row.runs_left for row in self.rows)
        return left_to_train(
            ((row.training, seed), state, getattr(row, quantity))
            for row in self.rows
            for seed, state in row.states.items()
        )

    @property
    def shared(self) -> list[list[str]]:
        """Names of rows that are trained once, of each such training."""
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            groups.setdefault(row.training, []).append(row.item.row.name)
        return [names for names in groups.values() if len(names) > 1]


def left_to_train(runs: Iterable[tuple[Hashable, str | None, float]]) -> float:
    """What the trainings that are to come cost in all.

    Each run is what it trains, its state and its cost: what a finished run has trained,
    or an earlier one of these will, is not trained again.
    """
    runs = list(runs)
    trained = {key for key, state, _ in runs if state == "finished"}
    total = 0.0
    for key, state, cost in runs:
        if state not in FINAL and key not in trained:
            trained.add(key)
            total += cost
    return total


def make_plan(
    title: str,
    expanded: Sequence[ExpandedRow],
    seeds: Sequence[int],
    *,
    parameter_counts: ParameterCounts,
    paper_counts: PaperCounts,
    step_flops: StepFlops,
    update_memory: StepFlops,
    measured: StepTimes | None = None,
    flops_per_second: float = DEFAULT_FLOPS_PER_SECOND,
    state_of: Callable[[ExpandedRow, int], str] = lambda item, seed: "pending",
) -> Plan:
    """Count every row; ``state_of(row, seed)`` says what is already finished."""
    rows = []
    for item in expanded:
        config = item.config
        step = step_flops(config)
        seconds = measured.seconds(step) if measured else step / flops_per_second
        rows.append(
            RowPlan(
                item=item,
                parameters=parameter_counts(config.model, config.data.vocabulary_size),
                paper_counts=paper_counts(config.model),
                flops_per_step=step,
                memory_bytes=update_memory(config),
                seconds=config.train.steps * seconds,
                states={seed: state_of(item, seed) for seed in seeds},
            )
        )
    text = measured.text if measured else None
    return Plan(title, tuple(rows), flops_per_second, text)


def as_json(plan: Plan) -> dict[str, Any]:
    """One object; ``rows`` has an entry a row, its figures for one seed."""
    return {
        "title": plan.title,
        "flops_per_second": None if plan.measured else plan.flops_per_second,
        "times": plan.measured or "from FLOPs",
        "runs": sum(len(row.states) for row in plan.rows),
        "runs_left": sum(row.runs_left for row in plan.rows),
        "seconds_left": plan.left("seconds"),
        "rows": [_row_json(row) for row in plan.rows],
    }


def _row_json(row: RowPlan) -> dict[str, Any]:
    paper = row.item.paper
    return {
        "row": row.item.row.name,
        "group": row.item.row.group,
        "label": row.item.row.label,
        "seeds": list(row.states),
        "states": {str(seed): state for seed, state in row.states.items()},
        "changes": row.item.changed,
        "config": to_mapping(row.item.config),
        "parameters": row.parameters,
        "paper_counts": row.paper_counts,
        "steps": row.steps,
        "target_tokens": row.target_tokens,
        "flops": {"per_step": row.flops_per_step, "training": row.flops},
        "seconds": row.seconds,
        "memory_bytes": row.memory_bytes,
        "budget_reason": row.item.row.budget_reason,
        "disk_bytes": row.disk_bytes,
        "paper": None if paper is None else dataclasses.asdict(paper),
    }


def as_text(plan: Plan, notes: Sequence[str] = ()) -> str:
    """A table for people, what its figures mean, and more ``notes``."""
    head = [
        "row",
        "changes",
        "parameters",
        "steps",
        "target positions",
        "FLOPs",
        "time",
    ]
    cells = [[*head, "memory", "disk", "finished"], *(_cells(row) for row in plan.rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = [plan.title, ""]
    for line in cells:
        left = [
            cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)
        ]
        right = [c.rjust(w) for c, w in zip(line[2:], widths[2:], strict=True)]
        lines.append("  ".join(left + right).rstrip())
    told = [line for note in [*_notes(plan), *notes] for line in _wrapped(note)]
    return "\n".join([*lines, "", *told])


def _wrapped(note: str) -> list[str]:
    """As the notes of a table; what is to be copied, a path or a flag, is not cut."""
    return textwrap.wrap(
        note,
        NOTE_WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _cells(row: RowPlan) -> list[str]:
    changed = row.item.changed.items()
    changes = ", ".join(f"{path.partition('.')[2]}={v}" for path, v in changed)
    done = sum(state == "finished" for state in row.states.values())
    return [
        row.item.row.name,
        changes,
        f"{row.parameters['total']:,}",
        f"{row.steps:,}",
        f"{row.target_tokens:.2e}",
        f"{row.flops:.2e}",
        duration(row.seconds),
        size(row.memory_bytes),
        size(row.disk_bytes),
        f"{done}/{len(row.states)}",
    ]


def _notes(plan: Plan) -> list[str]:
    runs = sum(len(row.states) for row in plan.rows)
    left = sum(row.runs_left for row in plan.rows)
    return [
        f"{counted(runs, 'run')} ({counted(len(plan.rows), 'row')}), {left} to do: "
        f"{plan.left('flops'):.2e} FLOPs, about {duration(plan.left('seconds'))}, "
        f"{size(plan.left('disk_bytes'))} of checkpoints.",
        _parameters(plan.rows[0]),
        *_budgets(plan),
        *[f"Trained once: {', '.join(names)}." for names in plan.shared],
        f"{_times(plan)}, one run after the other, and leave out compiling and "
        "scoring; figures of a row are for one seed. Memory is an estimate for an "
        "update on one device; n devices hold the parameters each and share the rest. "
        "Positions include padding; FLOPs "
        f"are for full batches of {' or '.join(_row_kinds(plan))}.",
    ]


def _times(plan: Plan) -> str:
    if plan.measured:
        return f"Times are {plan.measured}"
    return (
        f"Times assume {plan.flops_per_second:.3g} FLOP/s sustained (change it with "
        "--flops_per_second, or measure with --measure)"
    )


def _budgets(plan: Plan) -> list[str]:
    """Rows that train on more or less than base, and why."""
    reasons: dict[str, list[str]] = {}
    for row in plan.rows:
        if row.item.row.budget_reason:
            reasons.setdefault(row.item.row.budget_reason, []).append(row.item.row.name)
    told = [f"{', '.join(names)} ({reason})" for reason, names in reasons.items()]
    return [f"Another budget than base's: {', '.join(told)}."] if told else []


def _parameters(row: RowPlan) -> str:
    """The parameters of a row by group, and as the paper may have counted them."""
    groups = [
        f"{name.replace('_', ' ')} {count:,}"
        for name, count in row.parameters.items()
        if name != "total" and count
    ]
    told, counts = f"Parameters of {row.item.row.name}: {', '.join(groups)}.", ""
    if row.paper_counts:
        code, text = (row.paper_counts[way] / 1e6 for way in ("first_code", "text"))
        counts = (
            " With the embedding rows and biases of the authors' first code "
            f"{code:.1f} million, with the text's 37,000 rows {text:.1f} million."
        )
    return f"{told}{counts} Those of every row: --format=json."


def _row_kinds(plan: Plan) -> list[str]:
    """What the rows of batches are taken to hold, of all rows of the table."""
    lengths = {row.item.config.data.packed_length for row in plan.rows}
    packed = sorted(length for length in lengths if length is not None)
    kinds = [f"packed rows of {length} positions" for length in packed]
    return ["sentences of 30 pieces"] * (None in lengths) + kinds


def counted(number: int, thing: str) -> str:
    """``1 run``, ``2,000 runs``."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.4 h`` or ``2.1 days``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:,.1f} days"


def size(count: float) -> str:
    """Bytes with a decimal unit: ``780 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
