"""Where every run of a workdir stands, from records and the newest metrics."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report.metrics import last_metrics
from transformer_ablation.report.record import (
    RecordError,
    live_status,
    read_records,
    read_sweep,
    run_directory,
)


@dataclasses.dataclass(frozen=True)
class RunStatus:
    """One run; what is not known is None. ``seconds`` are those spent so far.

    ``reason`` of a running one is what it does after its last update.
    """

    row: str
    group: str
    label: str
    seed: int
    state: str
    reason: str | None
    step: int | None
    steps: int
    steps_per_second: float | None
    tokens_per_second: float | None
    seconds: float | None
    seconds_left: float | None
    parameters: Mapping[str, int] | None
    config: Mapping[str, Any]


def read_status(workdir: str | Path) -> list[RunStatus]:
    """Every run of a workdir: the sweep's in its order, then others on disk.

    Raises:
      RecordError: for a missing folder, one without runs, or a broken file.
    """
    workdir = Path(workdir)
    if not workdir.is_dir():
        raise RecordError(f"{workdir}: no such folder; give the --workdir of a sweep")
    sweep = read_sweep(workdir)
    records = {(r["row"], r["seed"]): r for r in read_records(workdir)}
    if sweep is None and not records:
        raise RecordError(
            f"{workdir}: holds neither sweep.json nor a run; give the --workdir of a "
            "sweep, or start one there with python -m experiments.sweep"
        )
    planned = {
        (row["name"], seed): row
        for row in (sweep["rows"] if sweep else ())
        for seed in row.get("seeds", sweep["seeds"] if sweep else ())
    }
    statuses = [
        _recorded(workdir, records[key]) if key in records else _pending(key[1], row)
        for key, row in planned.items()
    ]
    others = [record for key, record in records.items() if key not in planned]
    return statuses + [_recorded(workdir, record) for record in others]


def _pending(seed: int, row: Mapping[str, Any]) -> RunStatus:
    return RunStatus(
        row=row["name"],
        group=row["group"],
        label=row["label"],
        seed=seed,
        state="pending",
        reason=None,
        step=None,
        steps=row["config"]["train"]["steps"],
        steps_per_second=None,
        tokens_per_second=None,
        seconds=None,
        seconds_left=None,
        parameters=None,
        config=row["config"],
    )


def _recorded(workdir: Path, record: Mapping[str, Any]) -> RunStatus:
    metrics = last_metrics(run_directory(workdir, record["row"], record["seed"]))
    state = live_status(record)
    steps = record["config"]["train"]["steps"]
    step, speed = record["step"], steps_per_second(metrics)
    if state == "running":
        step = max([e["step"] for e in metrics] + [step or 0])
    # After the last update comes the scoring, of which no metric tells.
    going = state == "running" and speed and step < steps
    return RunStatus(
        row=record["row"],
        group=record["group"],
        label=record["label"],
        seed=record["seed"],
        state=state,
        reason=record["reason"],
        step=step,
        steps=steps,
        steps_per_second=speed,
        tokens_per_second=_tokens_per_second(record, metrics),
        seconds=_seconds(record, metrics),
        seconds_left=(steps - step) / speed if going else None,
        parameters=record["parameters"],
        config=record["config"],
    )


def steps_per_second(metrics: Sequence[Mapping[str, Any]]) -> float | None:
    """Updates a second over the newest stretch without a restart, or None."""
    points = [(e["step"], e["seconds"]) for e in metrics if e["tag"] == "train/loss"]
    if len(points) < 2:
        return None
    last = first = points[-1]
    for point in reversed(points[:-1]):
        if point[0] >= first[0] or point[1] >= first[1]:
            break
        first = point
    return (last[0] - first[0]) / (last[1] - first[1]) if first != last else None


def _tokens_per_second(
    record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]
) -> float | None:
    if record["tokens_per_second"] is not None:
        return record["tokens_per_second"]
    values = [e["value"] for e in metrics if e["tag"] == "train/tokens_per_second"]
    return values[-1] if values else None


def _seconds(
    record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]
) -> float | None:
    """All phases of the record as far as known, else training by the metrics."""
    known = [v for v in (record["seconds"] or {}).values() if v is not None]
    if known:
        return sum(known)
    return metrics[-1]["seconds"] if metrics else None
