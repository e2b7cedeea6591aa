"""Arrays that a workdir has submitted, and where their tasks are in the queue.

Each has a folder ``WORKDIR/slurm/NAME``: job.sh, runs.txt (task n is line n, from 0),
job_id once it is submitted, and a log a task. NAME is the name of the job: an array is
found in the queue by it, even if job_id could not be written.
"""

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from transformer_ablation.report.json_file import write_text
from transformer_ablation.sweep import slurm_queue
from transformer_ablation.sweep.runs import Run

SCRIPT, RUNS, JOB = "job.sh", "runs.txt", "job_id"


class Place(NamedTuple):
    """Where a run was last sent; no task where it has left squeue's memory."""

    folder: Path
    index: int
    job: int | None
    task: slurm_queue.Task | None

    @property
    def queued(self) -> bool:
        """Whether the run waits or goes on there."""
        return self.task is not None and (self.task.waiting or self.task.going)

    def __str__(self) -> str:
        return self.task.label if self.task else f"job {self.job}_{self.index}"


def new_folder(workdir: Path) -> Path:
    """A folder for one more array; its name is quoted nowhere, as it need not be."""
    word = re.sub(r"[^A-Za-z0-9_-]", "_", workdir.name)[:30].strip("_-") or "sweep"
    return workdir / "slurm" / f"{word}-{secrets.token_hex(4)}"


def write(folder: Path, script: str, names: Sequence[str]) -> None:
    """What is to be submitted, before it is."""
    write_text(folder / RUNS, "".join(f"{name}\n" for name in names))
    write_text(folder / SCRIPT, script)


def places(workdir: Path) -> dict[str, Place]:
    """``{ROW/seedK: where it was last sent}``, live tasks before any other.

    Raises:
      SlurmUnavailable: squeue is missing or fails, and something was submitted.
    """
    paths = sorted(workdir.glob(f"slurm/*/{RUNS}"), key=lambda p: p.stat().st_mtime)
    names = [path.parent.name for path in paths]
    found = {(t.name, t.index): t for t in slurm_queue.tasks(names)}
    placed: dict[str, Place] = {}
    for folder in (path.parent for path in paths):
        job = _job(folder)
        for index, run in enumerate((folder / RUNS).read_text().splitlines()):
            task = found.get((folder.name, index))
            place = Place(folder, index, task.job if task else job, task)
            earlier = placed.get(run)
            if place.job is not None and not (earlier and earlier.queued):
                placed[run] = place
    return placed


def _job(folder: Path) -> int | None:
    path = folder / JOB
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text.isdecimal() else None


def path_of(run: Run) -> str:
    """``ROW/seedK``."""
    return f"{run.row}/seed{run.seed}"
