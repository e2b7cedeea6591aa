"""Figures of a table for papers: PDF and PNG, as wide as a column (3.3 in).

Colours are those of Okabe and Ito, which the colour-blind can tell apart, and every
series has a marker of its own. Fonts are embedded as TrueType. The same table gives
the same bytes: files hold no date.
"""

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report.figure_panels import group_figure
from transformer_ablation.report.figure_scatter import agreement_figure, cost_figure
from transformer_ablation.report.group_figures import GroupFigure, group_figures
from transformer_ablation.report.json_file import write_bytes
from transformer_ablation.report.overall_figures import agreement_figures, cost_points
from transformer_ablation.report.table import Table

FORMATS: Mapping[str, Mapping[str, None]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}
STYLE: Mapping[Any, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "legend.frameon": False,
    "legend.fontsize": 6.5,
    "lines.linewidth": 0.9,
    "lines.markersize": 4,
    "text.parse_math": False,  # a name may hold dollars
    "savefig.dpi": 300,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
MOST_LETTERS = 50  # of a file's name without its ending


def write_figures(
    table: Table, folder: Path, progress: Callable[[str], None] = lambda text: None
) -> list[Path]:
    """Writes every figure that the table has points for; the files, in order.

    ``progress`` hears of what a reader of the figures should know: rows that the table
    marks, letters that the font does not have.
    """
    import matplotlib

    written = []
    # Reads no matplotlibrc: a figure is the same whoever draws it.
    with matplotlib.rc_context(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        for name, figure in drawn(table).items():
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # laid out once, for all formats
            for ending, metadata in FORMATS.items():
                path = folder / f"{name}.{ending}"
                data = io.BytesIO()
                figure.savefig(data, format=ending, metadata=metadata)
                write_bytes(path, data.getvalue())
                written.append(path)
    marked = [row.name for row in table.rows if row.marks]
    if marked and written:
        progress(f"figures: not comparable, marked § in the table: {', '.join(marked)}")
    missing = {str(w.message) for w in caught if "missing from font" in str(w.message)}
    if missing:
        progress(
            f"figures: {len(missing)} letters of names are not in the font and drawn "
            f"as boxes: {'; '.join(sorted(missing))}"
        )
    return written


def drawn(table: Table) -> dict[str, Any]:
    """The matplotlib figures by the names of their files, without ending."""
    groups, names = group_figures(table), table.names
    figures = {
        name: group_figure(figure, names)
        for name, figure in zip(file_names(groups), groups, strict=True)
    }
    agreement = agreement_figures(table)
    if agreement:
        figures["agreement"] = agreement_figure(agreement, names)
    cost = cost_points(table)
    if cost:
        figures["cost"] = cost_figure(cost, names)
    return figures


def file_names(figures: Sequence[GroupFigure]) -> list[str]:
    """Distinct names, also where case does not count, of plain letters alone.

    ``group-A``, or ``group-D-P_drop`` where a group has several figures.
    """
    groups = [figure.group for figure in figures]
    names: list[str] = []
    for figure in figures:
        along = [figure.along] * (groups.count(figure.group) > 1)
        parts = ["group", figure.group, *along]
        name = "-".join(filter(None, (_safe(part) for part in parts)))[:MOST_LETTERS]
        taken = {other.casefold() for other in names}
        number = 2
        chosen = name
        while chosen.casefold() in taken:
            chosen = f"{name}-{number}"
            number += 1
        names.append(chosen)
    return names


def _safe(text: str) -> str:
    spelled = text.replace("ε", "eps")
    return re.sub(r"[^A-Za-z0-9._+]+", "_", spelled).strip("._")
