"""Models by language pairs, as in Table 2 of the paper: sweeps put side by side.

Each sweep is a table of its own first, so what it may not mix is refused or marked
there; here only rows of one name meet, whose models have to be the same.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report.cells import Column, measured, millions, plain
from transformer_ablation.report.columns import flatten, word
from transformer_ablation.report.consistency import TableError
from transformer_ablation.report.damage import damage_named
from transformer_ablation.report.record import read_sweep
from transformer_ablation.report.table import Options, Table, read_table
from transformer_ablation.report.table_row import TableRow


@dataclasses.dataclass(frozen=True)
class Pair:
    """A language pair (``en-de``), the folder of its sweep and that one's table."""

    name: str
    workdir: Path
    table: Table

    @property
    def rows(self) -> dict[str, TableRow]:
        """By name."""
        return {row.name: row for row in self.table.rows}


@dataclasses.dataclass(frozen=True)
class PairsTable:
    """Rows in the order of the first sweep, then others; ``notes`` below."""

    title: str
    pairs: Sequence[Pair]
    labels: Mapping[str, str]  # of rows, by name
    notes: Sequence[str]

    def of(self, pair: Pair) -> list[TableRow | None]:
        """The pair's row of each line, None where it has none."""
        return [pair.rows.get(name) for name in self.labels]


def read_pairs(
    workdirs: Sequence[str | Path], options: Options | None = None
) -> PairsTable:
    """The table of some sweeps, finished or not, one a language pair.

    Raises:
      TableError: two sweeps of one pair, rows of one name with different models, or
        what a sweep alone may not mix.
      RecordError: a broken file.
    """
    options = dataclasses.replace(options or Options(), sentences=None)
    pairs = [_pair(Path(workdir), options) for workdir in workdirs]
    seen: dict[str, Path] = {}
    for pair in pairs:
        if pair.name in seen:
            raise TableError(
                f"{pair.workdir}: is of {pair.name}, as {seen[pair.name]} is; name one "
                "sweep a language pair"
            )
        seen[pair.name] = pair.workdir
    labels: dict[str, str] = {}
    for pair in pairs:
        for row in pair.table.rows:
            labels.setdefault(row.name, row.label)
    _check_models(pairs)
    return PairsTable(pairs[0].table.title, pairs, labels, _notes(pairs))


def _pair(workdir: Path, options: Options) -> Pair:
    with damage_named(workdir):
        table = read_table(workdir, options)
        data = (read_sweep(workdir) or {})["config"]["data"]
    if data["test_split"] is None:
        raise TableError(
            f"{workdir}: has no test split, of which this table is; give "
            "--config.data.test_split when it is run"
        )
    name = f"{data['source_language']}-{data['target_language']}"
    return Pair(name, workdir, table)


def _check_models(pairs: Sequence[Pair]) -> None:
    """Rows of one name are one model in every pair."""
    problems = []
    first: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for pair in pairs:
        for row in pair.table.rows:
            model = row.config["model"]
            where, known = first.setdefault(row.name, (pair.workdir, model))
            differing = [key for key in model if model[key] != known.get(key)]
            if differing:
                key = differing[0]
                problems.append(
                    f"row {row.name}: model.{key} is {known.get(key)!r} in {where}, "
                    f"but {model[key]!r} in {pair.workdir}; a line has one model"
                )
    if problems:
        raise TableError("\n".join(problems))


def columns(found: PairsTable) -> list[Column]:
    """Row and model; then, a pair, test BLEU beside the paper's; then the costs."""
    several = len(found.pairs) > 1
    result = [
        Column("", "row", [plain(name) for name in found.labels], left=True),
        Column("", "model", [plain(x) for x in found.labels.values()], left=True),
        _parameters(found),
    ]

    def add(
        heading: tuple[str, str],
        pair: Pair,
        value: Callable[[TableRow], float | None],
        cell: Callable[[float | None], str],
    ) -> None:
        values = [value(row) if row else None for row in found.of(pair)]
        cells = [cell(x) for x in values]
        if any(cells):
            result.append(Column(*heading, cells, values=values))

    for pair in found.pairs:
        rows = found.of(pair)
        heading = pair.table.names["bleu"]
        cells = [_marked(row) for row in rows]
        means = [row.bleu_test.mean if row else None for row in rows]
        result.append(Column(heading, pair.name, cells, values=means))
        printed = ("paper", pair.name)
        add(printed, pair, lambda row: row.paper["bleu_test"], _as_printed)
    for pair in found.pairs:
        of, rate = f"{pair.name} " * several, pair.table.rate

        def cost(row: TableRow, rate: float | None = rate) -> float | None:
            seconds = row.device_seconds
            return None if rate is None or seconds is None else seconds * rate

        add((of.strip(), "updates"), pair, lambda row: row.steps, _count)
        add((f"{of}counted", "FLOPs"), pair, _spent, _power)
        add((f"{of}time x rate", "FLOPs"), pair, cost, _power)
        of_paper = (f"{of}paper", "FLOPs")
        add(of_paper, pair, lambda row: row.paper["training_flops"], _power)
    return result


def _marked(row: TableRow | None) -> str:
    """Mean and deviation, and over how many seeds if not all; why there is none yet."""
    if row is None:
        return ""
    scored, all_seeds = len(row.bleu_test.values), len(row.runs)
    text = measured(row.bleu_test, 1)
    if not text:
        text = "no test score" if row.state == "finished" else row.state
    elif scored < all_seeds:
        text = f"{text} ({scored} of {all_seeds})"
    return f"{text} §" if row.marks else text


def _parameters(found: PairsTable) -> Column:
    """Of the first pair that knows them; another vocabulary is another count."""
    cells, values = [], []
    for lines in zip(*map(found.of, found.pairs), strict=True):
        known = next((row for row in lines if row and row.parameters), None)
        cells.append(millions(known.parameters if known else None))
        values.append((known and known.parameters or {}).get("total"))
    return Column("params", "×10⁶", cells, values=values)


def _spent(row: TableRow) -> float | None:
    """FLOPs of a whole training, once there has been one."""
    done = any(run.state == "finished" for run in row.runs)
    return row.training_flops if done else None


def _as_printed(value: float | None) -> str:
    """With as many decimals as the paper gives."""
    return "" if value is None else f"{value:g}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _power(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _notes(pairs: Sequence[Pair]) -> list[str]:
    """What was scored, of each pair; then what is not comparable."""
    notes = []
    for pair in pairs:
        told = pair.table.run_notes
        notes += [f"{pair.name} ({pair.workdir}): {note}" for note in told]
    notes += _differences(pairs)
    notes.append(
        "counted FLOPs: of the matrix products of all updates, padding included. The "
        "paper's FLOPs are training time times devices times the sustained rate of "
        "each (section 6.1); time x rate is the same of ours, with --sustained_flops."
    )
    notes.append(
        "The paper's numbers stand beside the row of their kind: base and big are its "
        "own, GNMT + RL, ConvS2S and ByteNet other systems of that kind, larger than "
        "these."
    )
    return notes


# What a pair has of its own, or a machine: no difference in training to speak of.
OWN_FIELDS = (
    "data.corpus",
    "data.directory",
    "data.source_language",
    "data.target_language",
    "data.train_split",
    "data.validation_split",
    "data.test_split",
)


def _differences(pairs: Sequence[Pair]) -> list[str]:
    """Fields of rows of one name that two pairs do not share: the models are one."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(n for pair in pairs for n in pair.rows):
        configs = {
            p.name: flatten(p.rows[name].config) for p in pairs if name in p.rows
        }
        first, *others = configs
        for other in others:
            for path, value in configs[other].items():
                here = configs[first].get(path)
                if value != here and path not in OWN_FIELDS:
                    what = f"{path} {word(here)} in {first}, {word(value)} in {other}"
                    found.setdefault(what, []).append(name)
    if not found:
        return []
    listed = "; ".join(f"{', '.join(names)}: {what}" for what, names in found.items())
    return [f"Not the same in all pairs: {listed}."]


def as_json(found: PairsTable) -> str:
    """All values unrounded, with notes and folders."""
    value = {
        "title": found.title,
        "pairs": [
            {"pair": pair.name, "workdir": str(pair.workdir), "rows": _values(pair)}
            for pair in found.pairs
        ],
        "notes": list(found.notes),
    }
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _values(pair: Pair) -> list[dict[str, Any]]:
    return [
        {
            "row": row.name,
            "label": row.label,
            "state": row.state,
            "bleu_test": row.bleu_test.mean,
            "bleu_test_by_seed": {str(s): v for s, v in row.bleu_test.values.items()},
            "paper_bleu_test": row.paper["bleu_test"],
            "parameters": row.parameters,
            "updates": row.steps,
            "training_flops": row.training_flops,
            "paper_training_flops": row.paper["training_flops"],
            "device_seconds": row.device_seconds,
            "marks": list(row.marks),
        }
        for row in pair.table.rows
    ]
