"""One row of a table: what it changes, where its runs stand, what they measured."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.columns import (
    PAPER_COLUMNS,
    cell,
    other_changes,
    row_differences,
    unread,
)
from transformer_ablation.report.consistency import vocabulary_hash
from transformer_ablation.report.selection import Chosen
from transformer_ablation.report.significance import RowTests

Status = Callable[[Mapping[str, Any]], str]

# The first state of this list that a run of the row is in is the row's.
STATE_ORDER = ("running interrupted failed diverged preempted pending finished").split()
DELTAS = ("ppl", "bleu", "paper_ppl", "paper_bleu")
# Of a field that the row's architecture does not read.
UNREAD_CELL = "–"
NO_PAPER = dict.fromkeys(
    ("ppl", "bleu", "parameters_millions", "bleu_test", "training_flops")
)


def quantity_names(metric: str) -> dict[str, str]:
    """What readers are told for ``bleu`` and ``ppl``; BLEU by how it was counted."""
    return {"bleu": "BLEU" if metric == "bleu" else "paper-BLEU", "ppl": "PPL"}


@dataclasses.dataclass(frozen=True)
class Measure:
    """One quantity of a row: ``{seed: value}`` of its finished runs."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float | None:
        """Over the finished seeds; None without any."""
        return statistics.fmean(self.values.values()) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation (n - 1); None for fewer than two seeds."""
        many = len(self.values) >= 2
        return statistics.stdev(self.values.values()) if many else None


@dataclasses.dataclass(frozen=True)
class RunState:
    """Where one run of a row stands; ``step`` is None where not known."""

    seed: int
    state: str
    step: int | None
    reason: str | None


@dataclasses.dataclass(frozen=True)
class TableRow:
    """One row: what it changes, what was measured, what the paper has."""

    name: str
    group: str
    label: str
    config: Mapping[str, Any]
    cells: Mapping[str, str]  # fields by heading; blank where equal to base
    other: str  # changes that no column says
    changes: str  # changes that no column of the paper says
    is_base: bool
    runs: Sequence[RunState]
    ppl: Measure
    bleu: Measure
    bleu_test: Measure
    averaged: Measure  # BLEU of more checkpoints than the config averages
    averaged_steps: Mapping[int, Sequence[int]]  # by seed: those checkpoints
    ppl_comparable: bool  # scored with base's vocabulary
    parameters: Mapping[str, int] | None
    seconds: Mapping[str, float | None]  # means over finished runs
    device_seconds: float | None  # mean training time times devices, of those
    training_flops: int | None  # of the matrix products of one run
    paper: Mapping[str, float | None]
    # Parameters as the paper may have counted them: first_code, text.
    paper_counts: Mapping[str, int] | None
    deltas: Mapping[str, float | None]  # ppl, bleu, paper_ppl, paper_bleu
    tests: RowTests = dataclasses.field(default_factory=RowTests)
    marks: Sequence[str] = ()  # what it mixes, where the user insisted on showing it

    @property
    def steps(self) -> int:
        """Updates a complete run of this row takes."""
        return self.config["train"]["steps"]

    @property
    def state(self) -> str:
        """``finished`` when every run is, else the most telling other state."""
        return min((r.state for r in self.runs), key=STATE_ORDER.index)

    @property
    def reason(self) -> str | None:
        """Why runs of this row have no numbers, or None."""
        several = len(self.runs) > 1
        reasons = [
            f"seed {r.seed}: {r.reason}" if several else r.reason
            for r in self.runs
            if r.reason
        ]
        return "; ".join(reasons) or None


def comparable(rows: Sequence[TableRow]) -> list[TableRow]:
    """Rows but base whose differences to it count: none that mixes, or if base does."""
    if any(row.is_base and row.marks for row in rows):
        return []
    return [row for row in rows if not (row.is_base or row.marks)]


def paper_values(row: Mapping[str, Any]) -> dict[str, float | None]:
    """The paper's numbers for a row of ``sweep.json``; null where it has none."""
    return {**NO_PAPER, **(row["paper"] or {})}


def make_row(
    sweep: Mapping[str, Any],
    row: Mapping[str, Any],
    columns: Mapping[str, str],
    records: Iterable[Mapping[str, Any]],
    chosen: Chosen,
    status: Status,
) -> TableRow:
    """The row without its differences to base, which need base's row.

    Args:
      sweep, row: ``sweep.json`` and its entry for this row.
      columns: headings and fields of the config columns.
      records: of all rows; ``status`` says the state of one.
    """
    name, config = row["name"], row["config"]
    mine = {r["seed"]: r for r in records if r["row"] == name}
    seeds = sorted({*row.get("seeds", sweep["seeds"]), *mine})
    differing = row_differences(sweep["config"], config)
    is_base = not differing
    unread_here = unread(config) - unread(sweep["config"])

    def measure(quantity: str) -> Measure:
        keys = [(name, seed, quantity) for seed in seeds]
        return Measure({k[1]: chosen[k][1]["value"] for k in keys if k in chosen})

    # What a run had, else what was counted when the sweep was planned.
    counts = [*(r["parameters"] for r in mine.values()), row.get("parameters")]
    flops = [*(r["flops"] for r in mine.values()), row.get("flops")]
    return TableRow(
        name=name,
        group=row["group"],
        label=row["label"],
        config=config,
        cells={
            heading: cell(path, _value(config, path))
            for heading, path in columns.items()
            if is_base or path in differing or path in unread_here
        },
        other=other_changes(sweep["config"], config, columns),
        changes=other_changes(sweep["config"], config, PAPER_COLUMNS),
        is_base=is_base,
        runs=[_run_state(seed, mine.get(seed), status) for seed in seeds],
        ppl=measure("ppl"),
        bleu=measure("bleu"),
        bleu_test=measure("bleu_test"),
        averaged=measure("averaged"),
        averaged_steps={
            seed: chosen[name, seed, "averaged"][1]["steps"]
            for seed in seeds
            if (name, seed, "averaged") in chosen
        },
        ppl_comparable=True,
        parameters=next(filter(None, counts), None),
        seconds=_seconds(
            finished := [r for r in mine.values() if status(r) == "finished"]
        ),
        device_seconds=_device_seconds(finished),
        training_flops=next((found["training"] for found in flops if found), None),
        paper=paper_values(row),
        paper_counts=row.get("paper_counts"),
        deltas={},
    )


def _value(config: Mapping[str, Any], path: str) -> Any:
    if path in unread(config):
        return UNREAD_CELL
    section, _, field = path.partition(".")
    return config[section][field]


def _run_state(
    seed: int,
    record: Mapping[str, Any] | None,
    status: Status,
) -> RunState:
    if record is None:
        return RunState(seed, "pending", None, None)
    return RunState(seed, status(record), record["step"], record["reason"])


def _seconds(finished: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Mean seconds of each phase and of their sum; None where one is not known."""
    means: dict[str, float | None] = {}
    for phase in ("compile", "train", "evaluate"):
        values = [(r["seconds"] or {}).get(phase) for r in finished]
        known = [v for v in values if v is not None]
        means[phase] = statistics.fmean(known) if known else None
    parts = [v for v in means.values() if v is not None]
    means["total"] = math.fsum(parts) if len(parts) == 3 else None
    return means


def _device_seconds(finished: Sequence[Mapping[str, Any]]) -> float | None:
    """Mean over runs of training time, compiling included, times devices.

    Each session of a run counts with the devices that it had.
    """
    values = [(record["device"] or {}).get("seconds") for record in finished]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def with_deltas(
    row: TableRow, base: TableRow | None, finished: Iterable[Mapping[str, Any]]
) -> TableRow:
    """The row with its differences to base, the paper's beside ours."""
    if base is None:
        return dataclasses.replace(row, deltas=dict.fromkeys(DELTAS))
    hashes: dict[str, set] = {row.name: set(), base.name: set()}
    for record in finished:
        if record["row"] in hashes:
            hashes[record["row"]].add(vocabulary_hash(record))
    comparable = len((hashes[row.name] | hashes[base.name]) - {None}) <= 1
    deltas = {
        "ppl": _paired(row.ppl, base.ppl) if comparable else None,
        "bleu": _paired(row.bleu, base.bleu),
        "paper_ppl": _difference(row.paper["ppl"], base.paper["ppl"]),
        "paper_bleu": _difference(row.paper["bleu"], base.paper["bleu"]),
    }
    return dataclasses.replace(row, deltas=deltas, ppl_comparable=comparable)


def _paired(ours: Measure, base: Measure) -> float | None:
    """The mean difference over the seeds that both have."""
    seeds = ours.values.keys() & base.values.keys()
    differences = [ours.values[seed] - base.values[seed] for seed in sorted(seeds)]
    return statistics.fmean(differences) if differences else None


def _difference(ours: float | None, base: float | None) -> float | None:
    return None if ours is None or base is None else ours - base
