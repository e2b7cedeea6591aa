"""What may stand in one table: scores of one version, data, vocabulary and metric.

A mixture is refused with every value and the runs that hold it. Where a row's own
config asks for the difference, it is that row's subject and shown, not refused.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.columns import NOT_OF_THE_ROW, flatten, row_differences

DECODE_FIELDS = (
    "beam_size",
    "length_penalty",
    "length_penalty_alpha",
    "extra_length",
)


class TableError(ValueError):
    """A table that cannot be made without misleading; one line a reason."""


def run_name(record: Mapping[str, Any]) -> str:
    """``ROW/seedK``."""
    return f"{record['row']}/seed{record['seed']}"


def select_score(
    record: Mapping[str, Any], split: str | None, metric: str
) -> dict[str, Any] | None:
    """The run's score of a split as its config asks for it, or None if not scored.

    Of several it is that of the latest checkpoint, and of those the last one made.

    Raises:
      TableError: where the split was scored, but only with other settings.
    """
    scores = [
        s for s in record["scores"] if s["split"] == split and s["metric"] == metric
    ]
    fitting = [s for s in scores if _as_configured(record["config"]["decode"], s)]
    if scores and not fitting:
        raise TableError(_other_settings(record, scores[-1]))
    known = [s for s in fitting if s["value"] is not None]
    latest = max((s["steps"][-1] for s in known), default=None)
    return next((s for s in reversed(known) if s["steps"][-1] == latest), None)


def select_averaged(
    record: Mapping[str, Any], split: str | None, metric: str
) -> dict[str, Any] | None:
    """The run's score of more checkpoints than its config averages, or None.

    Otherwise decoded as its config says. Of several it is that of the most
    checkpoints, of those the latest, and of those the last one made.
    """
    decode = record["config"]["decode"]
    found = [
        s
        for s in record["scores"]
        if s["split"] == split
        and s["metric"] == metric
        and s["value"] is not None
        and len(s["steps"]) > decode["average_checkpoints"]
        and _decoded_as_configured(decode, s)
    ]
    order = [(len(s["steps"]), s["steps"][-1], i) for i, s in enumerate(found)]
    return found[max(order)[-1]] if found else None


def _as_configured(decode: Mapping[str, Any], score: Mapping[str, Any]) -> bool:
    if not score["steps"] or len(score["steps"]) != decode["average_checkpoints"]:
        return False
    return _decoded_as_configured(decode, score)


def _decoded_as_configured(decode: Mapping[str, Any], score: Mapping[str, Any]) -> bool:
    used = score["decode"] or {}
    return all(used[f] == decode[f] for f in DECODE_FIELDS if f in used)


def _other_settings(record: Mapping[str, Any], score: Mapping[str, Any]) -> str:
    decode = record["config"]["decode"]
    used = score["decode"] or {}
    differing = [
        f"{f} {used[f]} (config: {decode[f]})"
        for f in DECODE_FIELDS
        if f in used and used[f] != decode[f]
    ]
    if len(score["steps"]) != decode["average_checkpoints"]:
        differing.append(
            f"{checkpoints(score['steps'])} (config: decode.average_checkpoints = "
            f"{decode['average_checkpoints']})"
        )
    return (
        f"{run_name(record)}: {score['metric']} on {score['split']} was scored only "
        f"with {', '.join(differing)}; a table does not mix this with the other rows: "
        "score the run again with its own settings"
    )


def checkpoints(steps: Sequence[int]) -> str:
    """``the checkpoint of update S`` or ``the average of updates S, ...``."""
    if len(steps) == 1:
        return f"the checkpoint of update {steps[0]}"
    return f"the average of {len(steps)} checkpoints ({', '.join(map(str, steps))})"


def check_configs(
    rows: Mapping[str, Mapping[str, Any]], records: Iterable[Mapping[str, Any]]
) -> None:
    """Refuses a record whose config is not its row's in ``sweep.json``."""
    problems = []
    for record in records:
        row = rows.get(record["row"])
        differing = row and row_differences(row["config"], record["config"])
        if differing:
            path, (old, new) = next(iter(differing.items()))
            problems.append(
                f"{run_name(record)}: was run with {path} = {new!r}, but sweep.json has"
                f" {old!r} (fields that differ: {len(differing)}); it is a run of "
                "another sweep: move its folder to a workdir of its own"
            )
    _refuse(problems)


def check_versions(sweep: Mapping[str, Any], records: Sequence[Mapping]) -> None:
    """Refuses records of two results versions."""
    values = [(r["results_version"], run_name(r)) for r in records]
    values.append((sweep["results_version"], "sweep.json"))
    _refuse(
        _mixed(
            "results_version",
            values,
            "numbers of two versions are not comparable; run the sweep again in another"
            " --workdir",
        )
    )


def check_scores(
    chosen: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> None:
    """Refuses scores of different data, test sets, vocabularies or BLEUs.

    Args:
      chosen: (record, score) pairs that the table would show.
    """
    problems = _mixed(
        "data manifest hash",
        [((r["data"] or {}).get("manifest_hash"), run_name(r)) for r, _ in chosen],
        "train the rows on the same data",
    )
    problems += _mixed_in_groups(
        "vocabulary hash",
        chosen,
        group=lambda r, s: _data_section(r),
        value=lambda r, s: vocabulary_hash(r),
        remedy="train the rows with one vocabulary",
    )
    problems += _mixed_in_groups(
        "sacreBLEU signature",
        chosen,
        group=lambda r, s: s["metric"] != "ppl" and (s["metric"], s["split"]),
        value=lambda r, s: s["signature"],
        remedy="score the rows with one version and setting of sacreBLEU",
    )
    problems += _mixed_in_groups(
        "number of sentences",
        chosen,
        group=lambda r, s: s["split"],
        value=lambda r, s: s["sentences"],
        remedy="score every row on the whole split",
    )
    problems += _mixed_in_groups(
        "number of target tokens",
        chosen,
        group=lambda r, s: s["metric"] == "ppl" and (s["split"], vocabulary_hash(r)),
        value=lambda r, s: s["target_tokens"],
        remedy="score every row on the whole split",
    )
    _refuse(problems)


def check_splits(field: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Refuses rows whose configs score different splits."""
    values = [(row["config"]["data"][field], f"row {row['name']}") for row in rows]
    _refuse(_mixed(f"data.{field}", values, "scores of different sets do not compare"))


def vocabulary_hash(record: Mapping[str, Any]) -> str | None:
    """The content hash of the run's vocabulary, None where not known."""
    return (record["data"] or {}).get("vocabulary_hash")


def _data_section(record: Mapping[str, Any]) -> str:
    section = flatten({"data": record["config"]["data"]})
    kept = {path: v for path, v in section.items() if path not in NOT_OF_THE_ROW}
    return json.dumps(kept, sort_keys=True)


def _mixed_in_groups(
    what: str,
    chosen: Sequence[tuple[Mapping, Mapping]],
    group: Callable[[Mapping, Mapping], Any],
    value: Callable[[Mapping, Mapping], Any],
    remedy: str,
) -> list[str]:
    """One problem for each group (False: in none) that holds two known values."""
    groups: dict[Any, list[tuple[Any, str]]] = {}
    for record, score in chosen:
        key = group(record, score)
        if key is not False:
            where = f"{run_name(record)} ({score['split']})"
            groups.setdefault(key, []).append((value(record, score), where))
    return [p for values in groups.values() for p in _mixed(what, values, remedy)]


def _mixed(what: str, values: Iterable[tuple[Any, str]], remedy: str) -> list[str]:
    """A problem naming each known value and where it is, if there are two or more."""
    holders: dict[Any, list[str]] = {}
    for value, where in values:
        if value is not None and where not in holders.setdefault(value, []):
            holders[value].append(where)
    if len(holders) < 2:
        return []
    listed = "; ".join(f"{v} in {_some(names)}" for v, names in holders.items())
    return [f"the table would mix {what}: {listed}; {remedy}"]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise TableError("\n".join(problems))
