"""Panels of a paper's figures, with matplotlib: the rows of a group and of base."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.cells import plain
from transformer_ablation.report.group_figures import (
    QUANTITIES,
    GroupFigure,
    Measured,
    Point,
)

WIDTH = 3.3  # inches: a column of a paper of two
# Points that an axis is long and a letter of its labels wide, nearly.
AXIS = 150
LETTER = 4
MOST_LETTERS = 20  # of a label
BASE = ("black", "o")
LOOKS = (
    ("#0072B2", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "P"),
    ("#56B4E9", "X"),
    ("0.5", "h"),
)
PAPER = ("#D55E00", "v")


def new_figure(height: float, panels: int) -> tuple[Any, list[Any]]:
    """A figure and its panels, one below the other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(panels, 1, squeeze=False)[:, 0])


def _look(place: int) -> tuple[str, str]:
    return LOOKS[place % len(LOOKS)]


def group_figure(shown: GroupFigure, names: Mapping[str, str]) -> Any:
    """BLEU above PPL: differences to base, or values where there is none."""
    kind = "deltas" if any(point.is_base for point in shown.points) else "values"
    quantities = [
        q
        for q in QUANTITIES
        if any(getattr(p, kind)[q].mean is not None for p in shown.points)
    ] or ["bleu"]
    figure, panels = new_figure(0.5 + 1.45 * len(quantities), len(quantities))
    for panel, quantity in zip(panels, quantities, strict=True):
        _panel(panel, shown, quantity, kind, names[quantity])
    beside = f" (with {', '.join(shown.beside)})" if shown.beside else ""
    along = "" if shown.along == "row" else shown.along + beside
    lines = [*map(plain, along.split("\n")), *off_the_scale(shown.beyond)]
    panels[-1].set_xlabel("\n".join(lines))
    legend(figure, panels)
    return figure


def off_the_scale(beyond: Sequence[str]) -> list[str]:
    """The line below a panel that names rows which are not drawn."""
    rows = ", ".join(_short(plain(name)) for name in beyond)
    return [f"PPL off the scale: {rows}"] if rows else []


def legend(figure: Any, panels: Iterable[Any]) -> None:
    """Above the panels, each entry once."""
    found: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=3)


def _panel(panel: Any, shown: GroupFigure, quantity: str, kind: str, name: str) -> None:
    """One quantity, its ``deltas`` or ``values``; each series has its own look."""
    series = list(dict.fromkeys(p.series for p in shown.points if not p.is_base))
    papers = [p for p in shown.points if p.paper[quantity] is not None]
    if kind == "deltas" and any(not p.is_base for p in papers):
        _papers(panel, shown, papers, quantity, series)
    for place, one in enumerate(series):
        ours = [
            (point, measured)
            for point in shown.points
            if (point.is_base or point.series == one)
            and (measured := getattr(point, kind)[quantity]).mean is not None
        ]
        if shown.numeric:
            xs, means = [p.x for p, _ in ours], [m.mean for _, m in ours]
            panel.plot(xs, means, color=_look(place)[0])
        label = f"ours: {plain(one)}" if len(series) > 1 else "ours"
        for point, measured in ours:
            if not point.is_base:
                bars(panel, point.x, measured, place, label)
    for point in shown.points:
        if point.is_base:
            bars(panel, point.x, getattr(point, kind)[quantity], None, "base")
    if kind == "deltas":
        panel.axhline(0, color="0.6", linewidth=0.6, linestyle=":", zorder=0)
    panel.set_ylabel(f"{'Δ' if kind == 'deltas' else ''}{name} dev")
    _x_axis(panel, shown)


def _x_axis(panel: Any, shown: GroupFigure) -> None:
    if shown.logarithmic:
        panel.set_xscale("log")
        panel.minorticks_off()
    ticks = [(x, _short(plain(label))) for x, label in shown.ticks]
    if shown.numeric:
        ticks = _apart(ticks, math.log if shown.logarithmic else float)
    long = sum(len(label) for _, label in ticks) * LETTER > AXIS
    turn = {"rotation": 30, "ha": "right"} if long else {}
    if ticks:
        panel.set_xticks([x for x, _ in ticks], [label for _, label in ticks], **turn)
    if not shown.numeric:
        panel.set_xlim(-0.5, max(p.x for p in shown.points) + 0.5)


def _short(label: str) -> str:
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"


def _apart(
    ticks: Sequence[tuple[float, str]], along: Callable[[float], float]
) -> list[tuple[float, str]]:
    """Ticks, from the left, whose labels do not run into those before."""
    kept: list[tuple[float, str]] = []
    end = -math.inf
    if not ticks:
        return kept
    first, last = along(ticks[0][0]), along(ticks[-1][0])
    for x, label in ticks:
        place = AXIS * (along(x) - first) / ((last - first) or 1.0)
        half = LETTER * (len(label) + 1) / 2
        if place - half >= end:
            kept.append((x, label))
            end = place + half
    return kept


def _papers(
    panel: Any,
    shown: GroupFigure,
    papers: Sequence[Point],
    quantity: str,
    series: Sequence[str],
) -> None:
    """The paper's differences on an axis of their own, with nought where ours is."""
    colour, marker = PAPER
    right = panel.twinx()
    panel.set_zorder(right.get_zorder() + 1)  # ours above the paper's
    panel.patch.set_visible(False)
    right.spines["right"].set_visible(True)
    right.tick_params(axis="y", colors=colour)
    right.set_ylabel(f"Δ{quantity.upper()} in the paper", color=colour)
    for name in series:
        mine = [p for p in papers if p.is_base or p.series == name]
        aside = 0.0 if shown.numeric else 0.12
        right.plot(
            [p.x + (0 if p.is_base else aside) for p in mine],
            [p.paper[quantity] for p in mine],
            linestyle="--" if shown.numeric else "",
            color=colour,
            marker=marker,
            markerfacecolor="white",
            markevery=[i for i, p in enumerate(mine) if not p.is_base],
        )
    panel.plot(
        [],
        [],
        linestyle="--",
        color=colour,
        marker=marker,
        markerfacecolor="white",
        label="the paper (right axis)",
    )
    ours = [v for p in shown.points for v in _values(p.deltas[quantity])]
    theirs = [p.paper[quantity] or 0.0 for p in papers]
    left_ends, right_ends = aligned(ours, theirs)
    panel.set_ylim(*left_ends)
    right.set_ylim(*right_ends)


def aligned(
    ours: Sequence[float], theirs: Sequence[float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends of two axes that hold all values and have nought at one height."""
    ends = [_ends(ours), _ends(theirs)]
    below = max(-low / (high - low) for low, high in ends)
    above = max(high / (high - low) for low, high in ends)
    sizes = [
        max(-low / below if below else 0.0, high / above if above else 0.0)
        for low, high in ends
    ]
    return (
        (-below * sizes[0], above * sizes[0]),
        (-below * sizes[1], above * sizes[1]),
    )


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest value, nought among them, with some room."""
    low, high = min([0.0, *values]), max([0.0, *values])
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def _values(measured: Measured) -> list[float]:
    mean = [] if measured.mean is None else [measured.mean]
    return [*measured.values.values(), *(measured.interval or ()), *mean]


def bars(
    panel: Any, x: float, measured: Measured, place: int | None, label: str
) -> None:
    """Seeds as small hollow markers, their mean, and its interval where it has one."""
    if measured.mean is None:
        return
    colour, marker = BASE if place is None else _look(place)
    if measured.interval is not None:
        low, high = measured.interval
        ends = [[measured.mean - low], [high - measured.mean]]
        panel.errorbar([x], [measured.mean], ends, color=colour, capsize=2)
    values = list(measured.values.values())
    if len(values) > 1:
        panel.plot(
            [x] * len(values),
            values,
            linestyle="",
            marker=marker,
            markersize=2.2,
            markerfacecolor="white",
            markeredgewidth=0.5,
            color=colour,
        )
    panel.plot(
        [x], [measured.mean], linestyle="", marker=marker, color=colour, label=label
    )
