"""Lines of cells as text: aligned columns, or a table of Markdown."""

from collections.abc import Sequence


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
