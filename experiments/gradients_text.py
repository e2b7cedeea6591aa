"""What ``experiments.gradients`` found, for people and for spreadsheets."""

import json
from typing import Any

from experiments.text_columns import aligned, comma_separated, markdown

SIDES = {
    "target": "the decoder's input k positions before",
    "source": "a source piece, k pieces read since",
}
NOTES = """\
Norms of the Jacobian of the decoder's last hidden state and an embedding: Frobenius'
over sqrt(d), from random probes, a mean over sentences and positions. In brackets the
norm over that of the smallest k, of those with a tenth of the pairs of any k."""
CSV = "model state side k norm relative count".split()
# Distances that a table shows, of all that the other formats have.
SHOWN = (0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256)


def as_text(found: dict[str, Any], as_markdown: bool = False) -> str:
    """A table for the target and one for the source."""
    as_table = markdown if as_markdown else lambda lines: aligned(lines, left=2)
    parts = []
    for side, words in SIDES.items():
        shown = [
            k for k in SHOWN if any(_at(line, side, k) for line in found["curves"])
        ]
        head = [f"output and {words}", "parameters", *(f"k = {k}" for k in shown)]
        cells = [
            [line["model"], line["state"], *(_cell(_at(line, side, k)) for k in shown)]
            for line in found["curves"]
        ]
        parts.append(as_table([head, *cells]))
    end = f"{found['seconds']:.0f} seconds in all"
    return "\n\n".join([*parts, NOTES, end]) + "\n"


def _at(line: dict[str, Any], side: str, k: int) -> dict[str, Any] | None:
    return next((point for point in line[side] if point["k"] == k), None)


def _cell(point: dict[str, Any] | None) -> str:
    if point is None:
        return "-"
    return f"{point['norm']:.2g} ({point['relative']:.2g})"


def as_csv(found: dict[str, Any]) -> str:
    """A line for each model, state, side and distance."""
    lines = (
        {**line, "side": side, **point}
        for line in found["curves"]
        for side in SIDES
        for point in line[side]
    )
    return comma_separated(CSV, lines)


FORMATS = {
    "text": as_text,
    "markdown": lambda found: as_text(found, as_markdown=True),
    "csv": as_csv,
    "json": lambda found: json.dumps(found, indent=1) + "\n",
}
