"""A table as a report: one HTML file with figures, and with all that is known of rows.

Cells, marks and notes are those of the other formats. Figures are drawn in the
browser from the unrounded values in the page.
"""

import collections
import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from transformer_ablation.report.cells import (
    Column,
    Value,
    config_columns,
    group_name,
    other_column,
    result_columns,
    row_columns,
)
from transformer_ablation.report.columns import counted
from transformer_ablation.report.curves import (
    MOST_POINTS,
    Curves,
    curve_names,
    read_curves,
)
from transformer_ablation.report.group_figures import group_figures
from transformer_ablation.report.html_rows import row_details
from transformer_ablation.report.overall_figures import agreement_figures, cost_points
from transformer_ablation.report.page.document import (
    Section,
    document,
    escape,
    isolated,
)
from transformer_ablation.report.record import read_records
from transformer_ablation.report.render_data import table_object
from transformer_ablation.report.samples import Samples, read_samples
from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import TableRow

STYLES = ("report.css",)
SCRIPTS = ("sort.js", "chart.js", "curves.js", "figures.js", "samples.js")


@dataclasses.dataclass(frozen=True)
class Details:
    """What a report shows of the runs beside the table; ``made`` is when."""

    records: Sequence[Mapping[str, Any]]
    curves: Sequence[Curves]
    samples: Sequence[Samples]
    made: datetime.datetime


def read_details(workdir: str | Path, table: Table) -> Details:
    """Records, curves and sample translations of a table's workdir.

    Raises:
      RecordError: for a broken record.
    """
    workdir = Path(workdir)
    records = read_records(workdir)
    split = table.rows[0].config["data"]["validation_split"]
    finished = {
        (row.name, run.seed)
        for row in table.rows
        for run in row.runs
        if run.state == "finished"
    }
    order = {row.name: i for i, row in enumerate(table.rows)}
    records = sorted(
        (r for r in records if r["row"] in order), key=lambda r: order[r["row"]]
    )
    done = [r for r in records if (r["row"], r["seed"]) in finished]
    return Details(
        records,
        read_curves(workdir, records, split),
        read_samples(workdir, done, split),
        datetime.datetime.now(datetime.UTC),
    )


def as_html(table: Table, details: Details | None = None) -> str:
    """The report; without ``details`` it lacks curves, scores and translations."""
    ids = row_ids(table.rows)
    sections = [Section("table", "Table", _table(table, ids))]
    if details is not None:
        sections.append(
            Section("curves", "Learning curves", _curves(details.curves, table))
        )
    body = '<div id="groups-figure"></div>'
    sections.append(Section("groups", "Figures by group", body))
    agreement = agreement_figures(table)
    if agreement:
        body = '<div id="agreement-figure"></div>'
        sections.append(Section("agreement", "Agreement with the paper", body))
    sections.append(Section("cost", "Cost", '<div id="cost-figure"></div>'))
    if details is not None:
        body = _translations(details.samples)
        sections.append(Section("translations", "Translations", body))
    records, curves, samples = _parts(details)
    base = next((row for row in table.rows if row.is_base), None)
    rows = [
        row_details(
            row,
            ids[row.name],
            base,
            [r for r in records if r["row"] == row.name],
            next((s for s in samples if s.row == row.name), None),
            table.names,
        )
        for row in table.rows
    ]
    sections.append(Section("rows", "Rows", "\n".join(rows)))
    data = {
        "table-data": table_object(table),
        "names-data": dict(table.names),
        "curve-names-data": curve_names(table.metric),
        "curves-data": [_plain(c) for c in curves],
        "groups-data": [_plain(f) for f in group_figures(table)],
        "agreement-data": {q: _plain(figure) for q, figure in agreement.items()},
        "cost-data": [_plain(p) for p in cost_points(table)],
        "samples-data": [_sample(s) for s in samples if s.sentences],
        "ids-data": ids,
    }
    return document(table.title, sections, data, STYLES, SCRIPTS, _lead(table, details))


def _parts(
    details: Details | None,
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Curves], Sequence[Samples]]:
    if details is None:
        return [], [], []
    return details.records, details.curves, details.samples


def _plain(value: Any) -> dict[str, Any]:
    return dataclasses.asdict(value)


def _sample(samples: Samples) -> dict[str, Any]:
    sentences = [sentence._asdict() for sentence in samples.sentences]
    return {**samples._asdict(), "sentences": sentences}


def row_ids(rows: Sequence[TableRow]) -> dict[str, str]:
    """An id in the page for each row; names that would make one id get a number."""
    ids: dict[str, str] = {}
    for i, row in enumerate(rows):
        letters = [c if c.isalnum() or c in "._-+" else "-" for c in row.name]
        name = f"row-{''.join(letters)}"
        ids[row.name] = f"{name}-{i}" if name in ids.values() else name
    return ids


def _lead(table: Table, details: Details | None) -> str:
    """How many runs stand where; of an unfinished sweep also when that was so."""
    states = collections.Counter(run.state for r in table.rows for run in r.runs)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    text = (
        f"{counted(len(table.rows), 'row')}, {counted(states.total(), 'run')}: {counts}"
    )
    if details is not None and set(states) != {"finished"}:
        text += f", at {details.made:%Y-%m-%d %H:%M} UTC"
    return f'<p class="faint">{escape(text)}.</p>'


def _table(table: Table, ids: Mapping[str, str]) -> str:
    left, other = row_columns(table), other_column(table)
    results = result_columns(table)
    states = [column for column in results if column.bottom == "state"]
    columns = [
        *left,
        *states,  # in sight also on a narrow screen
        *config_columns(table),
        *([other] if any(other.cells) else []),
        *(column for column in results if column not in states),
    ]
    heads = "".join(_head(c, i == 0 and len(left) > 1) for i, c in enumerate(columns))
    lines = []
    for i, row in enumerate(table.rows):
        cells = [_cell(c, i) for c in columns[len(left) :]]
        name = left[-1].cells[i]
        link = f'<a href="#{quote(ids[row.name])}">{isolated(name)}</a>'
        first = i == 0 or row.group != table.rows[i - 1].group
        group = _group_cell(row, left[0].cells[i]) if len(left) > 1 else ""
        attributes = ' class="first"' if first else ""
        lines.append(
            f'<tr{attributes}>{group}<th scope="row" class="left" '
            f'data-value="{escape(row.name)}" title="{escape(row.label)}">{link}</th>'
            f"{''.join(cells)}</tr>"
        )
    notes = "".join(f'<li dir="auto">{escape(note)}</li>\n' for note in table.notes)
    return (
        '<p class="faint">A heading sorts, again the other way, and the third time '
        "gives the order of the groups back. A row's name leads to what is known of "
        'it.</p>\n<div class="wide" role="region" aria-label="Table" tabindex="0">'
        f'<table class="sortable" id="results">\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{chr(10).join(lines)}\n</tbody>\n</table></div>\n"
        f'<details class="notes" open><summary>Notes</summary>\n<ul class="faint">\n'
        f"{notes}</ul></details>"
    )


def _head(column: Column, group: bool) -> str:
    lines = [line for line in (column.top, column.bottom) if line]
    text = "<br>".join(escape(line) for line in lines) or ("group" if group else "")
    return f'<th scope="col"{_left(column)}>{text}</th>'


def _group_cell(row: TableRow, cell: str) -> str:
    """The group of a row; unless rows are sorted, only the first of it shows it."""
    name = group_name(row)
    again = " again" if name and not cell else ""
    return f'<td class="left group{again}">{isolated(name)}</td>'


def _cell(column: Column, i: int) -> str:
    value = f' data-value="{_value(column.values[i])}"' if column.values else ""
    return f"<td{_left(column)}{value}>{isolated(column.cells[i])}</td>"


def _left(column: Column) -> str:
    """Words, which may take several lines, stand to the left."""
    return ' class="left words"' if column.left else ""


def _value(value: Value) -> str:
    return "" if value is None else escape(value)


def _curves(curves: Sequence[Curves], table: Table) -> str:
    notes = []
    if any(c.thinned for c in curves):
        notes.append(
            f"Curves are thinned to at most {MOST_POINTS} points each: of equal "
            "stretches of updates, the least and the greatest value."
        )
    if any("validation/bleu" in c.points for c in curves):
        other = "" if table.metric == "bleu" else f", not {table.names['bleu']}"
        notes.append(
            f"BLEU: sacreBLEU{other}, of the single checkpoints that were scored, each "
            "decoded as the run's config says."
        )
    notes += [f"{c.row}/seed{c.seed}: {c.fault}" for c in curves if c.fault]
    lines = "".join(f"<p class='faint'>{isolated(note)}</p>\n" for note in notes)
    if not any(c.points for c in curves):
        return f"{lines}<p>No run has curves yet.</p>"
    return f'<div id="curves-figure"></div>\n{lines}'


def _translations(samples: Sequence[Samples]) -> str:
    faults = [f"{s.row}: {s.fault}" for s in samples if s.fault]
    lines = "".join(f"<p class='faint'>{isolated(fault)}</p>\n" for fault in faults)
    if not any(s.sentences for s in samples):
        return f"{lines}<p>No row has stored translations yet.</p>"
    return (
        '<p class="faint">Sentences at equal distances through the split, of the '
        'first seed of each row.</p>\n<div id="samples-figure"></div>\n' + lines
    )
