"""``--launcher=slurm`` of the sweep: an array of what is missing."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from experiments import shared_flags, slurm_follow, slurm_jobs, sweep_runs
from experiments.slurm_jobs import path_of
from experiments.sweep_launch import cost
from experiments.telling import tell
from transformer_ablation.report.columns import counted
from transformer_ablation.report.json_file import write_text
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import (
    claims,
    runs,
    slurm_options,
    slurm_queue,
    slurm_script,
)
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.outcome import Outcome
from transformer_ablation.sweep.runs import Run

ROOT = Path(__file__).resolve().parent.parent


def launch(
    options: flags.FlagValues, sweep_file: SweepFile, request: sweep_runs.Request
) -> Outcome | None:
    """Submit what is neither finished nor queued; the outcome if it is waited for."""
    workdir = Path(options.workdir).absolute()
    cache = shared_flags.cache_folder(options)
    asked = slurm_options.parse(sweep_file.slurm, options.slurm)
    if not options.dry_run:
        slurm_queue.check()  # before anything is prepared

    def send(todo: list[Run]) -> Outcome:
        # Nothing is submitted twice.
        with claims.alone(workdir / sweep_runs.CLAIMS, tell):
            return _submit(workdir, cache, todo, asked, options.dry_run)

    todo, _ = sweep_runs.complete(workdir, sweep_file, request, cache, send)
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
    queued = [name for name, place in places.items() if place.queued]
    left = [r for r in todo if r.name not in ended and path_of(r) not in queued]
    left.sort(key=cost, reverse=True)
    most = slurm_queue.largest_array() if left else 1
    for start in range(0, len(left), most):
        _send(workdir, cache, left[start : start + most], asked, dry_run)
    busy = len(todo) - len(ended) - len(left)
    words = f"{len(ended)} finished, {busy} in the queue already"
    print(
        f"{len(left)} of {counted(len(todo), 'run')} to submit; {words}",
        file=sys.stderr,
    )
    return Outcome({}, {}, False)


def _send(
    workdir: Path,
    cache: Path,
    left: Sequence[Run],
    asked: slurm_options.SlurmOptions,
    dry_run: bool,
) -> None:
    """Write the script of an array and submit it."""
    names, folder = [path_of(run) for run in left], slurm_jobs.new_folder(workdir)
    worker = [sys.executable, "-m", "experiments.worker"]
    worker += [f"--workdir={workdir}", f"--cache={cache}"]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(ROOT / "src"), *(os.path.abspath(p) for p in given if p)]
    environment = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    made = (folder.name, names, folder, worker, ROOT, environment, asked)
    text = slurm_script.script(*made)
    slurm_jobs.write(folder, text, names)
    script = folder / slurm_jobs.SCRIPT
    if dry_run:
        print(text, end="")
        print(f"kept in {script}; nothing is submitted", file=sys.stderr)
        return
    try:
        job = slurm_queue.submit(folder, slurm_jobs.SCRIPT)
    except slurm_queue.SlurmUnavailable as error:
        raise slurm_queue.SlurmUnavailable(
            f"{error} (the script is {script})"
        ) from None
    write_text(folder / slurm_jobs.JOB, f"{job}\n")
    where = shlex.quote(f"--workdir={workdir}")
    print(
        f"submitted job {job}: {counted(len(names), 'run')}, logs in {folder}\n"
        f"follow it: python -m experiments.status {where}\n"
        f"cancel it: python -m experiments.sweep {where} --cancel"
    )
