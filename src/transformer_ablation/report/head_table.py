"""What every head does, as a table: text, CSV, JSON, and a page that sorts."""

import csv
import io
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transformer_ablation.report.cells import Column, number, plain
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


class Quantity(NamedTuple):
    """Two lines of heading, decimals, sign, and what it means."""

    top: str
    bottom: str
    decimals: int
    sign: str
    meaning: str


QUANTITIES = {
    "entropy": Quantity(
        "entropy",
        "nats",
        2,
        "",
        "of a query's weights, -sum w ln w (Ghader and Monz 2017)",
    ),
    "entropy_share": Quantity(
        "of",
        "most",
        2,
        "",
        "entropy as a share of ln n, the most that the n keys that a query sees allow; "
        "over the queries that see more than one",
    ),
    "distance": Quantity(
        "mean",
        "distance",
        2,
        "",
        "sum of w |key - centre|, in pieces; the centre is the query's own place, in "
        "cross attention place t (S - 1) / (T - 1) of the source, which makes the "
        "first and last pieces of both sides face each other",
    ),
    "diagonal": Quantity(
        "on",
        "diagonal",
        2,
        "",
        "weight on the key nearest to the centre; of the decoder's own keys that is "
        "the piece that it has just read",
    ),
    "previous": Quantity("on", "previous", 2, "", "weight on the key before that"),
    "next": Quantity("on", "next", 2, "", "weight on the key after it"),
    "first": Quantity(
        "on", "first", 2, "", "weight on the first key; the decoder's own is <s>"
    ),
    "last": Quantity(
        "on", "last", 2, "", "weight on the last key, which is </s> of the source"
    ),
    "maximum": Quantity(
        "greatest",
        "weight",
        2,
        "",
        "mean of each query's greatest weight (the confidence of Voita et al. 2019, "
        "who leave </s> out)",
    ),
    "loss_lost": Quantity(
        "loss",
        "lost",
        4,
        "+",
        "nats a target piece, unsmoothed, by which the loss is higher with the head's "
        "output set to zero (Michel et al. 2019)",
    ),
    "ppl_lost": Quantity("PPL", "lost", 3, "+", "the same in perplexity"),
    "bleu_lost": Quantity(
        "BLEU",
        "lost",
        2,
        "+",
        "by which BLEU is lower with the head's output set to zero",
    ),
}


class HeadRow(NamedTuple):
    """``layer`` and ``head`` count from 1; a value is None where there is none."""

    run: str
    kind: str
    layer: int
    head: int
    values: Mapping[str, float | None]


class HeadTable(NamedTuple):
    """``quantities`` are those of the columns, in order; ``runs`` facts by run."""

    quantities: Sequence[str]
    rows: Sequence[HeadRow]
    runs: Mapping[str, Mapping[str, Any]]


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
    notes = [
        line
        for note in (*facts(heads), *meanings(heads))
        for line in textwrap.wrap(plain(note), NOTE_WIDTH, subsequent_indent="  ")
    ]
    return "\n".join([*lines, rule, "", *notes]) + "\n"


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
    sections = [
        Section("heads", "Heads", table("Heads", head, rows, sortable=True)),
        Section("runs", "Runs", f"<ul>\n{runs}\n</ul>"),
        Section("notes", "What the columns are", f"<ul>\n{notes}\n</ul>"),
    ]
    return document("What the heads do", sections, scripts=("sort.js",))


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def known(value: float) -> float | None:
    """None for what is not a finite number."""
    return value if math.isfinite(value) else None
