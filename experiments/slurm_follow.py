"""Waiting for the arrays of a sweep, and cancelling them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from time import sleep

from experiments import slurm_jobs
from experiments.slurm_jobs import path_of
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import runs, slurm_queue
from transformer_ablation.sweep.outcome import Outcome
from transformer_ablation.sweep.runs import Run

POLL_SECONDS = 15.0


def follow(workdir: Path, todo: Sequence[Run]) -> Outcome:
    """Wait until none of the runs is in the queue; how each of them ended."""
    said = ""
    while True:
        places = slurm_jobs.places(workdir)
        ours = [p.task for r in todo if (p := places.get(path_of(r))) and p.queued]
        waiting = sum(task is not None and task.waiting for task in ours)
        text = f"{waiting} waiting, {len(ours) - waiting} running, "
        text += f"{len(runs.finals(todo, read_record))} of {len(todo)} ended"
        if text != said:
            print(said := text, file=sys.stderr, flush=True)
        if not ours:
            return _outcome(todo)
        sleep(POLL_SECONDS)


def _outcome(todo: Sequence[Run]) -> Outcome:
    records = {run.name: read_record(run.directory) or {} for run in todo}
    states = {name: r.get("status", "pending") for name, r in records.items()}
    failed = {n: r for n, r in records.items() if states[n] == "failed"}
    return Outcome(states, {n: str(r["reason"]) for n, r in failed.items()}, False)


def cancel(workdir: Path) -> None:
    """Cancel the arrays of a workdir that have tasks in the queue.

    Raises:
      SweepError: there is no such folder.
    """
    if not workdir.is_dir():
        raise runs.SweepError(f"{workdir}: no such folder; give a sweep's --workdir")
    places = slurm_jobs.places(workdir).values()
    live = [place.task for place in places if place.task and place.queued]
    if not live:
        print("nothing to cancel: no run of this workdir is in the queue")
        return
    jobs = sorted({task.job for task in live})
    slurm_queue.cancel(jobs)
    going = sum(task.going for task in live)
    print(
        f"cancelled job {', '.join(map(str, jobs))}: {len(live) - going} waiting runs, "
        f"{going} running ones, which save first; the same sweep goes on from there"
    )
