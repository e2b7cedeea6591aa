"""Lines of cells as text: aligned columns, a table of Markdown, or CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def aligned(lines: Sequence[Sequence[str]], left: int = 0) -> str:
    """Columns side by side, the first ``left`` of them flush left."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """The first line as the head of a table."""
    head, *rest = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rest])


def comma_separated(names: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> str:
    """CSV with a head; what a line has under another name is left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
