"""One array of a sweep: its script, and the job that it becomes."""

import dataclasses
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments import slurm_jobs
from experiments.slurm_jobs import path_of
from transformer_ablation.report.columns import counted
from transformer_ablation.report.json_file import write_text
from transformer_ablation.sweep import slurm_options, slurm_queue, slurm_script
from transformer_ablation.sweep.runs import Run

ROOT = Path(__file__).resolve().parent.parent
DEPENDENCY = "--dependency="


def send(
    workdir: Path,
    cache: Path,
    left: Sequence[Run],
    asked: slurm_options.SlurmOptions,
    dry_run: bool,
    after: Sequence[str] = (),
) -> str:
    """Write the script of an array and submit it; its job, ``JOB`` of a dry run."""
    names, folder = [path_of(run) for run in left], slurm_jobs.new_folder(workdir)
    worker = [sys.executable, "-m", "experiments.worker"]
    worker += [f"--workdir={workdir}", f"--cache={cache}"]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(ROOT / "src"), *(os.path.abspath(p) for p in given if p)]
    environment = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    asked = _after(asked, after) if after and not dry_run else asked
    made = (folder.name, names, folder, worker, ROOT, environment, asked)
    text = slurm_script.script(*made)
    slurm_jobs.write(folder, text, names)
    script = folder / slurm_jobs.SCRIPT
    if dry_run:
        print(text, end="")
        print(f"kept in {script}; nothing is submitted", file=sys.stderr)
        if after:
            waits = f"{DEPENDENCY}afterany:JOB, the job of the array that trains for it"
            print(f"it would be submitted with {waits}", file=sys.stderr)
        return "JOB"
    try:
        job = slurm_queue.submit(folder, slurm_jobs.SCRIPT)
    except slurm_queue.SlurmUnavailable as error:
        raise slurm_queue.SlurmUnavailable(
            f"{error} (the script is {script})"
        ) from None
    write_text(folder / slurm_jobs.JOB, f"{job}\n")
    where = shlex.quote(f"--workdir={workdir}")
    waits = f", after the training in job {', '.join(after)}" if after else ""
    print(
        f"submitted job {job}: {counted(len(names), 'run')}{waits}, logs in {folder}\n"
        f"follow it: python -m experiments.status {where}\n"
        f"cancel it: python -m experiments.sweep {where} --cancel"
    )
    return str(job)


def _after(
    asked: slurm_options.SlurmOptions, jobs: Sequence[str]
) -> slurm_options.SlurmOptions:
    """The options with a dependency on jobs, beside one that was asked for."""
    given = [x.removeprefix(DEPENDENCY) for x in asked.sbatch if DEPENDENCY in x]
    others = [x for x in asked.sbatch if DEPENDENCY not in x]
    both = ",".join([*given[-1:], f"afterany:{':'.join(jobs)}"])
    return dataclasses.replace(asked, sbatch=(*others, f"{DEPENDENCY}{both}"))
