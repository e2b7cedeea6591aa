"""Cells of a table as people read them: the only place where numbers are rounded.

PPL has 2 decimals and BLEU 1, as the paper prints them.
"""

import dataclasses
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from transformer_ablation.report.agreement import same_sign
from transformer_ablation.report.columns import flatten, word
from transformer_ablation.report.seed_tests import LEVEL
from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import Measure, TableRow

REASON_LETTERS = 28
UNKNOWN = "?"  # of a size, which every row has
MOST = 1e6  # beyond which a number is written with a power of ten
DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def number(value: float | None, decimals: int, sign: str = "") -> str:
    """A rounded number, blank where unknown; a difference keeps its sign at zero.

    One of more figures than a cell should hold has a power of ten.
    """
    if value is None:
        return ""
    if abs(value) >= MOST:
        return f"{value:{sign}.1e}"
    if round(value, decimals) == 0 and not (sign and value < 0):
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


Value = float | str | None


@dataclasses.dataclass(frozen=True)
class Column:
    """Two lines of heading, and one cell a row.

    A column of ``part`` 2 tells of differences; a page too narrow for all columns has
    these below the others. ``values`` are the unrounded numbers behind the cells, None
    where unknown; empty where the cells are what there is.
    """

    top: str
    bottom: str
    cells: Sequence[str]
    left: bool = False
    part: int = 1
    values: Sequence[Value] = ()

    @property
    def heading(self) -> str:
        """Both lines in one; a dotted path has no space at its dot."""
        gap = "" if self.top.endswith(".") else " "
        return f"{self.top}{gap}{self.bottom}".strip()

    @property
    def width(self) -> int:
        """Places of the widest cell or heading."""
        return max(map(places, [self.top, self.bottom, *self.cells]))


def places(text: str) -> int:
    """Places of a text in a terminal: 2 a wide letter, none a mark on another."""
    return sum(_places(letter) for letter in text)


def _places(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def plain(text: str) -> str:
    """Text on one line without control characters; right-to-left text kept together.

    Without its isolation such a text would reorder the numbers beside it; marks of its
    own for direction, which could end or outlast that, are left out.
    """
    letters = (
        " " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c
        for c in text
        if unicodedata.bidirectional(c) not in DIRECTIONS
    )
    line = " ".join("".join(letters).split())
    if any(unicodedata.bidirectional(c) in ("R", "AL") for c in line):
        return f"\u2068{line}\u2069"
    return line


def result_columns(table: Table) -> list[Column]:
    """Measured columns, then the paper's; those with nothing to say are left out."""
    rows, columns = table.rows, []

    def add(
        top: str,
        bottom: str,
        cells: list[str],
        values: list[Value],
        part: int = 1,
        always: bool = False,
    ) -> None:
        if always or any(cells):
            columns.append(Column(top, bottom, cells, part=part, values=values))

    def delta(quantity: str) -> list[Value]:
        return [None if r.is_base else r.deltas[quantity] for r in rows]

    mark = ["" if r.ppl_comparable else " †" for r in rows]
    ppl = [measured(r.ppl, 2) + m for r, m in zip(rows, mark, strict=True)]
    add("PPL", "dev", ppl, [r.ppl.mean for r in rows], always=True)
    bleu = table.names["bleu"]
    dev, test = [r.bleu for r in rows], [r.bleu_test for r in rows]
    add(bleu, "dev", [measured(m, 1) for m in dev], [m.mean for m in dev], always=True)
    add(bleu, "averaged", [_averaged(r) for r in rows], [r.averaged.mean for r in rows])
    add(bleu, "test", [measured(m, 1) for m in test], [m.mean for m in test])
    add("", "n", [_count(r) for r in rows], [])
    if any(totals := [(r.parameters or {}).get("total") for r in rows]):
        sizes = [millions(r.parameters) or UNKNOWN for r in rows]
        add("params", "×10⁶", sizes, list(totals))
    add("", "ΔPPL", [_delta(r, "ppl", 2) for r in rows], delta("ppl"), 2)
    add("", f"Δ{bleu}", [_delta(r, "bleu", 1) for r in rows], delta("bleu"), 2)
    over = [r.tests.p if r.tests.basis == "seeds" else None for r in rows]
    add("p", "seeds", [_p_seeds(r) for r in rows], list(over), 2)
    add("p", "sent.", [_p_sentences(r) for r in rows], _sentence_values(rows), 2)
    if table.has_paper:
        for quantity, decimals in (("ppl", 2), ("bleu", 1)):
            printed = [r.paper[quantity] for r in rows]
            cells = [number(value, decimals) for value in printed]
            add("paper", quantity.upper(), cells, list(printed))
        tested = [r.paper["bleu_test"] for r in rows]
        add("paper", "BLEU test", [number(x, 1) for x in tested], list(tested))
        for quantity, decimals in (("ppl", 2), ("bleu", 1)):
            cells = _paper_deltas(rows, quantity, decimals)
            values = delta(f"paper_{quantity}")
            add("paper", f"Δ{quantity.upper()}", cells, values, 2)
    seconds = [r.device_seconds for r in rows]
    add("", "train", [duration(s) for s in seconds], list(seconds), 2)
    if table.rate is not None:
        cost = [_cost(r, table.rate) for r in rows]
        add("cost", "FLOPs", cost, list(seconds), 2, always=True)
    states = [plain(state_cell(r)) for r in rows]
    if any(states):
        columns.append(Column("", "state", states, left=True, part=2))
    return columns


def _count(row: TableRow) -> str:
    """Seeds that were scored."""
    count = max(len(m.values) for m in (row.ppl, row.bleu))
    return str(count) if count else ""


def p_value(p: float | None) -> str:
    """Two figures, and ``ns`` where base cannot be told apart."""
    if p is None:
        return ""
    text = "<.001" if p < 0.001 else f"{p:.2g}" if p < 0.1 else f"{p:.2f}"
    return text if p < LEVEL else f"{text} ns"


def _p_seeds(row: TableRow) -> str:
    return p_value(row.tests.p) if row.tests.basis == "seeds" else ""


def _p_sentences(row: TableRow) -> str:
    """The p of the one seed, or in how many of the seeds it is small."""
    tests = row.tests
    if tests.basis == "sentences" and len(tests.sentences) == 1:
        return p_value(tests.p)
    seeds = len(tests.sentences)
    return f"{tests.different_seeds}/{seeds}" if seeds else ""


def _sentence_values(rows: Sequence[TableRow]) -> list[Value]:
    """What ``_p_sentences`` tells: p of one seed, else the share of seeds."""
    values: list[Value] = []
    for row in rows:
        tests, seeds = row.tests, len(row.tests.sentences)
        single = tests.basis == "sentences" and seeds == 1
        share = tests.different_seeds / seeds if seeds else None
        values.append(tests.p if single else share)
    return values


def duration(seconds: float | None) -> str:
    """Seconds as people say them, to about three figures."""
    if seconds is None:
        return ""
    for size, unit, limit in ((1, "s", 100), (60, "min", 100), (3600, "h", 100)):
        if seconds < size * limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def _paper_deltas(rows: Sequence[TableRow], quantity: str, decimals: int) -> list[str]:
    """The paper's differences, marked where ours goes the other way."""
    cells = []
    for row in rows:
        ours, papers = row.deltas[quantity], row.deltas[f"paper_{quantity}"]
        other = same_sign(ours, papers) is False
        text = _delta(row, f"paper_{quantity}", decimals)
        cells.append(f"{text} ≠" if other and text else text)
    return cells


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
    """Group (where the sweep has groups) and name; a row that mixes has a mark."""
    rows = table.rows
    groups = [group_name(r) for r in rows]
    first = [g if i == 0 or g != groups[i - 1] else "" for i, g in enumerate(groups)]
    columns = [Column("", "", first, left=True)] if any(groups) else []
    names = [plain(r.name) + (" §" if r.marks else "") for r in rows]
    return [*columns, Column("", "row", names, left=True)]


def group_name(row: TableRow) -> str:
    """``(A)``, or blank where the row is its own group, as base and big are."""
    return f"({plain(row.group)})" if row.group and row.group != row.name else ""


def config_columns(table: Table) -> list[Column]:
    """Fields of the config, blank where equal to base."""
    columns = []
    for heading, path in table.columns.items():
        section, dot, field = heading.rpartition(".")
        cells = [plain(r.cells.get(heading, "")) for r in table.rows]
        values = [_sortable(flatten(r.config).get(path)) for r in table.rows]
        columns.append(Column(section + dot, field, cells, values=values))
    return columns


def _sortable(value: Any) -> Value:
    """A config value, base's too where its cell is blank."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return word(value)


def other_column(table: Table) -> Column:
    """Changes that no column says, in words."""
    return Column("", "other", [plain(r.other) for r in table.rows], left=True)
