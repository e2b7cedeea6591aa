"""Figures of all rows of a table: agreement with the paper, and cost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.cells import plain
from transformer_ablation.report.figure_panels import (
    bars,
    legend,
    new_figure,
    off_the_scale,
)
from transformer_ablation.report.overall_figures import AgreementFigure, CostPoint


def agreement_figure(
    found: Mapping[str, AgreementFigure], names: Mapping[str, str]
) -> Any:
    """Our differences against the paper's; where both signs are one is shaded."""
    figure, panels = new_figure(0.4 + 2.3 * len(found), len(found))
    places = _places(p.group for shown in found.values() for p in shown.points)
    for panel, (quantity, shown) in zip(panels, found.items(), strict=True):
        for point in shown.points:
            place = places[point.group]
            bars(panel, point.paper, point.ours, place, plain(point.group) or "rows")
        panel.set_title(shown.title)
        lines = [f"Δ{quantity.upper()} in the paper", *off_the_scale(shown.beyond)]
        panel.set_xlabel("\n".join(lines))
        panel.set_ylabel(f"Δ{names[quantity]} here")
        _shade(panel)
    legend(figure, panels)
    figure.draw_without_rendering()
    for panel, shown in zip(panels, found.values(), strict=True):
        _names(panel, [(p.row, p.paper, p.ours.mean or 0.0) for p in shown.points])
    return figure


def _shade(panel: Any) -> None:
    """The two quadrants of one sign, within the limits that the points have set."""
    (left, right), (bottom, top) = panel.get_xlim(), panel.get_ylim()
    left, right, bottom, top = min(left, 0), max(right, 0), min(bottom, 0), max(top, 0)
    for xs, low, high in (((0, right), 0, top), ((left, 0), bottom, 0)):
        panel.fill_between(xs, low, high, color="0.93", linewidth=0, zorder=-1)
    panel.axhline(0, color="0.6", linewidth=0.6, linestyle=":", zorder=0)
    panel.axvline(0, color="0.6", linewidth=0.6, linestyle=":", zorder=0)
    panel.set_xlim(left, right)
    panel.set_ylim(bottom, top)


def _places(groups: Iterable[str]) -> dict[str, int]:
    return {group: i for i, group in enumerate(dict.fromkeys(groups))}


def cost_figure(points: Sequence[CostPoint], names: Mapping[str, str]) -> Any:
    """BLEU against training time times devices."""
    from matplotlib import ticker

    figure, (panel,) = new_figure(2.6, 1)
    places = _places(p.group for p in points if not p.is_base)
    for point in points:
        place = None if point.is_base else places[point.group]
        hours = point.device_seconds / 3600
        label = "base" if point.is_base else plain(point.group) or "rows"
        bars(panel, hours, point.bleu, place, label)
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    panel.minorticks_off()
    panel.set_xlabel("training time × devices, hours")
    panel.set_ylabel(f"{names['bleu']} dev")
    legend(figure, [panel])
    figure.draw_without_rendering()
    _names(
        panel,
        [(p.row, p.device_seconds / 3600, p.bleu.mean or 0.0) for p in points],
    )
    return figure


def _names(panel: Any, points: Iterable[tuple[str, float, float]]) -> None:
    """Names beside points (name, x, y) of a laid out figure, where there is room."""
    size, scale = 5, 72 / panel.figure.dpi  # points; and of a point, in pixels
    placed = [
        (plain(name), *(panel.transData.transform((x, y)) * scale))
        for name, x, y in points
    ]
    left, bottom, right, top = panel.bbox.extents * scale
    taken = [(x - 3, y - 3, x + 3, y + 3) for _, x, y in placed]
    for name, x, y in placed:
        wide = 0.62 * size * len(name)
        for dx, dy in ((4, -2), (-4 - wide, -2), (-wide / 2, 4), (-wide / 2, -8)):
            box = (x + dx, y + dy, x + dx + wide, y + dy + size)
            inside = box[0] > left and box[2] < right and box[1] > bottom
            if inside and box[3] < top and not any(_overlap(box, t) for t in taken):
                taken.append(box)
                spot = panel.transAxes.inverted().transform(
                    (box[0] / scale, box[1] / scale)
                )
                panel.text(
                    *spot, name, transform=panel.transAxes, size=size, color="0.3"
                )
                break


Box = tuple[float, float, float, float]


def _overlap(one: Box, other: Box) -> bool:
    return (
        one[0] < other[2]
        and one[2] > other[0]
        and one[1] < other[3]
        and one[3] > other[1]
    )
