"""A line of what ``experiments.complexity`` found: what is printed, powers, points."""

from typing import Any

from experiments.complexity_layers import Measured, printed
from transformer_ablation.benchmark.complexity import Point, power


def of_line(
    line: Measured, points: dict[str, dict[str, list[Point]]]
) -> dict[str, Any]:
    """As one JSON object; ``points`` by what is varied, n or d, and by key."""
    known = printed(line.model)
    return {
        "row": line.row,
        "part": line.part,
        "label": line.title,
        "printed": {"complexity": known.complexity, "sequential": known.sequential},
        **{f"by_{axis}": _axis(axis, of[line.key]) for axis, of in points.items()},
    }


def _axis(axis: str, points: list[Point]) -> dict[str, Any]:
    sizes = [getattr(point, axis) for point in points]
    found: dict[str, Any] = {}
    for what in ("flops", "seconds", "cpu_seconds"):
        fitted = power(sizes, [getattr(point, what) for point in points])
        found[what] = fitted and fitted._asdict()
    return {**found, "points": [point._asdict() for point in points]}
