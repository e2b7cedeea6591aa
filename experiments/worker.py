"""``python -m experiments.worker``: one planned run, once, as a job of a cluster."""

import os
import signal
import sys
from pathlib import Path

from absl import flags

from experiments import command, planned_runs, shared_flags, sweep_record
from experiments.sweep_here import Here
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import claims, runs, stopping
from transformer_ablation.sweep.failures import death
from transformer_ablation.sweep.slurm_script import TOLD_TO_STOP
from transformer_ablation.sweep.stopping import REQUEUE

CODES = {"finished": 0, "preempted": REQUEUE, "pending": REQUEUE}


def define(values: flags.FlagValues) -> None:
    """Flags of the worker."""
    shared_flags.define_workdir(values, "folder of a planned sweep; needed")
    flags.DEFINE_string("run", None, "ROW/seedK; needed", flag_values=values)
    text = "do not run, but record that a worker of the run ended with this code"
    flags.DEFINE_integer("ended", None, text, 1, 255, flag_values=values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues) -> int:
    """The exit code says how the run ended: see ``COMMAND``."""
    if not options.workdir or not options.run:
        raise command.UsageError(
            "--workdir and --run are needed, for example --workdir=runs/table3 "
            "--run=base/seed0"
        )
    cache = shared_flags.cache_folder(options)
    run = planned_runs.find(Path(options.workdir).absolute(), options.run, cache)
    runs.check_folders([run], read_record)
    if options.ended is not None:
        return _record_end(run, options.ended)
    here = Here(cache, stop := stopping.Stop())
    with stopping.at_limits(stop, None):
        outcome = here.launch([run])
    for reason in outcome.reasons.values():
        print(f"{run.name} failed: {reason}", file=sys.stderr)
    code = CODES.get(outcome.states[run.name], 1)
    if here.working:  # stopped at once
        sys.stderr.flush()
        os._exit(code)
    return code


def _record_end(run: runs.Run, code: int) -> int:
    """A killed process cannot write its own record."""
    holder = claims.current(run.directory)
    if holder is not None and not holder.over:
        return 0  # another has taken it over
    claim = claims.acquire(run.directory, holder.number if holder else 0)
    if claim is None:
        return 0
    try:
        final = runs.final_status(run, read_record)
        if final is None:
            status = "preempted" if code in TOLD_TO_STOP else "failed"
            sweep_record.mark_stopped(run, status, death(shell_code(code)))
    finally:
        claim.release(final=final is not None)
    return 0


def shell_code(code: int) -> int:
    """A process's exit code from the shell's: negative for a signal."""
    return 128 - code if 128 < code <= 128 + signal.NSIG else code


COMMAND = command.Command(
    name="worker",
    summary="Do one run of a sweep that is planned in a workdir. Exit code 0: it is "
    f"finished; {REQUEUE}: told to stop, saved, to be run again; 1: failed or "
    "diverged; 2: refused. Jobs of --launcher=slurm call it.",
    examples=(
        "python -m experiments.worker --workdir=runs/table3 --run=A_h1/seed0",
        "srun python -m experiments.worker --workdir=runs/table3 --run=big/seed0",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
