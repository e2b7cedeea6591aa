"""What ``experiments.complexity`` found, as a log-log figure."""

from pathlib import Path
from typing import Any

from experiments.figure_file import panels

PANELS = (
    ("by_n", "n", "flops", "operations", 1.0),
    ("by_n", "n", "seconds", "ms", 1e3),
    ("by_d", "d", "flops", "operations", 1.0),
    ("by_d", "d", "seconds", "ms", 1e3),
)


def draw(found: dict[str, Any], path: Path) -> None:
    """Operations and time of a sequence against length and width; then the paths."""
    with panels(path, 2, 3, (13, 7.5)) as axes:
        _draw(found, axes)


def _draw(found: dict[str, Any], axes: Any) -> None:
    for panel, each in zip(axes.T[:2].flat, PANELS, strict=True):
        _panel(panel, found["layers"], *each)
    _paths(axes[0, 2], found["paths"])
    axes[1, 2].set_axis_off()
    drawn = axes[0, 0].get_legend_handles_labels()
    # The one legend of the other panels, which would hide what it is of.
    axes[1, 2].legend(*drawn, loc="upper left", title="the four panels on the left")


def _panel(
    panel: Any,
    layers: list[Any],
    axis: str,
    size: str,
    what: str,
    unit: str,
    scale: float,
) -> None:
    for color, line in enumerate(layers):
        points = [p for p in line[axis]["points"] if p[what]]
        panel.loglog(
            [p[size] for p in points],
            [scale * p[what] for p in points],
            "o-" if line["part"] == "layer" else "s--",
            color=f"C{color}",
            markersize=4,
            label=line["label"],
        )
    _ticks(panel, size, [p[size] for p in layers[0][axis]["points"]])
    panel.set_ylabel(f"{unit} of a sequence")


def _paths(panel: Any, paths: list[dict[str, Any]]) -> None:
    for line in paths:
        points = [p for p in line["points"] if p["path"]]
        sizes, lengths = [p["n"] for p in points], [p["path"] for p in points]
        label = f"{line['label']}: {line['printed']}"
        panel.loglog(sizes, lengths, "o-", markersize=4, label=label)
    _ticks(panel, "n", [p["n"] for p in paths[0]["points"]])
    panel.set_ylabel("longest path")
    panel.legend(fontsize="small")


def _ticks(panel: Any, name: str, sizes: list[int]) -> None:
    panel.set_xlabel(name)
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45)
    panel.minorticks_off()
