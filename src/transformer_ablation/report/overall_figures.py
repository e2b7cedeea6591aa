"""What the figures of all rows of a table show: agreement with the paper, and cost."""

import dataclasses
from collections.abc import Sequence

from transformer_ablation.report.agreement import Agreement
from transformer_ablation.report.columns import counted
from transformer_ablation.report.group_figures import (
    QUANTITIES,
    Measured,
    delta_of,
    measured,
    off_scale,
)
from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import comparable


@dataclasses.dataclass(frozen=True)
class AgreementPoint:
    """A row's difference to base: ours (mean over seeds), and the paper's."""

    row: str
    group: str
    ours: Measured
    paper: float


@dataclasses.dataclass(frozen=True)
class AgreementFigure:
    """Our differences against the paper's, of all rows that have both.

    ``title`` tells of all of them; ``beyond`` are those whose PPL is off the scale,
    and not drawn.
    """

    title: str
    points: Sequence[AgreementPoint]
    beyond: Sequence[str]


def agreement_figures(table: Table) -> dict[str, AgreementFigure]:
    """By quantity, those that some row, unmixed and not base, has both differences in.

    The rows are those of ``table.agreement``.
    """
    figures = {}
    for quantity in QUANTITIES:
        points = [
            AgreementPoint(row.name, row.group, ours, paper)
            for row in comparable(table.rows)
            if (ours := delta_of(row, quantity)).mean is not None
            and (paper := row.deltas[f"paper_{quantity}"]) is not None
        ]
        found = table.agreement[quantity]
        if found is not None:
            far = off_scale(table) if quantity == "ppl" else []
            figures[quantity] = AgreementFigure(
                _agreement_title(table.names[quantity], found),
                [point for point in points if point.row not in far],
                [point.row for point in points if point.row in far],
            )
    return figures


def _agreement_title(name: str, found: Agreement) -> str:
    text = f"Δ{name}, {counted(found.rows, 'row')}"
    if found.tau is None or found.rows < 2:
        return text
    text += f": Kendall's tau-b {found.tau:+.2f}"
    if found.interval is not None:
        text += f" [{found.interval[0]:+.2f}, {found.interval[1]:+.2f}]"
    return text


@dataclasses.dataclass(frozen=True)
class CostPoint:
    """Training time times devices of a row (mean over its runs), and its BLEU."""

    row: str
    group: str
    is_base: bool
    device_seconds: float
    bleu: Measured


def cost_points(table: Table) -> list[CostPoint]:
    """Rows of which both the cost and BLEU are known."""
    return [
        CostPoint(r.name, r.group, r.is_base, r.device_seconds, measured(r.bleu))
        for r in table.rows
        if r.device_seconds is not None and r.bleu.values
    ]
