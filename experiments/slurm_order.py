"""Which runs of a sweep wait for another's training: they decode otherwise, no more."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from experiments import planned_runs
from experiments.slurm_jobs import path_of
from transformer_ablation.report.record import read_records
from transformer_ablation.sweep.identity import training, training_of
from transformer_ablation.sweep.runs import Run


def trained_by(
    workdir: Path, cache: Path, todo: Sequence[Run], queued: dict[str, str]
) -> dict[str, str]:
    """Jobs in the queue by what their runs train, which ``todo`` may not name."""
    known = {path_of(run): run for run in todo}
    if not queued.keys() <= known.keys():
        known |= {path_of(run): run for run in planned_runs.load(workdir, cache)}
    return {  # of several that train the same the one that was sent first
        training(known[name].config): job
        for name, job in reversed(queued.items())
        if name in known
    }


def there(workdir: Path) -> set[str]:
    """What runs have trained that are finished."""
    records = read_records(workdir)
    return {training_of(r["config"]) for r in records if r["status"] == "finished"}


def split(
    left: Sequence[Run], queued: Collection[str], there: Collection[str]
) -> tuple[list[Run], list[Run]]:
    """Runs to start with, and those that wait for what one of them trains, or one that
    is ``queued``; what is ``there`` already nobody waits for."""
    first, later, seen = [], [], {*queued}
    for run in left:
        wanted = training(run.config)
        waits = wanted in seen and wanted not in there
        (later if waits else first).append(run)
        seen.add(wanted)
    return first, later


def arrays(left: Sequence[Run], most: int) -> Iterator[Sequence[Run]]:
    """As many at a time as one array may have."""
    for start in range(0, len(left), most):
        yield left[start : start + most]
