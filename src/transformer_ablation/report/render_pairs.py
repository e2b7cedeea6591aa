"""A table of language pairs as text, markdown, LaTeX, CSV or JSON."""

import csv
import io
from collections.abc import Callable

from transformer_ablation.report.cells import plain
from transformer_ablation.report.pairs_table import PairsTable, as_json, columns
from transformer_ablation.report.render import (
    check_format,
    escape_markdown,
    markdown_table,
    text_line,
    width_of,
    wrapped,
)
from transformer_ablation.report.render_latex import latex_cell, latex_table


def render(found: PairsTable, format: str = "text") -> str:
    """The table in one of ``FORMATS``, ending in a newline.

    Raises:
      TableError: for a format that is unknown.
    """
    check_format(format, FORMATS)
    return FORMATS[format](found)


def as_text(found: PairsTable) -> str:
    """Aligned columns between rules, and the notes."""
    shown = columns(found)
    rule = "-" * width_of(shown)
    lines = [
        text_line([c.top for c in shown], shown),
        text_line([c.bottom for c in shown], shown),
        rule,
    ]
    for i in range(len(found.labels)):
        lines.append(text_line([c.cells[i] for c in shown], shown))
    notes = [line for note in found.notes for line in wrapped(plain(note))]
    return "\n".join([plain(found.title), "", *lines, rule, "", *notes]) + "\n"


def as_markdown(found: PairsTable) -> str:
    """A GitHub table, the notes below it as a list."""
    lines = [f"### {escape_markdown(found.title)}", ""]
    lines += markdown_table(columns(found), len(found.labels))
    lines += ["", *(f"- {escape_markdown(note)}" for note in found.notes)]
    return "\n".join(lines) + "\n"


def as_latex(found: PairsTable) -> str:
    """A ``table*`` as that of one sweep."""
    shown = columns(found)
    body = [
        f"    {' & '.join(latex_cell(c.cells[i]) for c in shown)} \\\\"
        for i in range(len(found.labels))
    ]
    return latex_table(found.title, shown, body, found.notes)


def as_csv(found: PairsTable) -> str:
    """A line a row and language pair, unrounded."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        "pair row label state bleu_test n paper_bleu_test parameters updates "
        "training_flops paper_training_flops device_seconds".split()
    )
    for pair in found.pairs:
        for row in pair.table.rows:
            writer.writerow(
                [
                    *(pair.name, row.name, row.label, row.state),
                    *(row.bleu_test.mean, len(row.bleu_test.values)),
                    row.paper["bleu_test"],
                    (row.parameters or {}).get("total"),
                    *(row.steps, row.training_flops),
                    *(row.paper["training_flops"], row.device_seconds),
                ]
            )
    return file.getvalue()


FORMATS: dict[str, Callable[[PairsTable], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
    "json": as_json,
}
