"""A table as text for a terminal or as GitHub markdown; the others by name."""

import functools
import re
import textwrap
from collections.abc import Callable, Collection, Sequence

from transformer_ablation.report.cells import (
    Column,
    config_columns,
    other_column,
    places,
    plain,
    result_columns,
    row_columns,
)
from transformer_ablation.report.consistency import TableError
from transformer_ablation.report.render_data import as_csv, as_json
from transformer_ablation.report.render_html import Details, as_html
from transformer_ablation.report.render_latex import as_latex
from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import TableRow

FORMATS = ("text", "markdown", "latex", "csv", "json", "html")
GAP = "  "
WIDTH = 160  # of a text table; a wider one has its differences below
NOTE_WIDTH = 120
OTHER_WIDTH = 44  # letters of a column of changes; longer ones get their own line


def render(table: Table, format: str = "text", details: Details | None = None) -> str:
    """The table in one of ``FORMATS``, ending in a newline; ``details`` are for html.

    Raises:
      TableError: for a format that is unknown.
    """
    check_format(format)
    formats: dict[str, Callable[[Table], str]] = {
        "text": as_text,
        "markdown": as_markdown,
        "latex": as_latex,
        "csv": as_csv,
        "json": as_json,
        "html": functools.partial(as_html, details=details),
    }
    return formats[format](table)


def check_format(format: str, formats: Collection[str] = FORMATS) -> None:
    """Refuses a format that there is not, before any work."""
    if format not in formats:
        raise TableError(
            f"--format={format} is unknown; it must be one of {', '.join(formats)}"
        )


def as_text(table: Table) -> str:
    """Aligned columns, a rule between groups, changes without a column in words.

    What would be wider than ``WIDTH`` becomes two tables, differences in the second.
    """
    left, config = row_columns(table), config_columns(table)
    other = other_column(table)
    width = width_of(config)
    spans = [
        bool(text) and not any(c.cells[i] for c in config) and places(text) <= width
        for i, text in enumerate(other.cells)
    ]
    unplaced = [
        places(t) for t, s in zip(other.cells, spans, strict=True) if t and not s
    ]
    if unplaced and max(unplaced) <= OTHER_WIDTH:
        config, spans, unplaced = [*config, other], [False] * len(spans), []
    results = result_columns(table)
    blocks = [[*left, *config, *results]]
    if width_of(blocks[0]) > WIDTH:
        first = [c for c in results if c.part == 1]
        second = [c for c in results if c.part == 2]
        blocks = [[*left, *config, *first], *([[*left, *second]] if second else [])]
    lines: list[str] = []
    start = width_of(left) + len(GAP)
    for columns in blocks:
        block = [text_line([c.cells[i] for c in columns], columns) for i in _all(table)]
        below: list[list[str]] = [[] for _ in block]
        for i, text in enumerate(other.cells if columns is blocks[0] else ()):
            if spans[i]:
                tail = columns[len(left) + len(config) :]
                cells = [c.cells[i] for c in tail]
                words = text + " " * (width - places(text))
                head = text_line([c.cells[i] for c in left], left)
                head += " " * (start - places(head))
                block[i] = f"{head}{words}{GAP}{text_line(cells, tail)}".rstrip()
            elif unplaced and text:
                below[i] = wrapped(text, " " * start, None)
        lines += [""] * bool(lines) + _ruled(table.rows, columns, block, below)
    notes = [line for note in table.notes for line in wrapped(plain(note))]
    return "\n".join([plain(table.title), "", *lines, "", *notes]) + "\n"


def _all(table: Table) -> range:
    return range(len(table.rows))


def _ruled(
    rows: Sequence[TableRow],
    columns: Sequence[Column],
    block: Sequence[str],
    below: Sequence[Sequence[str]],
) -> list[str]:
    """Headings, and the lines of the rows with a rule above each group and below."""
    lines = [
        text_line([c.top for c in columns], columns),
        text_line([c.bottom for c in columns], columns),
    ]
    rule = "-" * width_of(columns)
    group = None
    for i, row in enumerate(rows):
        lines += [rule] if i == 0 or row.group != group else []
        group = row.group
        lines += [block[i], *below[i]]
    return [*lines, rule]


def width_of(columns: Sequence[Column]) -> int:
    """Places of a line of these columns."""
    return sum(c.width for c in columns) + len(GAP) * max(0, len(columns) - 1)


def text_line(cells: Sequence[str], columns: Sequence[Column]) -> str:
    """One line of a text table: a cell a column."""
    padded = []
    for text, column in zip(cells, columns, strict=True):
        space = " " * (column.width - places(text))
        padded.append(text + space if column.left else space + text)
    return GAP.join(padded).rstrip()


def wrapped(text: str, indent: str = "  ", first: str | None = "") -> list[str]:
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
    other = other_column(table)
    columns = [
        *row_columns(table),
        *config_columns(table),
        *([other] if any(other.cells) else []),
        *result_columns(table),
    ]
    lines = [f"### {escape_markdown(table.title)}", ""]
    lines += markdown_table(columns, len(table.rows))
    lines += ["", *(f"- {escape_markdown(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def markdown_table(columns: Sequence[Column], rows: int) -> list[str]:
    """Lines of a GitHub table: headings, alignment, so many rows of cells."""
    sides = " | ".join(":---" if c.left else "---:" for c in columns)
    cells = [_line([c.cells[i] for c in columns]) for i in range(rows)]
    return [_line([c.heading for c in columns]), f"| {sides} |", *cells]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape_markdown(c) for c in cells) + " |"


def escape_markdown(text: str) -> str:
    """Text that GitHub shows as it is, on one line.

    No mark-up, link, HTML, entity, formula or mention comes of it.
    """
    text = plain(text).replace("&", "&amp;").replace("<", "&lt;")
    text = re.sub(r"([\\|*`~\[\]$#>])", r"\\\1", text)
    text = text.replace("@", "@\u200b")
    # Inside a word, as in d_model, an underscore is only that.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
