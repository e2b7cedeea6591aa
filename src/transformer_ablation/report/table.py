"""The table of a sweep, from ``sweep.json`` and the records of its runs alone.

Numbers stay unrounded here; ``render.py`` rounds them for people.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report import consistency
from transformer_ablation.report.columns import row_differences, shown_columns
from transformer_ablation.report.consistency import TableError
from transformer_ablation.report.notes import table_notes
from transformer_ablation.report.record import live_status, read_records, read_sweep
from transformer_ablation.report.table_row import (
    NO_PAPER,
    Chosen,
    Status,
    TableRow,
    make_row,
    paper_values,
    with_deltas,
)


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows in the order of the sweep; ``columns`` maps headings to fields."""

    title: str
    results_version: int
    columns: Mapping[str, str]
    rows: Sequence[TableRow]
    notes: Sequence[str]
    has_paper: bool
    metric: str  # which BLEU: bleu (sacreBLEU) or bleu_paper
    rate: float | None  # sustained FLOP/s of a device, for the paper's rule of cost


def read_table(
    workdir: str | Path, metric: str = "bleu", rate: float | None = None
) -> Table:
    """The table of a workdir, finished or not, with one kind of BLEU.

    With ``rate``, the sustained FLOP/s of a device, it tells the cost by the paper's
    rule (section 6.1): training time times devices times that rate.

    Raises:
      TableError: for a folder without a sweep, or records that may not be mixed.
      RecordError: for a broken ``sweep.json`` or ``record.json``.
    """
    workdir = Path(workdir)
    if not workdir.is_dir():
        raise TableError(f"{workdir}: no such folder; give the --workdir of a sweep")
    sweep = read_sweep(workdir)
    if sweep is None:
        raise TableError(
            f"{workdir}: holds no sweep.json; give the --workdir of a sweep, or start "
            "one there with python -m experiments.sweep"
        )
    return build_table(sweep, read_records(workdir), live_status, metric, rate)


def build_table(
    sweep: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    status: Status = lambda record: record["status"],
    metric: str = "bleu",
    rate: float | None = None,
) -> Table:
    """The table of a sweep; ``status`` says the state of a record.

    ``metric`` is the BLEU it shows, "bleu" or "bleu_paper"; the other is not in it.

    Raises:
      TableError: for records or scores that may not stand in one table.
    """
    rows = _with_strangers(sweep["rows"], records)
    by_name = {row["name"]: row for row in rows}
    consistency.check_versions(sweep, records)
    consistency.check_configs(by_name, records)
    consistency.check_splits("validation_split", rows)
    consistency.check_splits("test_split", rows)
    finished = [r for r in records if status(r) == "finished"]
    chosen = _chosen(sweep, finished, metric)
    consistency.check_scores([(r, s) for r, s in chosen.values()])
    has_paper = any(paper_values(row) != NO_PAPER for row in rows)
    columns = shown_columns(sweep["config"], (r["config"] for r in rows), has_paper)
    bare = [make_row(sweep, row, columns, records, chosen, status) for row in rows]
    base = next(
        (r for r in bare if not row_differences(sweep["config"], r.config)), None
    )
    table_rows = [with_deltas(row, base, finished) for row in bare]
    notes = table_notes(sweep, table_rows, finished, chosen)
    if rate is not None:
        notes.append(
            "cost: training time, compiling included, times devices times "
            f"{rate:.3g} FLOP/s of each (the paper's rule, section 6.1); means over "
            "finished runs."
        )
    return Table(
        sweep["title"],
        sweep["results_version"],
        columns,
        table_rows,
        notes,
        has_paper,
        metric,
        rate,
    )


def _with_strangers(
    rows: Sequence[Mapping[str, Any]], records: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The sweep's rows, and behind them rows that only records know."""
    known = {row["name"]: row for row in rows}
    for r in records:
        row = {"name": r["row"], "group": r["group"], "label": r["label"]}
        known.setdefault(r["row"], {**row, "paper": None, "config": r["config"]})
    return list(known.values())


def _chosen(
    sweep: Mapping[str, Any], finished: Iterable[Mapping[str, Any]], bleu: str
) -> Chosen:
    """``{(row, seed, quantity): (record, score)}`` of what the table shows."""
    data = sweep["config"]["data"]
    wanted = {
        "ppl": (data["validation_split"], "ppl"),
        "bleu": (data["validation_split"], bleu),
        "bleu_test": (data["test_split"], bleu),
    }
    chosen, problems = {}, []
    for record in finished:
        for quantity, (split, metric) in wanted.items():
            try:
                score = consistency.select_score(record, split, metric)
            except TableError as error:
                problems.append(str(error))
                continue
            if score is not None:
                chosen[record["row"], record["seed"], quantity] = (record, score)
        more = consistency.select_averaged(record, data["validation_split"], bleu)
        if more is not None:
            chosen[record["row"], record["seed"], "averaged"] = (record, more)
    if problems:
        raise TableError("\n".join(problems))
    return chosen
