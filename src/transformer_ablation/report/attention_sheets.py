"""Pictures for TensorBoard, as PNG: attention of every head, tables of positions."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

DOTS = 100  # an inch
CELL = 9  # dots that one weight is wide, where the sheet is not too wide with it
LEAST_LABELLED = 6
WIDEST = 2400  # dots of all heads of a layer
MARGIN = 90  # dots for the pieces, left and below
MOST_POSITIONS = 128
# Of a place that a query may not see, and of what parts the panels.
HIDDEN, BETWEEN = "#D6E6F5", "#56B4E9"
LEAST = np.finfo(np.float32).tiny


def sheet(
    weights_NHLM: np.ndarray, queries: Sequence[str], keys: Sequence[str], title: str
) -> bytes:
    """A row a layer, a panel a head: query positions down, key positions across.

    Black is a weight of 1, white one of about 0, and pale blue exactly 0: a place that
    the query may not see. Pieces stand beside the outer panels, where there is room.
    """
    layers, heads, rows, columns = weights_NHLM.shape
    cell = max(2, min(CELL, WIDEST // (heads * (columns + 1))))
    # A line of "not a number", drawn in another colour, parts the panels.
    parted = np.pad(
        weights_NHLM, [(0, 0), (0, 0), (0, 1), (0, 1)], constant_values=np.nan
    )
    mosaic = parted.transpose(0, 2, 1, 3).reshape(
        layers * (rows + 1), heads * (columns + 1)
    )[:-1, :-1]
    figure, axes = _figure(mosaic.shape, cell, title)
    axes.imshow(mosaic, cmap=_grey(), vmin=LEAST, vmax=1, interpolation="nearest")
    if cell >= LEAST_LABELLED:
        _label(axes.yaxis, queries, layers, cell)
        _label(axes.xaxis, keys, heads, cell, rotation=90)
    else:
        axes.set_xticks([])
        axes.set_yticks([])
    axes.set_xlabel(f"heads 1 to {heads}, keys", fontsize=7)
    axes.set_ylabel(f"layers 1 to {layers}, queries", fontsize=7)
    return _png(figure)


def position_pictures(table_LD: np.ndarray, title: str) -> bytes:
    """The vectors of the first positions, and their dot products with each other."""
    figure = _new_figure(9.0, 4.2, "constrained")
    left, right = figure.subplots(1, 2)
    most = float(np.abs(table_LD).max()) or 1.0
    for axes, values, name, across in (
        (left, table_LD, "vectors", "dimension"),
        (right, table_LD @ table_LD.T, "dot products", "position"),
    ):
        limit = most if axes is left else float(np.abs(values).max()) or 1.0
        shown = axes.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
        axes.set(title=f"{title}: {name}", xlabel=across, ylabel="position")
        figure.colorbar(shown, ax=axes)
    return _png(figure)


def _label(
    axis: Any, names: Sequence[str], panels: int, cell: int, **style: Any
) -> None:
    """A piece at each place of each panel."""
    places = [
        p * (len(names) + 1) + i for p in range(panels) for i in range(len(names))
    ]
    size = 72 * cell * 0.8 / DOTS
    axis.set_ticks(places, [*names] * panels, fontsize=size, **style)
    axis.set_tick_params(length=0, pad=1)


def _figure(shape: tuple[int, ...], cell: int, title: str) -> tuple[Any, Any]:
    """A figure whose axes have ``cell`` dots a value."""
    height, width = shape[0] * cell, shape[1] * cell
    whole = width + MARGIN + 10, height + MARGIN + 30
    figure = _new_figure(whole[0] / DOTS, whole[1] / DOTS)
    box = MARGIN / whole[0], MARGIN / whole[1], width / whole[0], height / whole[1]
    axes = figure.add_axes(box)
    figure.text(0.5, 1 - 8 / whole[1], title, ha="center", va="top", fontsize=8)
    return figure, axes


def _new_figure(width: float, height: float, layout: Any = None) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _grey() -> Any:
    import matplotlib

    return matplotlib.colormaps["Greys"].with_extremes(under=HIDDEN, bad=BETWEEN)


def _png(figure: Any) -> bytes:
    """The figure as a file; a letter that the font lacks is a box, and no warning."""
    import matplotlib

    data = io.BytesIO()
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(data, format="png", metadata={"Software": None})
    return data.getvalue()
