"""What may stand in one table: scores of one version, data, vocabulary and metric.

A mixture is refused with every value and the runs that hold it, or, where the user
insists, shown with those rows marked. Where a row's own config asks for the
difference, it is that row's subject and shown, not refused.
"""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from transformer_ablation.report.columns import NOT_OF_THE_ROW, flatten, row_differences

# Batches are drawn by seed, so equal configs see nearly equal numbers of tokens.
TOKEN_TOLERANCE = 0.05


class TableError(ValueError):
    """A table that cannot be made without misleading; one line a reason."""


class Problem(NamedTuple):
    """What a table would mix, and the rows that are not as base, or as most, are."""

    text: str
    rows: frozenset[str]


def refuse(problems: Sequence[Problem]) -> None:
    """Raises TableError if there is any problem."""
    if problems:
        raise TableError("\n".join(problem.text for problem in problems))


def run_name(record: Mapping[str, Any]) -> str:
    """``ROW/seedK``."""
    return f"{record['row']}/seed{record['seed']}"


def run_problem(record: Mapping[str, Any], text: str) -> Problem:
    """A problem of one run, which its text begins with."""
    return Problem(f"{run_name(record)}: {text}", frozenset([record["row"]]))


def check_configs(
    rows: Mapping[str, Mapping[str, Any]], records: Iterable[Mapping[str, Any]]
) -> list[Problem]:
    """Records whose config is not their row's in ``sweep.json``."""
    problems = []
    for record in records:
        row = rows.get(record["row"])
        differing = row and row_differences(row["config"], record["config"])
        if differing:
            path, (old, new) = next(iter(differing.items()))
            text = (
                f"was run with {path} = {new!r}, but sweep.json has {old!r} (fields "
                f"that differ: {len(differing)}); it is a run of another sweep: move "
                "its folder to a workdir of its own"
            )
            problems.append(run_problem(record, text))
    return problems


def check_versions(
    sweep: Mapping[str, Any], records: Sequence[Mapping]
) -> list[Problem]:
    """Records of two results versions, or of another than ``sweep.json``'s."""
    values = [(r["results_version"], run_name(r), r["row"]) for r in records]
    values.append((sweep["results_version"], "sweep.json", None))
    return _mixed(
        "results_version",
        values,
        "numbers of two versions are not comparable; run the sweep again in another"
        " --workdir",
        usual=sweep["results_version"],
    )


def check_scores(
    chosen: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], base: str | None
) -> list[Problem]:
    """Scores of different data, test sets, vocabularies or BLEUs.

    Args:
      chosen: (record, score) pairs that the table would show.
      base: the name of base's row, whose values are the usual ones.
    """
    problems = _mixed_in_groups(
        "data manifest hash",
        chosen,
        group=lambda r, s: None,
        value=lambda r, s: (r["data"] or {}).get("manifest_hash"),
        remedy="train the rows on the same data",
        base=base,
    )
    problems += _mixed_in_groups(
        "vocabulary hash",
        chosen,
        group=lambda r, s: _data_section(r),
        value=lambda r, s: vocabulary_hash(r),
        remedy="train the rows with one vocabulary",
        base=base,
    )
    problems += _mixed_in_groups(
        "sacreBLEU signature",
        chosen,
        group=lambda r, s: s["metric"] != "ppl" and (s["metric"], s["split"]),
        value=lambda r, s: s["signature"],
        remedy="score the rows with one version and setting of sacreBLEU",
        base=base,
    )
    problems += _mixed_in_groups(
        "number of sentences",
        chosen,
        group=lambda r, s: s["split"],
        value=lambda r, s: s["sentences"],
        remedy="score every row on the whole split",
        base=base,
    )
    return problems + _mixed_in_groups(
        "number of target tokens",
        chosen,
        group=lambda r, s: s["metric"] == "ppl" and (s["split"], vocabulary_hash(r)),
        value=lambda r, s: s["target_tokens"],
        remedy="score every row on the whole split",
        base=base,
    )


def check_splits(
    field: str, rows: Iterable[Mapping[str, Any]], usual: Any
) -> list[Problem]:
    """Rows whose configs score another split than ``usual``, base's."""
    values = [
        (row["config"]["data"][field], f"row {row['name']}", row["name"])
        for row in rows
    ]
    remedy = "scores of different sets do not compare"
    return _mixed(f"data.{field}", values, remedy, usual)


def check_budgets(finished: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """Finished runs with other updates or training tokens than their config means.

    Rows whose configs ask for more updates or larger batches are not compared.
    """
    problems: list[Problem] = []
    groups: dict[Any, list[tuple[int, Mapping[str, Any]]]] = {}
    for record in finished:
        steps = record["config"]["train"]["steps"]
        if record["step"] is not None and record["step"] != steps:
            text = (
                f"is finished after {record['step']} of {steps} updates; a table does "
                "not mix budgets: train it to the end"
            )
            problems.append(run_problem(record, text))
            continue
        seen = (record["tokens"] or {}).get("target")
        if seen:
            key = (steps, _data_section(record))
            groups.setdefault(key, []).append((seen, record))
    for group in groups.values():
        median = statistics.median(seen for seen, _ in group)
        for seen, record in group:
            if abs(seen - median) > TOKEN_TOLERANCE * median:
                text = (
                    f"was trained on {seen:,} target tokens, but most runs of its "
                    f"budget on about {median:,.0f}; a table does not mix budgets: "
                    "train it again"
                )
                problems.append(run_problem(record, text))
    return problems


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
    base: str | None,
) -> list[Problem]:
    """A problem for each group (False: in none) that holds two known values."""
    groups: dict[Any, list[tuple[Any, str, str | None]]] = {}
    for record, score in chosen:
        key = group(record, score)
        if key is not False:
            where = f"{run_name(record)} ({score['split']})"
            entry = (value(record, score), where, record["row"])
            groups.setdefault(key, []).append(entry)
    problems = []
    for values in groups.values():
        usual = next((v for v, _, row in values if row == base), None)
        problems += _mixed(what, values, remedy, usual)
    return problems


def _mixed(
    what: str,
    values: Iterable[tuple[Any, str, str | None]],
    remedy: str,
    usual: Any,
) -> list[Problem]:
    """A problem naming each known (value, place, row), if there are two values.

    Its rows are those with another value than ``usual``, or, where that is None, than
    most places have.
    """
    holders: dict[Any, list[str]] = {}
    rows: dict[Any, set[str]] = {}
    for value, where, row in values:
        if value is not None:
            rows.setdefault(value, set()).update([row] if row is not None else [])
            if where not in holders.setdefault(value, []):
                holders[value].append(where)
    if len(holders) < 2:
        return []
    if usual is None:
        usual = max(holders, key=lambda value: len(holders[value]))
    listed = "; ".join(f"{v} in {some(names)}" for v, names in holders.items())
    others = frozenset(r for value in rows if value != usual for r in rows[value])
    return [Problem(f"the table would mix {what}: {listed}; {remedy}", others)]


def some(names: Sequence[str]) -> str:
    """The first names, and how many there are besides."""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
