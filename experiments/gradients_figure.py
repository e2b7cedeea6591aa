"""What ``experiments.gradients`` found, as a figure."""

from pathlib import Path
from typing import Any

from experiments.figure_file import panels
from experiments.gradients_text import SIDES

# Share of the pairs of the most frequent distance; points of a line that has markers.
FEWEST, MOST_MARKERS = 0.05, 60


def draw(found: dict[str, Any], path: Path) -> None:
    """A column for each state of the parameters; above the target, below the source.

    Norms are relative. What is exactly zero is not drawn, nor what is a mean of few.
    """
    states = list(dict.fromkeys(line["state"] for line in found["curves"]))
    names = list(dict.fromkeys(line["model"] for line in found["curves"]))
    with panels(path, 2, len(states), (1 + 5.5 * len(states), 8)) as axes:
        for column, state in enumerate(states):
            for row, (side, words) in enumerate(SIDES.items()):
                panel = axes[row, column]
                for line in found["curves"]:
                    if line["state"] == state:
                        color = f"C{names.index(line['model'])}"
                        _curve(panel, line, side, color)
                panel.set_yscale("log")
                panel.set_title(state)
                panel.set_xlabel(f"k: {words}")
                panel.set_ylabel("norm of the gradient, relative")
                panel.legend(fontsize="small")


def _curve(panel: Any, line: dict[str, Any], side: str, color: str) -> None:
    enough = max((p["count"] for p in line[side]), default=0) * FEWEST
    points = [p for p in line[side] if p["relative"] and p["count"] >= enough]
    k, relative = [p["k"] for p in points], [p["relative"] for p in points]
    style = ".-" if len(points) <= MOST_MARKERS else "-"
    panel.plot(k, relative, style, color=color, label=line["model"])
