"""The runs that a workdir's sweep.json plans; no Python config is read or executed."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments import sweep_data
from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import ConfigError, from_mapping, unknown_name
from transformer_ablation.report.record import SWEEP_FILE, read_records, read_sweep
from transformer_ablation.sweep import rows, runs
from transformer_ablation.sweep.runs import Run, SweepError


def load(workdir: Path, cache: Path) -> list[Run]:
    """Every run with its identity: all rows of the first seed, then of the next.

    A corpus that is not in ``cache`` yet is prepared: identities need its manifest.

    Raises:
      SweepError: there is no sweep.json, or one of another version or program.
      ConfigError: rows that cannot be run; rows and records of different text.
      RecordError: a file there cannot be read.
    """
    path = workdir / SWEEP_FILE
    if (sweep := read_sweep(workdir)) is None:
        raise SweepError(
            f"{path}: there is no such file, so nothing is planned there; give the "
            "--workdir of a sweep, or plan one with python -m experiments.sweep"
        )
    if sweep["results_version"] != RESULTS_VERSION:
        raise SweepError(
            f"{path}: was planned with results version {sweep['results_version']}, "
            f"this program has {RESULTS_VERSION}; use another --workdir"
        )
    planned = [(_row(path, row), _seeds(path, sweep, row)) for row in sweep["rows"]]
    if problems := rows.name_faults([item.row for item, _ in planned]):
        raise ConfigError([f"{path}: {problem}" for problem in problems])
    expanded = [item for item, _ in planned]
    identify = sweep_data.identifier(expanded, cache, read_records(workdir))
    found = []
    for seed in dict.fromkeys(seed for _, seeds in planned for seed in seeds):
        items = [item for item, seeds in planned if seed in seeds]
        found += runs.make_runs(items, [seed], workdir, identify)
    return found


def find(workdir: Path, name: str, cache: Path) -> Run:
    """The planned run ``ROW/seedK``.

    Raises:
      SweepError: another form of name, or a run that is not planned there.
      And what ``load`` raises.
    """
    if re.fullmatch(r"[^/]+/seed(0|[1-9][0-9]*)", name) is None:
        example = "for example --run=base/seed0"
        raise SweepError(f"--run={name}: must be ROW/seedK, {example}")
    known = {f"{run.row}/seed{run.seed}": run for run in load(workdir, cache)}
    if name not in known:
        path = workdir / SWEEP_FILE
        raise SweepError(f"{path}: {unknown_name('run', name, known, nearest=3)}")
    return known[name]


def _row(path: Path, stored: Mapping[str, Any]) -> rows.ExpandedRow:
    """A row as it was planned; its config is checked, whatever wrote the file."""
    name, changes = str(stored["name"]), stored["changes"]
    try:
        config = from_mapping(stored["config"])
    except ConfigError as error:
        lines = [f"{path}: row {name}: {problem}" for problem in error.problems]
        raise SweepError(
            "\n".join([*lines, "is it of another version of this program?"])
        ) from None
    row = rows.Row(name, stored["group"], stored["label"], lambda base: changes)
    return rows.ExpandedRow(row, config, changes)


def _seeds(path: Path, sweep: Mapping[str, Any], row: Mapping[str, Any]) -> list[int]:
    """The seeds that a row was asked for."""
    seeds = row.get("seeds", sweep["seeds"])
    good = isinstance(seeds, list) and all(
        type(seed) is int and 0 <= seed < 2**31 for seed in seeds
    )
    if not good:
        raise SweepError(f"{path}: row {row['name']}: seeds must be whole numbers >= 0")
    return seeds
