"""What a sweep does: check everything, run what is missing."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import sweep_data, sweep_record
from experiments.telling import tell
from transformer_ablation.config import Config
from transformer_ablation.report.record import read_record, read_records, read_sweep
from transformer_ablation.sweep import beside, claims, rows, runs
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.outcome import Outcome

# Folder of the claims of those who change sweep.json.
CLAIMS = "sweep.claims"


@dataclasses.dataclass(frozen=True)
class Request:
    """Which runs are asked for; None for ``rows`` are all, for ``seeds`` base's own.

    ``failed`` leaves only runs that failed; ``beside`` gives rows whose config has
    changed a name and runs of their own.
    """

    rows: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    failed: bool = False
    beside: bool = False


# Runs what has no result yet, or only some of it.
Launch = Callable[[list[runs.Run]], Outcome]


def complete(
    workdir: Path,
    sweep_file: SweepFile,
    request: Request,
    cache: Path,
    launch: Launch,
) -> tuple[list[runs.Run], Outcome]:
    """Check everything, then ``launch`` what is asked for.

    Other launchers may be at work in the same workdir. Nothing is written to the
    workdir before all has been checked: a request that is refused leaves it as it was.
    """
    expanded = rows.expand(sweep_file.base, rows.select(sweep_file.rows, request.rows))
    if request.beside and (sweep := read_sweep(workdir)) is not None:
        expanded = beside.beside(expanded, sweep_file.base, sweep)
        sweep_file = dataclasses.replace(sweep_file, base=beside.stored_base(sweep))
    base = sweep_file.base
    previous = check_workdir(workdir, base)
    records = read_records(workdir)
    runs.check_versions(records)
    identify = sweep_data.identifier(expanded, cache, records)
    seeds = request.seeds or (base.train.seed,)
    if request.failed and not request.seeds and previous is not None:
        seeds = previous["seeds"]
    todo = runs.make_runs(expanded, seeds, workdir, identify)
    if request.failed:
        todo = [run for run in todo if _has_failed(run)]
    done = runs.finals(todo, read_record)
    sweep_data.check((run for run in todo if run.name not in done), cache)
    held = runs.of_other_seeds(todo, records, expanded, workdir, identify)
    runs.check_folders([*todo, *held], read_record)
    asked = (sweep_file, expanded, seeds)
    if not request.failed and sweep_record.merged(previous, *asked) is not None:
        with claims.alone(workdir / CLAIMS, tell):
            sweep_record.write(workdir, check_workdir(workdir, base), *asked)
    return todo, launch(todo)


def _has_failed(run: runs.Run) -> bool:
    record = read_record(run.directory)
    return record is not None and record["status"] == "failed"


def check_workdir(workdir: Path, base: Config) -> Mapping[str, Any] | None:
    """``sweep.json`` of the workdir, where it is of this base and all records whole.

    One of another base that has no record, of which nothing runs and nothing was sent
    to a cluster, counts as none: it was left by a sweep that ran nothing.

    Raises:
      SweepError: it is of another base, or the workdir is a file.
      RecordError: a file there cannot be read.
    """
    if workdir.exists() and not workdir.is_dir():
        raise runs.SweepError(f"{workdir}: is a file; name a folder with --workdir")
    previous = read_sweep(workdir)
    begun = bool(read_records(workdir)) or _anything_claimed(workdir)
    try:
        runs.check_base(workdir, previous, base)
    except runs.SweepError:
        if begun:
            raise
        return None
    return previous


def _anything_claimed(workdir: Path) -> bool:
    if any(workdir.glob("slurm/*/job_id")):
        return True  # its tasks take their configs from sweep.json
    holders = map(claims.current, workdir.glob("runs/*/seed*"))
    return any(holder and not holder.over for holder in holders)
