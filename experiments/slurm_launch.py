"""``--launcher=slurm`` of the sweep: an array of what is missing.

What differs in decoding alone from a run that trains is an array of its own, after it.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from experiments import (
    shared_flags,
    slurm_follow,
    slurm_jobs,
    slurm_order,
    slurm_send,
    sweep_runs,
)
from experiments.slurm_jobs import path_of
from experiments.sweep_launch import cost
from experiments.telling import tell
from transformer_ablation.report.columns import counted
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import claims, runs, slurm_options, slurm_queue
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.identity import training
from transformer_ablation.sweep.outcome import Outcome
from transformer_ablation.sweep.runs import Run


def launch(
    options: flags.FlagValues, sweep_file: SweepFile, request: sweep_runs.Request
) -> Outcome | None:
    """Submit what is neither finished nor queued; the outcome if it is waited for."""
    workdir = Path(options.workdir).absolute()
    cache = shared_flags.cache_folder(options)
    asked = slurm_options.parse(sweep_file.slurm, options.slurm)
    if not options.dry_run:
        slurm_queue.check()  # before anything is prepared

    def submit(todo: list[Run]) -> Outcome:
        # Nothing is submitted twice.
        with claims.alone(workdir / sweep_runs.CLAIMS, tell):
            return _submit(workdir, cache, todo, asked, options.dry_run)

    todo, _ = sweep_runs.complete(workdir, sweep_file, request, cache, submit)
    return slurm_follow.follow(workdir, todo) if options.wait else None


def _submit(
    workdir: Path,
    cache: Path,
    todo: Sequence[Run],
    asked: slurm_options.SlurmOptions,
    dry_run: bool,
) -> Outcome:
    """Submit what has not ended and is not in the queue; the longest runs first."""
    ended = runs.finals(todo, read_record)
    places = {} if dry_run else slurm_jobs.places(workdir)
    queued = {name: str(place.job) for name, place in places.items() if place.queued}
    left = [r for r in todo if r.name not in ended and path_of(r) not in queued]
    left.sort(key=cost, reverse=True)
    most = slurm_queue.largest_array() if left else 1
    jobs = slurm_order.trained_by(workdir, cache, todo, queued)
    first, later = slurm_order.split(left, jobs.keys(), slurm_order.there(workdir))
    for array in slurm_order.arrays(first, most):
        job = slurm_send.send(workdir, cache, array, asked, dry_run)
        jobs |= {training(run.config): job for run in array}
    for array in slurm_order.arrays(later, most):
        after = sorted({jobs[training(run.config)] for run in array})
        slurm_send.send(workdir, cache, array, asked, dry_run, after)
    busy = len(todo) - len(ended) - len(left)
    words = f"{len(ended)} finished, {busy} in the queue already"
    print(
        f"{len(left)} of {counted(len(todo), 'run')} to submit; {words}",
        file=sys.stderr,
    )
    return Outcome({}, {}, False)
