"""What every head does, as a table: text, CSV, JSON, and a page that sorts."""

import csv
import io
import json
import textwrap
from collections.abc import Sequence
from typing import Any

from transformer_ablation.report.cells import Column, number, plain
from transformer_ablation.report.head_quantities import (
    ELSEWHERE,
    PLACES,
    QUANTITIES,
    HeadRow,
    HeadTable,
    Overview,
    overview,
)
from transformer_ablation.report.page.document import (
    Section,
    document,
    escape,
    isolated,
)
from transformer_ablation.report.page.tables import Cell, table
from transformer_ablation.report.render import text_line, width_of

FORMATS = ("text", "csv", "json", "html")
NOTE_WIDTH = 88
OVERVIEW = "Means, and heads with at least half of their weight on a place:"


def render(heads: HeadTable, format: str) -> str:
    """The table in one of ``FORMATS``."""
    return {"text": as_text, "csv": as_csv, "json": as_json, "html": as_html}[format](
        heads
    )


def meanings(heads: HeadTable) -> list[str]:
    """A line a column, and what the means are over."""
    found = [f"{_heading(q)}: {QUANTITIES[q].meaning}." for q in heads.quantities]
    over = (
        "Means are over all query positions of the sentences, each of which weighs the "
        "same, </s> and <s> among them."
    )
    return [*found, over]


def facts(heads: HeadTable) -> list[str]:
    """A line a run: "base/seed0: updates 850, sentences 500"."""
    return [
        f"{name}: {', '.join(f'{key} {_fact(x)}' for key, x in of_run.items())}"
        for name, of_run in heads.runs.items()
    ]


def as_text(heads: HeadTable) -> str:
    """Aligned columns, a rule between kinds, and what the columns are."""
    columns = _columns(heads)
    rule = "-" * width_of(columns)
    lines = [
        text_line([c.top for c in columns], columns),
        text_line([c.bottom for c in columns], columns),
    ]
    before = None
    for i, row in enumerate(heads.rows):
        group = row.run, row.kind
        lines += [rule] if group != before else []
        before = group
        lines.append(text_line([c.cells[i] for c in columns], columns))
    lines.append(rule)
    if found := overview(heads):
        lines += ["", OVERVIEW, *_overview_lines(found)]
    notes = [
        line
        for note in (*facts(heads), *meanings(heads))
        for line in textwrap.wrap(plain(note), NOTE_WIDTH, subsequent_indent="  ")
    ]
    return "\n".join([*lines, "", *notes]) + "\n"


def _overview_lines(found: Sequence[Overview]) -> list[str]:
    several = len({each.run for each in found}) > 1
    columns = [Column("", "run", [plain(o.run) for o in found], left=True)] * several
    columns.append(Column("", "kind", [o.kind for o in found], left=True))
    columns += [Column("", name, cells) for name, cells in _overview_cells(found)]
    lines = [[c.bottom for c in columns]]
    lines += [[c.cells[i] for c in columns] for i in range(len(found))]
    return [text_line(cells, columns) for cells in lines]


def _overview_cells(found: Sequence[Overview]) -> list[tuple[str, list[str]]]:
    """Heading and cells of the numbers; blank for a place that the kind has not."""
    counted = [
        (name, [str(o.places.get(name, "")) for o in found])
        for name in (*PLACES, ELSEWHERE)
    ]
    return [
        ("heads", [str(o.heads) for o in found]),
        ("entropy of most", [number(o.entropy_share, 2) for o in found]),
        ("distance", [number(o.distance, 2) for o in found]),
        *counted,
    ]


def _columns(heads: HeadTable) -> list[Column]:
    def cells(name: str) -> list[str]:
        return [str(getattr(row, name)) for row in heads.rows]

    runs = [plain(row.run) for row in heads.rows]
    found = [Column("", "run", runs, left=True)] if len(heads.runs) > 1 else []
    found.append(Column("", "kind", cells("kind"), left=True))
    found += [Column("", name, cells(name)) for name in ("layer", "head")]
    for name in heads.quantities:
        quantity = QUANTITIES[name]
        shown = [_shown(row, name) for row in heads.rows]
        found.append(Column(quantity.top, quantity.bottom, shown))
    return found


def _shown(row: HeadRow, name: str) -> str:
    quantity = QUANTITIES[name]
    return number(row.values.get(name), quantity.decimals, quantity.sign)


def _heading(name: str) -> str:
    return f"{QUANTITIES[name].top} {QUANTITIES[name].bottom}"


def as_csv(heads: HeadTable) -> str:
    """A line a head, unrounded; what there is not is blank."""
    text = io.StringIO()
    names = ["run", "kind", "layer", "head", *heads.quantities]
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(_record(row, heads) for row in heads.rows)
    return text.getvalue()


def as_json(heads: HeadTable) -> str:
    """One object with the facts of each run and a list ``rows``, a head each."""
    whole = {
        "runs": {name: dict(facts) for name, facts in heads.runs.items()},
        "overview": [each._asdict() for each in overview(heads)],
        "rows": [_record(row, heads) for row in heads.rows],
        "notes": meanings(heads),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _record(row: HeadRow, heads: HeadTable) -> dict[str, Any]:
    values = {name: row.values.get(name) for name in heads.quantities}
    return {
        "run": row.run,
        "kind": row.kind,
        "layer": row.layer,
        "head": row.head,
        **values,
    }


def as_html(heads: HeadTable) -> str:
    """A page whose table sorts by every column."""
    several = len(heads.runs) > 1
    names = ["run"] * several + ["kind", "layer", "head"]
    head = [Cell(name, left=name in ("run", "kind")) for name in names]
    for name in heads.quantities:
        quantity = QUANTITIES[name]
        head.append(Cell(f"{escape(quantity.top)}<br>{escape(quantity.bottom)}"))
    rows = []
    for row in heads.rows:
        cells = [Cell(isolated(row.run), left=True)] * several
        cells += [Cell(row.kind, left=True), Cell(str(row.layer), row.layer)]
        cells.append(Cell(str(row.head), row.head))
        for name in heads.quantities:
            shown = _shown(row, name).replace("-", "\N{MINUS SIGN}")
            cells.append(Cell(shown, row.values.get(name)))
        rows.append(cells)
    runs = "\n".join(f'<li dir="auto">{escape(line)}</li>' for line in facts(heads))
    notes = "\n".join(f"<li>{escape(note)}</li>" for note in meanings(heads))
    found = overview(heads)
    sections = [
        *([Section("overview", "Overview", _overview_html(found))] if found else []),
        Section("heads", "Heads", table("Heads", head, rows, sortable=True)),
        Section("runs", "Runs", f"<ul>\n{runs}\n</ul>"),
        Section("notes", "What the columns are", f"<ul>\n{notes}\n</ul>"),
    ]
    return document("What the heads do", sections, scripts=("sort.js",))


def _overview_html(found: Sequence[Overview]) -> str:
    columns = _overview_cells(found)
    head = [Cell("run", left=True), Cell("kind", left=True)]
    head += [Cell(name) for name, _ in columns]
    rows = [
        [Cell(isolated(each.run), left=True), Cell(each.kind, left=True)]
        + [Cell(cells[i]) for _, cells in columns]
        for i, each in enumerate(found)
    ]
    return f"<p>{OVERVIEW}</p>\n{table('Overview', head, rows)}"


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
