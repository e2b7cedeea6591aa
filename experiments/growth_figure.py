"""What ``experiments.growth`` found, as a figure."""

from pathlib import Path
from typing import Any

from experiments.figure_file import panels


def draw(found: dict[str, Any], path: Path) -> None:
    """A panel for each size: time of a token, and its operations on the same scale.

    The line of operations goes through the middle of the measured points.
    """
    each = found["growth"]
    rows = -(-len(each) // 3)
    with panels(path, rows, 3, (11, 3.4 * rows)) as axes:
        for panel, growth in zip(axes.flat, each, strict=False):
            _panel(panel, growth)
        for panel in axes.flat[len(each) :]:
            panel.set_axis_off()


def _panel(panel: Any, growth: dict[str, Any]) -> None:
    points = growth["points"]
    sizes = [p["size"] for p in points]
    micros = [1e6 * p["seconds"] for p in points]
    middle = len(points) // 2
    scale = micros[middle] / points[middle]["flops"]
    measured, operations = growth["seconds"]["fitted"], growth["flops"]["fitted"]
    panel.loglog(sizes, micros, "o-", label=f"measured: power {measured:.2f}")
    panel.loglog(
        sizes,
        [scale * p["flops"] for p in points],
        "--",
        color="gray",
        label=f"operations: power {operations:.2f}",
    )
    panel.set_xlabel(growth["size"])
    panel.set_ylabel("µs a token")
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.minorticks_off()
    low, high = min(micros), max(micros)
    panel.set_ylim(low / 3, high * 3)
    ticks = [m * 10**e for e in range(-3, 7) for m in (1, 2, 5)]
    ticks = [tick for tick in ticks if low / 3 <= tick <= high * 3]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.legend(fontsize="small")
