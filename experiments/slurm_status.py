"""A sweep's states with what Slurm's queue knows of them."""

import dataclasses
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import slurm_jobs
from experiments.slurm_jobs import Place
from transformer_ablation.report.record import read_record, run_directory
from transformer_ablation.report.run_status import RunStatus
from transformer_ablation.sweep import slurm_queue
from transformer_ablation.sweep.slurm_queue import SlurmUnavailable

# Ends of which a run itself can say nothing, or not all.
TOLD = "TIMEOUT OUT_OF_MEMORY NODE_FAIL BOOT_FAIL DEADLINE CANCELLED".split()


def with_queue(workdir: str | Path, statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """The statuses; unchanged, with a word on stderr, where the queue cannot be read.

    A workdir that has submitted nothing asks for nothing.
    """
    folder = Path(workdir).absolute()
    try:
        places = slurm_jobs.places(folder)
    except SlurmUnavailable as error:
        print(f"{error}\nstates are of the records alone", file=sys.stderr)
        return list(statuses)
    return [
        dataclasses.replace(
            status,
            **seen(status, places.get(f"{status.row}/seed{status.seed}"), folder),
        )
        for status in statuses
    ]


def seen(status: RunStatus, place: Place | None, workdir: Path) -> dict[str, Any]:
    """Fields of a run's status that the queue knows better than its record."""
    if place is None or status.state in ("finished", "diverged"):
        return {}
    task = place.task
    if task and task.waiting:
        begun = status.state != "pending"
        why = "" if task.reason in ("None", "") else f": {task.reason}"
        return {
            "state": "requeued" if begun else "queued",
            "reason": f"{place}{why}",
            "seconds_left": None,
        }
    if task and task.going:
        if status.state in ("running", "stale"):
            return {"reason": "; ".join(filter(None, [status.reason, str(place)]))}
        return {"state": "starting", "reason": str(place)}
    return _ended(status, place, workdir)


def _ended(status: RunStatus, place: Place, workdir: Path) -> dict[str, Any]:
    """The task is over, and the run has no result."""
    log = place.folder / f"{place.index}.log"
    known = place.task.state if place.task else None
    words = known if known in TOLD else slurm_queue.last_words(log)
    if status.state in ("failed", "preempted"):
        parts = [status.reason, words and f"{place}: {words}"]
        return {"reason": "; ".join(filter(None, parts))}
    if status.state == "running" and _is_here(workdir, status):
        return {}  # and alive: it was started otherwise
    by_hand = words is not None and "CANCELLED" in words and "DUE TO" not in words
    state = "cancelled" if by_hand else "failed"
    why = words or known or "left the queue without a word"
    return {"state": state, "reason": f"{place}: {why}; log in {log}"}


def _is_here(workdir: Path, status: RunStatus) -> bool:
    """Whether a run's process is, or was, one of this machine."""
    record = read_record(run_directory(workdir, status.row, status.seed)) or {}
    return (record.get("process") or {}).get("host") == socket.gethostname()
