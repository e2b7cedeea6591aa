"""What the figures of groups show: the data of a page's and of a paper's figures.

One figure a group. Along its x axis lies the field that all rows of the group change
and, where there is none, the number of parameters if that tells the rows apart; a
group with neither has a figure for each field.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.columns import (
    PAPER_COLUMNS,
    cell,
    flatten,
    row_differences,
)
from transformer_ablation.report.seed_tests import t_interval
from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import Measure, TableRow

SIZE = "parameters (millions)"
QUANTITIES = ("bleu", "ppl")
LOG_RATIO = 8  # of the largest x to the smallest, from which on an axis is logarithmic
OFF_SCALE = 100  # times the least PPL of a table, beyond which one hides all others


@dataclasses.dataclass(frozen=True)
class Measured:
    """Values by seed, their mean, and its 95% t interval, which needs two seeds."""

    values: Mapping[int, float]
    mean: float | None
    interval: tuple[float, float] | None


@dataclasses.dataclass(frozen=True)
class Point:
    """A row in a figure.

    ``x`` is its number, or its place among categories; ``label`` how that reads.
    Points of one ``series`` are joined. ``values`` and ``deltas`` (to base, over shared
    seeds) are ours and ``paper`` the paper's differences, all by quantity: bleu, ppl.
    """

    row: str
    x: float
    label: str
    series: str
    is_base: bool
    values: Mapping[str, Measured]
    deltas: Mapping[str, Measured]
    paper: Mapping[str, float | None]


@dataclasses.dataclass(frozen=True)
class GroupFigure:
    """BLEU and PPL of the rows of a group and of base; rows without either are not in.

    ``along`` names the x axis, ``beside`` other fields that the rows change with it.
    ``ticks`` are (x, how it reads) of the points; none where round numbers serve.
    ``missing`` are rows of the group that have nothing to show, ``beyond`` those whose
    PPL is off the scale, and not drawn.
    """

    group: str
    along: str
    beside: Sequence[str]
    numeric: bool
    logarithmic: bool
    ticks: Sequence[tuple[float, str]]
    points: Sequence[Point]
    missing: Sequence[str]
    beyond: Sequence[str] = ()


def group_figures(table: Table) -> list[GroupFigure]:
    """The figures of all groups with a score, in the order of the table."""
    base = next((row for row in table.rows if row.is_base), None)
    groups: dict[str, list[TableRow]] = {}
    for row in table.rows:
        if not row.is_base:
            groups.setdefault(row.group, []).append(row)
    figures = []
    for group, rows in groups.items():
        figures += _figures(group, rows, base)
    far = off_scale(table)
    return [
        _without(figure, far)
        for figure in figures
        if not all(point.is_base for point in figure.points)
    ]


def off_scale(table: Table) -> list[str]:
    """Rows whose PPL is so far beyond the best that nobody could see the others."""
    means = {row.name: row.ppl.mean for row in table.rows}
    known = [mean for mean in means.values() if mean is not None]
    most = OFF_SCALE * min(known, default=0.0)
    return [name for name, mean in means.items() if mean is not None and mean > most]


def _without(figure: GroupFigure, far: Sequence[str]) -> GroupFigure:
    """The figure without the PPL of these rows."""
    nothing = Measured({}, None, None)

    def cut(point: Point) -> Point:
        if point.row not in far:
            return point
        values, deltas = ({**x, "ppl": nothing} for x in (point.values, point.deltas))
        return dataclasses.replace(point, values=values, deltas=deltas)

    beyond = [point.row for point in figure.points if point.row in far]
    points = [cut(point) for point in figure.points]
    return dataclasses.replace(figure, points=points, beyond=beyond)


def _figures(
    group: str, rows: Sequence[TableRow], base: TableRow | None
) -> list[GroupFigure]:
    changed = _changed(rows, base)
    common = [p for p in _ordered(changed) if all(p in c for c in changed.values())]
    first = {name: _ordered({name: paths}) for name, paths in changed.items()}
    if len(rows) == 1 and len(changed[rows[0].name]) > 1:
        return [_figure(group, "row", [], rows, base, {})]
    if common and _distinct(rows, base, common[0]):
        path = common[0]
        beside = [p for p in _ordered(changed) if p != path]
        return [_figure(group, path, beside, rows, base, {})]
    mains = {name: _main(paths, common) for name, paths in first.items()}
    several = list(dict.fromkeys(mains.values()))
    sizes = [_millions(row) for row in rows if row.parameters]
    if len(several) > 1 and len(set(sizes)) == len(rows) > 1:
        return [_figure(group, SIZE, [], rows, base, mains)]
    figures = []
    for path in several:
        some = [row for row in rows if mains[row.name] == path]
        named = {row.name: changed[row.name] for row in some}
        beside = [p for p in _ordered(named) if p != path]
        along = path if _distinct(some, base, path) else "row"
        figures.append(_figure(group, along, beside, some, base, {}))
    return figures


def _changed(rows: Sequence[TableRow], base: TableRow | None) -> dict[str, list[str]]:
    """Fields that each row changes of base; without base all that any two differ in."""
    if base is not None:
        return {r.name: list(row_differences(base.config, r.config)) for r in rows}
    some = [row_differences(rows[0].config, row.config) for row in rows]
    paths = list(dict.fromkeys(path for found in some for path in found))
    return {row.name: paths for row in rows}


def _ordered(changed: Mapping[str, Iterable[str]]) -> list[str]:
    """All fields, the paper's columns first, in their order."""
    found = dict.fromkeys(path for paths in changed.values() for path in paths)
    known = [path for path in PAPER_COLUMNS.values() if path in found]
    return known + [path for path in found if path not in known]


def _main(paths: Sequence[str], common: Sequence[str]) -> str:
    own = [path for path in paths if path not in common]
    return (own or list(paths) or ["row"])[0]


def _distinct(rows: Sequence[TableRow], base: TableRow | None, path: str) -> bool:
    """Whether the field tells all rows apart."""
    if path == "row":
        return True
    values = [flatten(r.config).get(path) for r in [*rows, *([base] if base else [])]]
    return len({repr(value) for value in values}) == len(values)


def _figure(
    group: str,
    along: str,
    beside: Sequence[str],
    rows: Sequence[TableRow],
    base: TableRow | None,
    series: Mapping[str, str],
) -> GroupFigure:
    shown = [row for row in [*([base] if base else []), *rows] if _known(row)]
    if along == SIZE:
        shown = [row for row in shown if row.parameters]
    xs = [_x(row, along) for row in shown]
    numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs)
    if not numeric:
        order = {_label(along, x): i for i, x in enumerate(xs)}
        places = [float(order[_label(along, x)]) for x in xs]
    else:
        places = [float(x) for x in xs]
    points = [
        _point(row, place, _label(along, x), heading(series.get(row.name, along)))
        for row, place, x in zip(shown, places, xs, strict=True)
    ]
    ticks = {} if along == SIZE else {point.x: point.label for point in points}
    return GroupFigure(
        group,
        heading(along),
        [heading(path) for path in beside],
        numeric,
        bool(points) and numeric and min(places) > 0 and _wide(places),
        sorted(ticks.items()),
        sorted(points, key=lambda point: point.x),
        [row.name for row in rows if row not in shown],
    )


def _wide(places: Sequence[float]) -> bool:
    return max(places) >= LOG_RATIO * min(places)


def _known(row: TableRow) -> bool:
    return bool(row.bleu.values or row.ppl.values)


def _x(row: TableRow, along: str) -> Any:
    if along == "row":
        return row.name
    return _millions(row) if along == SIZE else flatten(row.config).get(along)


def _label(along: str, x: Any) -> str:
    return f"{x:.3g}" if along == SIZE else cell(along, x)


def _millions(row: TableRow) -> float:
    return (row.parameters or {}).get("total", 0) / 1e6


def heading(path: str) -> str:
    """A field as the table's columns name it."""
    return next((name for name, p in PAPER_COLUMNS.items() if p == path), path)


def _point(row: TableRow, x: float, label: str, series: str) -> Point:
    values = {"bleu": measured(row.bleu), "ppl": measured(row.ppl)}
    return Point(
        row.name,
        x,
        label,
        series,
        row.is_base,
        values,
        {q: delta_of(row, q) for q in QUANTITIES},
        {q: row.deltas[f"paper_{q}"] for q in QUANTITIES},
    )


def measured(measure: Measure) -> Measured:
    """A measure with the interval of its mean."""
    values = list(measure.values.values())
    return Measured(dict(measure.values), measure.mean, t_interval(values))


def delta_of(row: TableRow, quantity: str) -> Measured:
    """The table's differences to base by seed; base's own are nought."""
    if row.is_base:
        values = getattr(row, quantity).values
        return Measured(dict.fromkeys(values, 0.0), 0.0 if values else None, None)
    test = row.tests.seeds.get(quantity)
    if test is None:
        return Measured({}, row.deltas[quantity], None)
    return Measured(dict(test.differences), row.deltas[quantity], test.interval)
