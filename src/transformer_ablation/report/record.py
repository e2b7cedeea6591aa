"""``record.json`` of a run and ``sweep.json`` of a sweep: plain data, written whole.

A value that is not known is null, never 0. Floats that are not finite cannot be said
in JSON: they are stored as null and ``reason`` names them.
"""

import difflib
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.config import SECTIONS
from transformer_ablation.process import is_gone, this_process
from transformer_ablation.report.json_file import (
    RecordError,
    finite,
    locked,
    read_json,
    write_json,
)

RECORD_FILE = "record.json"
SWEEP_FILE = "sweep.json"
STATUSES = ("pending", "running", "finished", "failed", "diverged", "preempted")

RECORD_KEYS = (
    "results_version row group label seed status reason identity config command commit "
    "packages device process parameters flops data step seconds tokens "
    "tokens_per_second scores"
).split()
# What each process of a run says of itself; the record's own are the last one's.
SESSION_KEYS = ("commit", "command", "packages", "device")
METRICS = ("ppl", "bleu", "bleu_paper")
SCORE_KEYS = (
    "split metric value sentences target_tokens steps decode signature unfinished"
).split()
SWEEP_KEYS = "results_version title config rows seeds packages".split()
SWEEP_ROW_KEYS = "name group label changes paper config".split()


def run_directory(workdir: str | Path, row: str, seed: int) -> Path:
    """``WORKDIR/runs/ROW/seedK``."""
    return Path(workdir) / "runs" / row / f"seed{seed}"


def new_record(
    *,
    results_version: int,
    row: str,
    group: str,
    label: str,
    seed: int,
    identity: str,
    config: Mapping[str, Any],
    command: list[str] | str | None = None,
    commit: Mapping[str, Any] | None = None,
    packages: Mapping[str, str | None] | None = None,
    **known: Any,
) -> dict[str, Any]:
    """A pending record of this process, with every key; ``known`` fills others.

    Raises:
      RecordError: for a name in ``known`` that no record has.
    """
    record: dict[str, Any] = {
        **dict.fromkeys(RECORD_KEYS),
        "results_version": results_version,
        "row": row,
        "group": group,
        "label": label,
        "seed": seed,
        "status": "pending",
        "identity": identity,
        "config": dict(config),
        "command": command,
        "commit": commit,
        "packages": packages,
        "process": this_process(),
        "seconds": {"compile": None, "train": None, "evaluate": None},
        "tokens": {"source": None, "target": None, "real": None},
        "scores": [],
        "trained_as": None,  # the run whose checkpoints it took, or None
        "sessions": None,  # see ``sessions``
    }
    return _changed(record, known, "new record")


def new_score(
    split: str,
    metric: str,
    value: float,
    *,
    sentences: int,
    steps: Iterable[int],
    target_tokens: int | None = None,
    decode: Mapping[str, Any] | None = None,
    signature: str | None = None,
    unfinished: int | None = None,
) -> dict[str, Any]:
    """One entry of ``scores``; ``steps`` are the checkpoints averaged.

    ``target_tokens`` belongs to ``ppl``; ``decode``, ``signature`` and ``unfinished``
    (hypotheses that hit the length cap) belong to ``bleu``, which is sacreBLEU, and
    to ``bleu_paper``, which is the paper's way; see ``evaluate/bleu.py``.
    """
    if metric not in METRICS:
        allowed = ", ".join(METRICS)
        raise RecordError(f"score metric {metric!r} is not allowed; one of {allowed}")
    return {
        "split": split,
        "metric": metric,
        "value": value,
        "sentences": sentences,
        "target_tokens": target_tokens,
        "steps": list(steps),
        "decode": None if decode is None else dict(decode),
        "signature": signature,
        "unfinished": unfinished,
    }


def write_record(directory: str | Path, record: Mapping[str, Any]) -> None:
    """Replaces ``record.json`` of a run directory in one step (made if needed).

    Raises:
      RecordError: for a record with missing keys or an unknown status; the file
        that was there is kept.
    """
    path = Path(directory) / RECORD_FILE
    _check_record(path, record)
    lost: list[str] = []
    stored = finite(record, "", lost)
    if lost:
        note = f"not a finite number, stored as null: {', '.join(lost)}"
        stored["reason"] = "; ".join(filter(None, [stored["reason"], note]))
    write_json(path, stored)


def update_record(
    directory: str | Path,
    added_scores: Iterable[Mapping[str, Any]] = (),
    **changes: Any,
) -> dict[str, Any]:
    """Changes keys of a stored record and returns it as written.

    Each of ``added_scores`` takes the place of the same one there. Other processes may
    change the record at the same time: nothing is lost.

    Raises:
      RecordError: where there is no record, or for a key no record has.
    """
    new, path = [dict(score) for score in added_scores], Path(directory) / RECORD_FILE
    if not path.exists():
        raise RecordError(f"{path}: missing; write a new record first")
    with locked(path):
        record = _changed(read_record(directory) or {}, changes, str(path))
        keys = [_score_key(score) for score in new]
        kept = [old for old in record["scores"] if _score_key(old) not in keys]
        write_record(directory, {**record, "scores": [*kept, *new]})
        return read_record(directory) or {}


def add_scores(directory: str | Path, scores: Iterable[Mapping[str, Any]]) -> None:
    """Adds scores to a stored record, as ``update_record`` does."""
    update_record(directory, scores)


def restart_record(
    directory: str | Path,
    record: Mapping[str, Any],
    carried: Callable[[dict[str, Any] | None], Mapping[str, Any]],
) -> None:
    """Writes the record of a run that starts or goes on, in one step.

    ``carried`` is given the stored record, or None, and says what of it stays.
    """
    with locked(Path(directory) / RECORD_FILE):
        kept = carried(read_record(directory))
        write_record(directory, _changed(dict(record), kept, str(directory)))


def sessions(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Which processes made the run, in order: ``from_step`` and ``SESSION_KEYS``.

    Those whose updates were lost, as no checkpoint had them, are not among them.
    """
    own = {"from_step": 0, **{key: record[key] for key in SESSION_KEYS}}
    return [dict(each) for each in record.get("sessions") or [own]]


def _score_key(score: Mapping[str, Any]) -> list[Any]:
    """What makes two scores the same: text, metric, checkpoints and decoding."""
    return [score[key] for key in ("split", "metric", "steps", "decode")]


def read_record(directory: str | Path) -> dict[str, Any] | None:
    """The record of a run directory, or None where it has none.

    Raises:
      RecordError: for a file that is not JSON or misses keys.
    """
    path = Path(directory) / RECORD_FILE
    record = read_json(path)
    if record is not None:
        _check_record(path, record)
    return record


def read_records(workdir: str | Path) -> list[dict[str, Any]]:
    """Every record under ``WORKDIR/runs/ROW/seedK``, by row name and seed.

    Raises:
      RecordError: for a broken record, or one that is another run's than its folder.
    """
    records = []
    for path in sorted(Path(workdir).glob(f"runs/*/seed*/{RECORD_FILE}")):
        if not re.fullmatch(r"seed\d+", path.parent.name):
            continue  # a copy that someone has put aside
        record = read_record(path.parent)
        if record is None:
            continue
        if path.parent != run_directory(workdir, record["row"], record["seed"]):
            raise RecordError(
                f"{path}: is the record of row {record['row']!r}, seed "
                f"{record['seed']}; move the folder back to "
                f"runs/{record['row']}/seed{record['seed']} or remove it"
            )
        records.append(record)
    return sorted(records, key=lambda r: (r["row"], r["seed"]))


def write_sweep(workdir: str | Path, sweep: Mapping[str, Any]) -> None:
    """Replaces ``sweep.json`` of a workdir in one step (made if needed)."""
    path = Path(workdir) / SWEEP_FILE
    _check_sweep(path, sweep)
    write_json(path, finite(sweep, "", []))


def read_sweep(workdir: str | Path) -> dict[str, Any] | None:
    """``sweep.json`` of a workdir, or None where there is none.

    Raises:
      RecordError: for a file that is not JSON or misses keys.
    """
    path = Path(workdir) / SWEEP_FILE
    sweep = read_json(path)
    if sweep is not None:
        _check_sweep(path, sweep)
    return sweep


def live_status(record: Mapping[str, Any]) -> str:
    """The record's status, or ``interrupted`` where its process is gone.

    Only a process of this machine can be looked up; others are believed.
    """
    process = record["process"] or {}
    if record["status"] != "running" or process.get("host") != socket.gethostname():
        return record["status"]
    return "interrupted" if is_gone(process) else "running"


def _check_record(path: Path, record: Any) -> None:
    _check_keys(path, "record", record, RECORD_KEYS)
    if record["status"] not in STATUSES:
        raise RecordError(
            f"{path}: status {record['status']!r} is not allowed; "
            f"one of {', '.join(STATUSES)}"
        )
    for key, kind in (("row", str), ("seed", int), ("config", dict), ("scores", list)):
        if not isinstance(record[key], kind):
            raise RecordError(f"{path}: {key} must be a {kind.__name__}")
    _check_config(path, "config", record["config"])
    for i, score in enumerate(record["scores"]):
        _check_keys(path, f"scores[{i}]", score, SCORE_KEYS)
        if type(score["value"]) not in (int, float, type(None)):
            raise RecordError(f"{path}: scores[{i}].value must be a number or null")


def _check_sweep(path: Path, sweep: Any) -> None:
    _check_keys(path, "sweep", sweep, SWEEP_KEYS)
    for key in ("rows", "seeds"):
        if not isinstance(sweep[key], list | tuple) or not sweep[key]:
            raise RecordError(f"{path}: {key} must be a list with at least one entry")
    _check_config(path, "config", sweep["config"])
    for i, row in enumerate(sweep["rows"]):
        _check_keys(path, f"rows[{i}]", row, SWEEP_ROW_KEYS)
        _check_config(path, f"rows[{i}].config", row["config"])


def _check_config(path: Path, what: str, config: Any) -> None:
    """A config as nested mappings with every section."""
    _check_keys(path, what, config, SECTIONS)
    for section in SECTIONS:
        _check_keys(path, f"{what}.{section}", config[section], ())


def _check_keys(path: Path, what: str, value: Any, keys: Iterable[str]) -> None:
    if not isinstance(value, Mapping):
        raise RecordError(f"{path}: {what} must be a JSON object")
    missing = [key for key in keys if key not in value]
    if missing:
        raise RecordError(f"{path}: {what} lacks {', '.join(missing)}")


def _changed(
    record: dict[str, Any], changes: Mapping[str, Any], where: str
) -> dict[str, Any]:
    for key in changes:
        if key not in RECORD_KEYS and key not in record:
            near = difflib.get_close_matches(key, RECORD_KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise RecordError(f"{where}: no record has a key {key!r}{hint}")
    return {**record, **changes}
