"""What ``experiments.complexity`` found, for people and for spreadsheets."""

import json
from typing import Any

from experiments.text_columns import aligned, comma_separated
from experiments.text_columns import markdown as as_markdown

NOTES = """\
Powers: slope of log cost against log size over all points [95% of slopes of resampled
points], then over the upper half of the points. Costs are of the forward pass of one
sequence. Attention by itself has queries, keys and values given, as Table 1 counts;
its projections add n d^2, which Table 1 leaves out. Time: medians of rounds in which
all layers take turns; a device of the CPU is one core.
Operations are XLA's count, a loop's body as often as it runs. Sequential: steps of the
compiled program's loops, 1 without a loop. Path: layers until the last output has a
gradient at the first input and, if layers look ahead too, the first at the last, times
sequential steps of a layer; in brackets what is in the paper's O(...), its constant
left out. Convolutions of paths look back only."""
CSV = "row part n d flops sequential seconds cpu_seconds rounds note".split()


def as_text(found: dict[str, Any], markdown: bool = False) -> str:
    """The powers, sequential operations, paths, what was left out, and notes."""
    table = as_markdown if markdown else lambda lines: aligned(lines, left=2)
    tables = [_powers(found, "n", "d"), _powers(found, "d", "n"), _paths(found)]
    left_out = [
        f"{line['label']}, n = {p['n']:,}, d = {p['d']:,}: {p['note']}"
        for line in found["layers"]
        for p in _points(line)
        if p["note"]
    ]
    parts = [table(lines) for lines in tables] + ["\n".join(left_out)]
    notes = NOTES.replace("\n", " ") if markdown else NOTES
    end = f"{found['seconds']:.0f} seconds in all"
    return "\n\n".join(part for part in [*parts, notes, end] if part) + "\n"


def _points(line: dict[str, Any]) -> list[dict[str, Any]]:
    return [*line["by_n"]["points"], *line["by_d"]["points"]]


def _powers(found: dict[str, Any], size: str, other: str) -> list[list[str]]:
    """The table of what is varied, ``other`` being the same at all points."""
    points = found["layers"][0][f"by_{size}"]["points"]
    ends = f"{size} = {points[0][size]:,} to {points[-1][size]:,}"
    head = [f"{ends}, {other} = {points[0][other]:,}", "paper"]
    head += [f"{what} {size}^" for what in ("operations", "time", "CPU time")]
    lines = [[*head, f"ms at {points[-1][size]:,}", "sequential"]]
    for line in found["layers"]:
        by = line[f"by_{size}"]
        cells = [_power(by[what]) for what in ("flops", "seconds", "cpu_seconds")]
        last = by["points"][-1]["seconds"]
        cells += [_milliseconds(last), _steps(line, size)]
        lines.append([line["label"], line["printed"]["complexity"], *cells])
    return lines


def _milliseconds(seconds: float | None) -> str:
    """Three digits; whole above a hundred."""
    if seconds is None:
        return "-"
    return f"{1000 * seconds:,.0f}" if seconds >= 0.1 else f"{1000 * seconds:.3g}"


def _power(power: dict[str, Any] | None) -> str:
    if power is None:
        return "-"
    low, high = power["low"], power["high"]
    return f"{power['exponent']:.2f} [{low:.2f}, {high:.2f}], {power['last']:.2f}"


def _steps(line: dict[str, Any], size: str) -> str:
    """Measured at the smallest and largest size, and as printed."""
    points = line[f"by_{size}"]["points"]
    ends = [
        "?" if p["sequential"] is None else f"{p['sequential']:,}"
        for p in (points[0], points[-1])
    ]
    told = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    return f"{told} ({line['printed']['sequential']})"


def _paths(found: dict[str, Any]) -> list[list[str]]:
    lengths = [point["n"] for point in found["paths"][0]["points"]]
    lines = [["longest path", "paper", *(f"n = {n}" for n in lengths)]]
    for line in found["paths"]:
        cells = [
            f"{'none' if p['path'] is None else p['path']} ({p['bound']:.3g})"
            for p in line["points"]
        ]
        lines.append([line["label"], line["printed"], *cells])
    return lines


def as_csv(found: dict[str, Any]) -> str:
    """A line for each layer at each size; paths are in the other formats."""
    lines = ({**line, **p} for line in found["layers"] for p in _points(line))
    return comma_separated(CSV, lines)


FORMATS = {
    "text": as_text,
    "markdown": lambda found: as_text(found, markdown=True),
    "csv": as_csv,
    "json": lambda found: json.dumps(found, indent=1) + "\n",
}
