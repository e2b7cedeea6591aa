"""A figure of a measurement: one file in one of a few formats."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.command import UsageError
from experiments.figure_folder import need_matplotlib
from experiments.output import check_file

ENDINGS = (".svg", ".png", ".pdf")


def check(path: str) -> None:
    """Refuse a figure that cannot be drawn.

    Raises:
      UsageError: if its ending says no format, it is no file that can be written, or
        matplotlib is missing.
    """
    if Path(path).suffix not in ENDINGS:
        raise UsageError(
            f"--figure={path}: must be a file that ends in {', '.join(ENDINGS)}"
        )
    check_file(path, "figure")
    need_matplotlib("--figure")


@contextlib.contextmanager
def panels(path: Path, rows: int, columns: int, size: tuple[float, float]) -> Iterator:
    """An array of axes [rows, columns] to draw on, written to the file at the end.

    Letters of an SVG stay letters: shorter than their outlines, and to be searched.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure, axes = pyplot.subplots(
            rows, columns, figsize=size, squeeze=False, layout="constrained"
        )
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        # The same figure is the same file.
        same: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, metadata=same or None)
        pyplot.close(figure)
