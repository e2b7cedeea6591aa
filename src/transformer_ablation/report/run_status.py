"""Where every run of a workdir stands, from records and the newest metrics."""

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report.metrics import METRICS_FILE, last_metrics
from transformer_ablation.report.record import (
    RECORD_FILE,
    RecordError,
    live_status,
    read_records,
    read_sweep,
    run_directory,
)

# A process that does a run writes into its folder every ten seconds.
STALE_SECONDS = 300.0
LOG_FILE = "log.txt"
LOG_LINES = 5
LOG_BYTES = 1 << 14
SIGNS = (RECORD_FILE, METRICS_FILE, LOG_FILE, "claim-*.json")

# Who holds the run of a folder, or None.
HolderOf = Callable[[Path], str | None]


@dataclasses.dataclass(frozen=True)
class RunStatus:
    """One run; what is not known is None. ``seconds`` are those spent so far.

    ``state`` is one of a record, or ``interrupted``: its process of this machine is
    gone; or ``stale``: said to be running, without a sign of life for five minutes.
    ``sign_seconds`` is the age of the last file that it wrote. ``reason`` of a running
    one is what it does after its last update. ``log`` are the last lines printed by
    one that did not go well. ``held_by`` is the process that has its claim.
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
    loss: float | None
    tokens_per_second: float | None
    seconds: float | None
    seconds_left: float | None
    sign_seconds: float | None
    held_by: str | None
    log: Sequence[str]
    parameters: Mapping[str, int] | None
    config: Mapping[str, Any]


def read_status(
    workdir: str | Path, holder_of: HolderOf = lambda folder: None
) -> list[RunStatus]:
    """Every run of a workdir: the sweep's in its order, then others on disk.

    Raises:
      RecordError: for a missing folder, one without runs, or a broken file.
    """
    workdir = Path(workdir)
    if not workdir.is_dir():
        raise RecordError(f"{workdir}: no such folder; name that of a sweep")
    sweep = read_sweep(workdir)
    records = {(r["row"], r["seed"]): r for r in read_records(workdir)}
    if sweep is None and not records:
        raise RecordError(
            f"{workdir}: holds neither sweep.json nor a run; name the folder of a "
            "sweep, or start one there with python -m experiments.sweep"
        )
    planned = {
        (row["name"], seed): row
        for row in (sweep["rows"] if sweep else ())
        for seed in row.get("seeds", sweep["seeds"] if sweep else ())
    }
    statuses = [
        _recorded(workdir, records[key], holder_of)
        if key in records
        else _pending(workdir, key[1], row, holder_of)
        for key, row in planned.items()
    ]
    others = [record for key, record in records.items() if key not in planned]
    return statuses + [_recorded(workdir, record, holder_of) for record in others]


def _pending(
    workdir: Path, seed: int, row: Mapping[str, Any], holder_of: HolderOf
) -> RunStatus:
    folder = run_directory(workdir, row["name"], seed)
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
        loss=None,
        tokens_per_second=None,
        seconds=None,
        seconds_left=None,
        sign_seconds=sign_seconds(folder),
        held_by=holder_of(folder),
        log=(),
        parameters=None,
        config=row["config"],
    )


def _recorded(
    workdir: Path, record: Mapping[str, Any], holder_of: HolderOf
) -> RunStatus:
    folder = run_directory(workdir, record["row"], record["seed"])
    metrics, state, sign = (
        last_metrics(folder),
        live_status(record),
        sign_seconds(folder),
    )
    if state == "running" and sign is not None and sign > STALE_SECONDS:
        state = "stale"
    steps = record["config"]["train"]["steps"]
    step, speed = record["step"], steps_per_second(metrics)
    if state in ("running", "stale"):
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
        loss=_last(metrics, "train/loss"),
        tokens_per_second=_tokens_per_second(record, metrics),
        seconds=_seconds(record, metrics),
        seconds_left=(steps - step) / speed if going else None,
        sign_seconds=sign,
        held_by=holder_of(folder),
        log=log_tail(folder) if state in ("failed", "stale", "interrupted") else (),
        parameters=record["parameters"],
        config=record["config"],
    )


def sign_seconds(folder: Path) -> float | None:
    """Seconds since a run last wrote something, by this machine's clock."""
    times = []
    for pattern in SIGNS:
        for path in folder.glob(pattern):
            try:
                times.append(os.stat(path).st_mtime)
            except FileNotFoundError:
                continue
    return max(0.0, time.time() - max(times)) if times else None


def log_tail(folder: Path) -> list[str]:
    """The last lines of what a run's process printed."""
    try:
        with open(folder / LOG_FILE, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    # Whatever a library printed, it moves no cursor here.
    lines = [
        "".join(c if c.isprintable() else " " for c in s) for s in text.split("\n")
    ]
    return [line.rstrip() for line in lines if line.strip()][-LOG_LINES:]


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
    return _last(metrics, "train/tokens_per_second")


def _last(metrics: Sequence[Mapping[str, Any]], tag: str) -> float | None:
    values = [e["value"] for e in metrics if e["tag"] == tag]
    return values[-1] if values else None


def _seconds(
    record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]
) -> float | None:
    """All phases of the record as far as known, else training by the metrics."""
    known = [v for v in (record["seconds"] or {}).values() if v is not None]
    if known:
        return sum(known)
    return metrics[-1]["seconds"] if metrics else None
