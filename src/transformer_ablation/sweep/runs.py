"""Runs: a row with a seed, its identity and its folder; and what may share one."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import (
    Config,
    ConfigError,
    differences,
    replace,
    to_mapping,
)
from transformer_ablation.config import from_mapping as config_from
from transformer_ablation.sweep.rows import ExpandedRow

# States after which a run with the same identity is never run again: training is
# deterministic, so a run that diverged would diverge again.
FINAL = ("finished", "diverged")

ADVICE = "use another --workdir, or have new runs beside those with sweep --beside"

ReadRecord = Callable[[Path], Mapping[str, Any] | None]


class SweepError(ValueError):
    """A sweep that is refused before anything starts."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One training of one row; ``directory`` is WORKDIR/runs/ROW/seedK."""

    row: str
    group: str
    label: str
    seed: int
    config: Config
    identity: str
    directory: Path

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.row} seed {self.seed}"


def parse_seeds(text: str | None, default: int) -> tuple[int, ...]:
    """``"0,1,2"`` as numbers; the default alone for None.

    Raises:
      SweepError: something else than whole numbers, or one twice.
    """
    if text is None:
        return (default,)
    parts = [part.strip() for part in text.split(",")]
    plain = all(part.isascii() and part.isdigit() for part in parts)
    seeds = tuple(map(int, parts)) if plain and len(max(parts, key=len)) < 12 else ()
    if not seeds or any(not 0 <= seed < 2**31 for seed in seeds):
        raise SweepError(
            f"--seeds={text}: it must be whole numbers from 0 to {2**31 - 1} with "
            "commas between them, for example --seeds=0,1,2"
        )
    if len(set(seeds)) < len(seeds):
        raise SweepError(f"--seeds={text}: a seed stands there twice; name each once")
    return seeds


def make_runs(
    expanded: Sequence[ExpandedRow],
    seeds: Sequence[int],
    workdir: Path,
    identify: Callable[[Config], str],
) -> list[Run]:
    """All rows with the first seed, then all with the second, and so on: a whole
    table is there as early as can be."""
    return [
        make_run(item, seed, workdir, identify) for seed in seeds for item in expanded
    ]


def make_run(
    item: ExpandedRow, seed: int, workdir: Path, identify: Callable[[Config], str]
) -> Run:
    """The run of one row with a seed."""
    row, config = item.row, replace(item.config, {"train.seed": seed})
    where = folder(workdir, row.name, seed)
    return Run(row.name, row.group, row.label, seed, config, identify(config), where)


def of_other_seeds(
    asked: Sequence[Run],
    records: Sequence[Mapping[str, Any]],
    expanded: Sequence[ExpandedRow],
    workdir: Path,
    identify: Callable[[Config], str],
) -> list[Run]:
    """Runs that the workdir has of the rows asked for beside those: one table will
    have them all."""
    names = {run.name for run in asked}
    rows = {run.row for run in asked}
    of_row = {item.row.name: item for item in expanded if item.row.name in rows}
    found = [
        make_run(of_row[record["row"]], record["seed"], workdir, identify)
        for record in records
        if record["row"] in of_row
    ]
    return [run for run in found if run.name not in names]


def folder(workdir: Path, row: str, seed: int) -> Path:
    """``WORKDIR/runs/ROW/seedK``."""
    return workdir / "runs" / row / f"seed{seed}"


def final_status(run: Run, read_record: ReadRecord) -> str | None:
    """How the run of this folder ended for good; None if it is still to be run."""
    record = read_record(run.directory)
    if record is None or record.get("identity") != run.identity:
        return None
    return record["status"] if record.get("status") in FINAL else None


def finals(runs: Sequence[Run], read_record: ReadRecord) -> dict[str, str]:
    """``{name: status}`` of the runs that are not to be run again."""
    found = {run.name: final_status(run, read_record) for run in runs}
    return {name: status for name, status in found.items() if status is not None}


def check_folders(runs: Sequence[Run], read_record: ReadRecord) -> None:
    """Refuse folders that hold another run than the one that is to go there.

    Raises:
      SweepError: naming every such folder and the fields that differ.
    """
    problems = []
    for run in runs:
        record = read_record(run.directory)
        held = None if record is None else record.get("identity")
        if record is not None and held is not None and held != run.identity:
            reason = _why_different(record, run)
            problems.append(f"{run.directory}: holds another run: {reason}")
    if problems:
        advice = f"{ADVICE}, or move these"
        raise SweepError("\n".join([*problems, advice]))


def check_versions(records: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a workdir with runs of another version: no table takes both.

    Raises:
      SweepError: naming every such run.
    """
    problems = [
        f"{record['row']}/seed{record['seed']}: has results of version "
        f"{record['results_version']}, those of this program have {RESULTS_VERSION}"
        for record in records
        if record["results_version"] != RESULTS_VERSION
    ]
    if problems:
        advice = "no table takes both: use another --workdir"
        raise SweepError("\n".join([*problems, advice]))


def _why_different(record: Mapping[str, Any], run: Run) -> str:
    """The fields in which a recorded run differs from the run now asked for."""
    try:
        found = describe(config_from(record["config"]), run.config)
    except (ConfigError, KeyError, TypeError):
        return "its config is of another version of this program"
    return found or "the data or the version of the results changed since"


def holds(record: Mapping[str, Any], config: Config) -> bool:
    """Whether a record is of this config, wherever its data lies."""
    try:
        return not describe(config_from(record["config"]), config)
    except (ConfigError, KeyError, TypeError):
        return False


def check_base(workdir: Path, previous: Mapping[str, Any] | None, base: Config) -> None:
    """Refuse a workdir whose sweep.json was written for another base config.

    Raises:
      SweepError: naming the fields that differ.
    """
    if previous is None:
        return
    try:
        found = describe(config_from(previous["config"]), base, ("train.seed",))
    except (ConfigError, KeyError, TypeError):
        message = "holds a sweep of another version of this program"
        raise SweepError(f"{workdir}: {message}; {ADVICE}") from None
    if found:
        raise SweepError(f"{workdir}: holds another sweep: {found}; {ADVICE}")


def describe(before: Config, now: Config, ignored: tuple[str, ...] = ()) -> str:
    """``path is A there and B now``, for every field that differs."""
    skipped = {"data.directory", *ignored}
    found = differences(before, now)
    return ", ".join(
        f"{path} is {old!r} there and {new!r} now"
        for path, (old, new) in found.items()
        if path not in skipped
    )


def run_to_mapping(run: Run) -> dict[str, Any]:
    """The run as plain values, for another process."""
    config, directory = to_mapping(run.config), str(run.directory)
    return {**vars(run), "config": config, "directory": directory}


def run_from_mapping(mapping: Mapping[str, Any]) -> Run:
    """The run that ``run_to_mapping`` said."""
    config, directory = config_from(mapping["config"]), Path(mapping["directory"])
    return Run(**{**mapping, "config": config, "directory": directory})
