"""``python -m experiments.worker``: one planned run, once, as a job of a cluster."""

import signal
import sys
from pathlib import Path

from absl import flags

from experiments import command, planned_runs, shared_flags, sweep_record, sweep_runs
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import runs
from transformer_ablation.sweep.slurm_script import PREEMPTED, TOLD_TO_STOP

CODES = {"finished": 0, "preempted": PREEMPTED, "pending": PREEMPTED}


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
    # Whoever else may be at this run is kept out in there: it makes the claim.
    outcome = sweep_runs.run_here([run], cache)
    for reason in outcome.reasons.values():
        print(f"{run.name} failed: {reason}", file=sys.stderr)
    return CODES.get(outcome.states[run.name], 1)


def _record_end(run: runs.Run, code: int) -> int:
    """A killed process cannot write its own record."""
    if runs.final_status(run, read_record) is not None:
        return 0
    status = "preempted" if code in TOLD_TO_STOP else "failed"
    sweep_record.mark_stopped(run, status, death(code))
    return 0


def death(code: int) -> str:
    """How a process ended, from the shell's exit code."""
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return f"its process ended with exit code {code}"
    hint = ", perhaps out of memory" if name == "SIGKILL" else ""
    return f"its process was killed by {name}{hint}"


COMMAND = command.Command(
    name="worker",
    summary="Do one run of a sweep that is planned in a workdir. Exit code 0: it is "
    f"finished; {PREEMPTED}: told to stop, saved, to be run again; 1: failed or "
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
