"""Cells of a table as people read them: the only place where numbers are rounded.

PPL has 2 decimals and BLEU 1, as the paper prints them.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import Measure, TableRow

REASON_LETTERS = 28


def number(value: float | None, decimals: int, sign: str = "") -> str:
    """A rounded number, blank where unknown; no minus before a rounded zero."""
    if value is None:
        return ""
    if round(value, decimals) == 0:
        value = 0.0
    return f"{value:{sign}.{decimals}f}"


def measured(measure: Measure, decimals: int) -> str:
    """``mean`` or ``mean ± deviation``."""
    text = number(measure.mean, decimals)
    if measure.deviation is not None:
        text += f" ± {number(measure.deviation, decimals)}"
    return text


def millions(parameters: Mapping[str, int] | None) -> str:
    """Total parameters in millions, to three figures or whole."""
    total = (parameters or {}).get("total")
    if total is None:
        return ""
    figures = total / 1e6
    if figures >= 100:
        return f"{figures:.0f}"
    return f"{figures:.1f}" if figures >= 10 else f"{figures:.2f}"


def state_cell(row: TableRow) -> str:
    """Blank when all runs finished; else how many are and are not, or the reason."""
    open_runs = [r for r in row.runs if r.state != "finished"]
    if not open_runs:
        return ""
    if len(row.runs) > 1:
        states = [r.state for r in open_runs]
        counts = [f"{states.count(s)} {s}" for s in dict.fromkeys(states)]
        done = len(row.runs) - len(open_runs)
        return ", ".join([f"{done} of {len(row.runs)}", *counts])
    run = open_runs[0]
    if run.reason:
        cut = run.reason.splitlines()[0]
        short = cut if len(cut) <= REASON_LETTERS else cut[: REASON_LETTERS - 1] + "…"
        return f"{run.state}: {short}"
    return run.state if run.step is None else f"{run.state} {run.step}/{row.steps}"


@dataclasses.dataclass(frozen=True)
class Column:
    """Two lines of heading, and one cell a row."""

    top: str
    bottom: str
    cells: Sequence[str]
    left: bool = False

    @property
    def width(self) -> int:
        """Letters of the widest cell or heading."""
        return max(map(len, [self.top, self.bottom, *self.cells]))


def result_columns(table: Table) -> list[Column]:
    """Measured columns, then the paper's; those with nothing to say are left out."""
    rows, columns = table.rows, []

    def add(top: str, bottom: str, cells: list[str], always: bool = False) -> None:
        if always or any(cells):
            columns.append(Column(top, bottom, cells))

    mark = ["" if r.ppl_comparable else " †" for r in rows]
    ppl = [measured(r.ppl, 2) + m for r, m in zip(rows, mark, strict=True)]
    add("PPL", "dev", ppl, always=True)
    bleu = "BLEU" if table.metric == "bleu" else "paper-BLEU"
    add(bleu, "dev", [measured(r.bleu, 1) for r in rows], always=True)
    add(bleu, "averaged", [_averaged(r) for r in rows])
    add(bleu, "test", [measured(r.bleu_test, 1) for r in rows])
    add("", "ΔPPL", [_delta(r, "ppl", 2) for r in rows])
    add("", f"Δ{bleu}", [_delta(r, "bleu", 1) for r in rows])
    add("params", "×10⁶", [millions(r.parameters) for r in rows])
    if table.has_paper:
        add("paper", "PPL", [number(r.paper["ppl"], 2) for r in rows])
        add("paper", "BLEU", [number(r.paper["bleu"], 1) for r in rows])
        add("paper", "ΔPPL", [_delta(r, "paper_ppl", 2) for r in rows])
        add("paper", "ΔBLEU", [_delta(r, "paper_bleu", 1) for r in rows])
    if table.rate is not None:
        add("cost", "FLOPs", [_cost(r, table.rate) for r in rows], always=True)
    states = [state_cell(r) for r in rows]
    if any(states):
        columns.append(Column("", "state", states, left=True))
    return columns


def _cost(row: TableRow, rate: float) -> str:
    seconds = row.device_seconds
    return "" if seconds is None else f"{seconds * rate:.1e}"


def _averaged(row: TableRow) -> str:
    """``26.3 (5)``: BLEU and of how many checkpoints."""
    counts = dict.fromkeys(str(len(steps)) for steps in row.averaged_steps.values())
    text = measured(row.averaged, 1)
    return f"{text} ({'/'.join(counts)})" if text else ""


def _delta(row: TableRow, quantity: str, decimals: int) -> str:
    return "" if row.is_base else number(row.deltas[quantity], decimals, "+")


def row_columns(table: Table) -> list[Column]:
    """Group (where the sweep has groups) and name."""
    rows = table.rows
    groups = [_group(r) for r in rows]
    first = [g if i == 0 or g != groups[i - 1] else "" for i, g in enumerate(groups)]
    columns = [Column("", "", first, left=True)] if any(groups) else []
    return [*columns, Column("", "row", [r.name for r in rows], left=True)]


def _group(row: TableRow) -> str:
    """``(A)``, or blank where the row is its own group, as base and big are."""
    return f"({row.group})" if row.group and row.group != row.name else ""


def config_columns(table: Table) -> list[Column]:
    """Fields of the config, blank where equal to base."""
    return [
        Column("", heading, [r.cells.get(heading, "") for r in table.rows])
        for heading in table.columns
    ]
