"""The table of a sweep, from ``sweep.json`` and the records of its runs alone.

Numbers stay unrounded here; ``render.py`` rounds them for people.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report import consistency, selection
from transformer_ablation.report.agreement import Agreement, agreement
from transformer_ablation.report.columns import row_differences, shown_columns
from transformer_ablation.report.consistency import Problem, TableError
from transformer_ablation.report.notes import table_notes
from transformer_ablation.report.record import live_status, read_records, read_sweep
from transformer_ablation.report.seed_tests import METHODS, Power, needed_seeds
from transformer_ablation.report.selection import Chosen
from transformer_ablation.report.sentence_tests import (
    NOTHING,
    Progress,
    Sentences,
    Settings,
    sentence_tests,
)
from transformer_ablation.report.significance import tests_of_rows
from transformer_ablation.report.significance_notes import significance_notes
from transformer_ablation.report.table_row import (
    NO_PAPER,
    Status,
    TableRow,
    comparable,
    make_row,
    paper_values,
    quantity_names,
    with_deltas,
)


@dataclasses.dataclass(frozen=True)
class Options:
    """How a table is made.

    ``metric`` is the BLEU it shows, "bleu" (sacreBLEU) or "bleu_paper"; the other is
    not in it. With ``rate``, the sustained FLOP/s of a device, it tells the cost by
    the paper's rule (section 6.1): training time times devices times that rate.
    ``mixed`` shows what may not stand in one table, marked, where it is refused else.
    ``seed_test`` is one of ``seed_tests.METHODS``; ``sentences`` the tests of
    sentences, None for none.
    """

    metric: str = "bleu"
    rate: float | None = None
    mixed: bool = False
    seed_test: str = METHODS[0]
    sentences: Settings | None = Settings()


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows in the order of the sweep; ``columns`` maps headings to fields.

    ``run_notes`` are those of the notes that hold without these columns.
    """

    title: str
    results_version: int
    columns: Mapping[str, str]
    rows: Sequence[TableRow]
    notes: Sequence[str]
    run_notes: Sequence[str]
    has_paper: bool
    options: Options
    power: Power | None  # of BLEU
    agreement: Mapping[str, Agreement | None]  # with the paper: bleu, ppl

    @property
    def metric(self) -> str:
        """Which BLEU."""
        return self.options.metric

    @property
    def names(self) -> Mapping[str, str]:
        """Of ``bleu`` and ``ppl``; the paper's numbers are BLEU in any table."""
        return quantity_names(self.metric)

    @property
    def rate(self) -> float | None:
        """Sustained FLOP/s of a device, for the paper's rule of cost."""
        return self.options.rate


def read_table(
    workdir: str | Path,
    options: Options | None = None,
    progress: Progress = lambda text: None,
) -> Table:
    """The table of a workdir, finished or not; ``progress`` hears of what takes long.

    Raises:
      TableError: for a folder without a sweep, or records that may not be mixed.
      RecordError: for a broken ``sweep.json`` or ``record.json``.
    """
    workdir = Path(workdir)
    if not workdir.is_dir():
        raise TableError(f"{workdir}: no such folder; name that of a sweep")
    sweep = read_sweep(workdir)
    if sweep is None:
        raise TableError(
            f"{workdir}: holds no sweep.json; name the folder of a sweep, or start "
            "one there with python -m experiments.sweep"
        )
    records, options = read_records(workdir), options or Options()
    return build_table(sweep, records, live_status, options, workdir, progress)


def build_table(
    sweep: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    status: Status = lambda record: record["status"],
    options: Options | None = None,
    workdir: Path | None = None,
    progress: Progress = lambda text: None,
) -> Table:
    """The table of a sweep; ``status`` says the state of a record.

    Sentences are tested where there is a ``workdir`` with their texts.

    Raises:
      TableError: for records or scores that may not stand in one table.
    """
    options = options or Options()
    rows = _with_strangers(sweep["rows"], records)
    base = next(
        (r for r in rows if not row_differences(sweep["config"], r["config"])), None
    )
    finished = [r for r in records if status(r) == "finished"]
    chosen, otherwise_made = _chosen(sweep, finished, options.metric)
    pairs = [(r, s) for r, s in chosen.values()]
    problems = [
        *_records_problems(sweep, rows, records, finished),
        *otherwise_made,
        *consistency.check_scores(pairs, base["name"] if base else None),
    ]
    if not options.mixed:
        consistency.refuse(problems)
    has_paper = any(paper_values(row) != NO_PAPER for row in rows)
    columns = shown_columns(sweep["config"], [r["config"] for r in rows], has_paper)
    bare = [make_row(sweep, row, columns, records, chosen, status) for row in rows]
    base_row = next((row for row in bare if base and row.name == base["name"]), None)
    table_rows = [
        _marked(with_deltas(row, base_row, finished), problems) for row in bare
    ]
    mixed = {row.name for row in table_rows if row.marks}
    able = {row.name for row in comparable(table_rows)} | {base_row and base_row.name}
    testable = {key: x for key, x in chosen.items() if key[0] in able}
    sentences = _sentences(workdir, testable, base_row, options, progress)
    table_rows = _with_tests(table_rows, base_row, sentences, options)
    bleu_tests = [r.tests.seeds["bleu"] for r in table_rows if "bleu" in r.tests.seeds]
    table = Table(
        sweep["title"],
        sweep["results_version"],
        columns,
        table_rows,
        [],
        [],
        has_paper,
        options,
        needed_seeds(bleu_tests),
        {q: _agreement(table_rows, q) for q in ("bleu", "ppl")},
    )
    given = sweep, table_rows, finished, chosen, table.names, options.rate
    notes, of_mixed = table_notes(*given), _mixed_notes(problems, mixed, base_row)
    notes[1:1] = of_mixed
    notes += significance_notes(sweep, table, sentences)
    run_notes = [*of_mixed, *table_notes(*given, own_columns=False)]
    return dataclasses.replace(table, notes=notes, run_notes=run_notes)


def _records_problems(
    sweep: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    finished: Sequence[Mapping[str, Any]],
) -> list[Problem]:
    """What the table would mix, whatever is scored."""
    by_name = {row["name"]: row for row in rows}
    data = sweep["config"]["data"]
    return [
        *consistency.check_versions(sweep, records),
        *consistency.check_configs(by_name, records),
        *consistency.check_splits("validation_split", rows, data["validation_split"]),
        *consistency.check_splits("test_split", rows, data["test_split"]),
        *consistency.check_budgets(finished),
    ]


def _sentences(
    workdir: Path | None,
    chosen: Chosen,
    base: TableRow | None,
    options: Options,
    progress: Progress,
) -> Sentences:
    asked = options.sentences
    if workdir is None or base is None or asked is None or options.metric != "bleu":
        return NOTHING
    return sentence_tests(workdir, chosen, base.name, asked, progress)


def _with_tests(
    rows: Sequence[TableRow],
    base: TableRow | None,
    sentences: Sentences,
    options: Options,
) -> list[TableRow]:
    """Tests of the rows that may be compared with base."""
    if base is None:
        return list(rows)
    values = {
        row.name: {
            "bleu": row.bleu.values,
            "ppl": row.ppl.values if row.ppl_comparable else {},
        }
        for row in [base, *comparable(rows)]
    }
    tests = tests_of_rows(values, base.name, options.seed_test, sentences)
    return [
        dataclasses.replace(row, tests=tests[row.name]) if row.name in tests else row
        for row in rows
    ]


def _mixed_notes(
    problems: Sequence[Problem], mixed: Collection[str], base: TableRow | None
) -> list[str]:
    """What is mixed, and what that keeps the marked rows out of."""
    notes = [f"§ MIXED, shown because you insisted: {p.text}." for p in problems]
    if mixed:
        whole = base is not None and base.name in mixed
        notes.append(
            f"§ {'Base is mixed: no row is' if whole else 'Such rows are not'} tested, "
            "counted in the correction of p or the power, or compared with the paper."
        )
    return notes


def _marked(row: TableRow, problems: Sequence[Problem]) -> TableRow:
    marks = [problem.text for problem in problems if row.name in problem.rows]
    return dataclasses.replace(row, marks=marks) if marks else row


def _agreement(rows: Sequence[TableRow], quantity: str) -> Agreement | None:
    return agreement(
        [
            (row.deltas[quantity], row.deltas[f"paper_{quantity}"])
            for row in comparable(rows)
        ]
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
) -> tuple[dict, list[Problem]]:
    """``Chosen`` of what the table shows, and scores only made with other settings."""
    data = sweep["config"]["data"]
    wanted = {
        "ppl": (data["validation_split"], "ppl"),
        "bleu": (data["validation_split"], bleu),
        "bleu_test": (data["test_split"], bleu),
    }
    chosen: dict[tuple[str, int, str], tuple] = {}
    problems = []
    for record in finished:
        row, seed = record["row"], record["seed"]
        for quantity, (split, metric) in wanted.items():
            try:
                score = selection.select_score(record, split, metric)
            except TableError as error:
                problems.append(Problem(str(error), frozenset([row])))
                score = selection.latest_score(record, split, metric)
            if score is not None:
                chosen[row, seed, quantity] = (record, score)
        more = selection.select_averaged(record, data["validation_split"], bleu)
        if more is not None:
            chosen[row, seed, "averaged"] = (record, more)
    return chosen, problems
