"""A table as text for a terminal, as GitHub markdown, or as JSON."""

import dataclasses
import json
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from transformer_ablation.report.cells import (
    Column,
    config_columns,
    result_columns,
    row_columns,
)
from transformer_ablation.report.consistency import TableError
from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import TableRow

FORMATS = ("text", "markdown", "json")
LATER = ("latex", "csv", "html")
GAP = "  "
NOTE_WIDTH = 120
OTHER_WIDTH = 44  # letters of a column of changes; longer ones get their own line


def render(table: Table, format: str = "text") -> str:
    """The table in one of ``FORMATS``, ending in a newline.

    Raises:
      TableError: for a format that is unknown or not available yet.
    """
    check_format(format)
    return {"text": as_text, "markdown": as_markdown, "json": as_json}[format](table)


def check_format(format: str) -> None:
    """Refuses a format that ``render`` does not have, before any work."""
    if format in LATER:
        raise TableError(
            f"--format={format} is not available yet; {', '.join(FORMATS)} are"
        )
    if format not in FORMATS:
        raise TableError(
            f"--format={format} is unknown; it must be one of {', '.join(FORMATS)}"
        )


def as_text(table: Table) -> str:
    """Aligned columns, a rule between groups, changes without a column in words."""
    left, config = row_columns(table), config_columns(table)
    other = Column("", "other", [r.other for r in table.rows], left=True)
    width = _width(config)
    spans = [
        bool(r.other) and not any(c.cells[i] for c in config) and len(r.other) <= width
        for i, r in enumerate(table.rows)
    ]
    unplaced = [len(t) for t, s in zip(other.cells, spans, strict=True) if t and not s]
    if unplaced and max(unplaced) <= OTHER_WIDTH:
        config, spans, unplaced = [*config, other], [False] * len(spans), []
    columns = [*left, *config, *result_columns(table)]
    lines = [_text_line([c.top for c in columns], columns)]
    lines += [_text_line([c.bottom for c in columns], columns)]
    rule = "-" * _width(columns)
    group = None
    for i, row in enumerate(table.rows):
        lines += [rule] if i == 0 or row.group != group else []
        group = row.group
        line = _text_line([c.cells[i] for c in columns], columns)
        if spans[i]:
            start = _width(left) + len(GAP)
            line = line[:start] + row.other.ljust(width) + line[start + width :]
        lines.append(line.rstrip())
        if unplaced and row.other and not spans[i]:
            lines += _wrap(row.other, " " * (_width(left) + len(GAP)))
    notes = [line for note in table.notes for line in _wrap(note, "  ", "")]
    return "\n".join([table.title, "", *lines, rule, "", *notes]) + "\n"


def _width(columns: Sequence[Column]) -> int:
    return sum(c.width for c in columns) + len(GAP) * max(0, len(columns) - 1)


def _text_line(cells: Sequence[str], columns: Sequence[Column]) -> str:
    pairs = zip(cells, columns, strict=True)
    padded = [t.ljust(c.width) if c.left else t.rjust(c.width) for t, c in pairs]
    return GAP.join(padded).rstrip()


def _wrap(text: str, indent: str, first: str | None = None) -> list[str]:
    """Lines of at most ``NOTE_WIDTH`` letters; a long word is never cut."""
    return textwrap.wrap(
        text,
        NOTE_WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_markdown(table: Table) -> str:
    """A GitHub table, the notes below it as a list."""
    other = Column("", "other", [r.other for r in table.rows], left=True)
    columns = [
        *row_columns(table),
        *config_columns(table),
        *([other] if any(other.cells) else []),
        *result_columns(table),
    ]
    heads = [f"{c.top} {c.bottom}".strip() for c in columns]
    lines = [f"### {_escape(table.title)}", "", _line(heads)]
    lines.append(_line([":---" if c.left else "---:" for c in columns]))
    lines += [_line([c.cells[i] for c in columns]) for i in range(len(table.rows))]
    lines += ["", *(f"- {_escape(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escape(c) for c in cells) + " |"


def _escape(text: str) -> str:
    """Text that GitHub shows as it is, on one line."""
    text = re.sub(r"([\\|*<`])", r"\\\1", text)
    # Inside a word, as in d_model, an underscore is only that.
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    return " ".join(text.split())


def as_json(table: Table) -> str:
    """One object: everything the other formats show, unrounded; unknown is null."""
    whole = {
        "title": table.title,
        "results_version": table.results_version,
        "metric": table.metric,
        "sustained_flops": table.rate,
        "rows": [_json_row(row, table.metric, table.rate) for row in table.rows],
        "notes": list(table.notes),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _json_row(row: TableRow, metric: str, rate: float | None) -> dict[str, Any]:
    """``metric``, and that with _test behind it, are the names of BLEU in it."""
    measures = {"ppl": row.ppl, metric: row.bleu, f"{metric}_test": row.bleu_test}
    deltas = {metric if k == "bleu" else k: value for k, value in row.deltas.items()}
    return {
        "row": row.name,
        "group": row.group,
        "label": row.label,
        "seeds": [run.seed for run in row.runs],
        "state": row.state,
        "reason": row.reason,
        "config": row.config,
        "changes": row.other,
        "parameters": row.parameters,
        "paper_counts": row.paper_counts,
        **{name: m.mean for name, m in measures.items()},
        f"{metric}_averaged": row.averaged.mean,
        "averaged_steps": {str(seed): s for seed, s in row.averaged_steps.items()},
        "deviations": {name: m.deviation for name, m in measures.items()},
        "deltas": deltas,
        "ppl_comparable": row.ppl_comparable,
        "steps": row.steps,
        "seconds": row.seconds,
        "flops": {
            "training": row.training_flops,
            "papers_rule": None
            if rate is None or row.device_seconds is None
            else rate * row.device_seconds,
        },
        "paper": row.paper,
        "runs": [
            {
                **dataclasses.asdict(run),
                **{name: m.values.get(run.seed) for name, m in measures.items()},
            }
            for run in row.runs
        ],
    }
