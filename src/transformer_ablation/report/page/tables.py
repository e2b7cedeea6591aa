"""Tables of a page: in a region that scrolls, sorted by their headings if asked."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_ablation.report.page.document import escape


class Cell(NamedTuple):
    """HTML, and the unrounded value that it is sorted by."""

    html: str
    value: float | None = None
    left: bool = False
    head: bool = False


def table(
    label: str,
    heads: Sequence[Cell],
    rows: Sequence[Sequence[Cell]],
    sortable: bool = False,
) -> str:
    """A table in a region of that name, which scrolls sideways, also by keys."""
    kind = ' class="sortable"' if sortable else ""
    lines = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    top = "".join(
        f'<th scope="col"{_class(head)}>{head.html}</th>'
        if head.html
        else f"<td{_class(head)}></td>"
        for head in heads
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">\n'
        f"<table{kind}>\n<thead><tr>{top}</tr></thead>\n"
        f"<tbody>\n{lines}\n</tbody>\n</table></div>"
    )


def _cell(cell: Cell) -> str:
    value = "" if cell.value is None else f' data-value="{cell.value!r}"'
    if cell.head:
        return f'<th scope="row"{_class(cell)}>{cell.html}</th>'
    return f"<td{_class(cell)}{value}>{cell.html}</td>"


def _class(cell: Cell) -> str:
    return ' class="left"' if cell.left else ""
