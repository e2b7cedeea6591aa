"""A sweep as plain rows, one a run: what it is, what it varies, scores and cost.

Raw, as the records have it: nothing is averaged, refused or rounded. A table
(``table.py``) is what compares rows.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report.columns import flatten, row_differences
from transformer_ablation.report.record import (
    read_records,
    read_sweep,
    run_directory,
)
from transformer_ablation.report.run_status import RunStatus, read_status
from transformer_ablation.report.selection import DECODE_FIELDS

PHASES = ("compile", "train", "evaluate")


def run_rows(workdir: str | Path) -> list[dict[str, Any]]:
    """Every run of a workdir, also those still to come; all have the same keys.

    ``row``, ``group``, ``label``, ``seed``, ``state``, ``reason``, ``step`` (updates
    done) and ``directory``; each config field that differs between two runs, under its
    path (``model.num_heads``); each score, as ``SPLIT_METRIC``, for one that was not
    made as the config says with what was otherwise, ``validation_bleu[beam_size=1]``;
    ``parameters``; seconds of each phase and ``device_seconds``, training times
    devices; ``training_flops``, ``tokens_per_second``; the paper's numbers where the
    sweep has them; ``results_version``. Unknown is None.

    Raises:
      RecordError: for a missing folder, one without runs, or a broken file.
    """
    statuses = read_status(workdir)
    records = {(r["row"], r["seed"]): r for r in read_records(workdir)}
    sweep = read_sweep(workdir)
    papers = {row["name"]: row["paper"] or {} for row in sweep["rows"]} if sweep else {}
    varied = _varied([status.config for status in statuses])
    rows = [
        _row(Path(workdir), status, records.get((status.row, status.seed)), varied)
        for status in statuses
    ]
    if any(papers.values()):
        for row in rows:
            paper = papers.get(row["row"], {})
            row |= {"paper_ppl": paper.get("ppl"), "paper_bleu": paper.get("bleu")}
    keys = _ordered(rows)
    return [{key: row.get(key) for key in keys} for row in rows]


def _varied(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Paths of the fields in which two of them differ, in the order of a config."""
    found = {path for c in configs for path in row_differences(configs[0], c)}
    return [path for path in flatten(configs[0]) if path in found] + sorted(
        found - flatten(configs[0]).keys()
    )


def _row(
    workdir: Path,
    status: RunStatus,
    record: Mapping[str, Any] | None,
    varied: Sequence[str],
) -> dict[str, Any]:
    config, known = flatten(status.config), record or {}
    seconds = known.get("seconds") or {}
    return {
        "row": status.row,
        "group": status.group,
        "label": status.label,
        "seed": status.seed,
        "state": status.state,
        "reason": status.reason,
        "step": status.step,
        "directory": str(run_directory(workdir, status.row, status.seed)),
        **{path: config.get(path) for path in varied},
        **({} if record is None else _scores(record)),
        "parameters": (status.parameters or {}).get("total"),
        **{f"{phase}_seconds": seconds.get(phase) for phase in PHASES},
        "device_seconds": (known.get("device") or {}).get("seconds"),
        "training_flops": (known.get("flops") or {}).get("training"),
        "tokens_per_second": known.get("tokens_per_second"),
        "results_version": known.get("results_version"),
    }


def _scores(record: Mapping[str, Any]) -> dict[str, float | None]:
    """All of them; of two of one name the last one made."""
    decode = record["config"]["decode"]
    last = max((s["steps"][-1] for s in record["scores"] if s["steps"]), default=None)
    return {
        f"{s['split']}_{s['metric']}{_otherwise(s, decode, last)}": s["value"]
        for s in record["scores"]
    }


def _otherwise(
    score: Mapping[str, Any], decode: Mapping[str, Any], last: int | None
) -> str:
    """What differs from the config's decoding and the last checkpoint, in brackets."""
    used, steps = score["decode"] or {}, score["steps"]
    differing = [
        f"{name}={used[name]}"
        for name in DECODE_FIELDS
        if name in used and used[name] != decode.get(name)
    ]
    if steps and len(steps) != decode.get("average_checkpoints"):
        differing.append(f"average_checkpoints={len(steps)}")
    if steps and steps[-1] != last:
        differing.append(f"step={steps[-1]}")
    return f"[{','.join(differing)}]" if differing else ""


def _ordered(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """All keys; those that only some rows have stand where these have them."""
    keys: list[str] = []
    for row in rows:
        place = 0
        for key in row:
            if key in keys:
                place = keys.index(key) + 1
            else:
                keys.insert(place, key)
                place += 1
    return keys
