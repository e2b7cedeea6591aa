"""One run as the work of several processes, on one host or many.

Process 0 checks, claims and writes as ``sweep_runs`` does for one process. The others
make their own data, hear from it whether there is something to do, and do their share.
"""

import sys
from pathlib import Path
from typing import NoReturn

from experiments import command, sweep_data, sweep_runs
from experiments.host_flags import Place
from experiments.sweep_here import Here, refuse_held
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import rows, runs, stopping
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.outcome import Outcome

NOTHING = "nothing"
# Exit codes of a process that is not the first, where all end together.
OUTCOMES = {"finished": 0, "preempted": stopping.REQUEUE}


def complete(
    place: Place,
    workdir: Path,
    sweep_file: SweepFile,
    row: str,
    seed: int,
    cache: Path,
    stop: stopping.Stop,
) -> tuple[runs.Run, Outcome] | int:
    """Does what is left of the run; for process 0 how it ended, else an exit code.

    A process that fails ends at once: the others, which wait for it, then end too.
    """
    from transformer_ablation import parallel
    from transformer_ablation.parallel import hosts

    try:
        parallel.use_all_cores()
        hosts.join(*place)
        if place.index:
            code = _follow(sweep_file, workdir, row, seed, cache, stop)
            return code if code in OUTCOMES.values() else hosts.leave_at_once(code)
        here, request = Here(cache, stop), sweep_runs.Request([row], [seed])
        (run,), outcome = sweep_runs.complete(
            workdir, sweep_file, request, cache, lambda todo: _lead(here, todo)
        )
    except BaseException as error:
        _fail(error, place, workdir)
    if here.working or not (outcome.complete or outcome.interrupted):
        print(outcome.message(), file=sys.stderr)
        hosts.leave_at_once(outcome.exit_code)
    return run, outcome


def _lead(here: Here, todo: list[runs.Run]) -> Outcome:
    """Tells the others what is run, or that nothing is, and runs it."""
    from transformer_ablation.parallel import hosts

    (run,) = todo
    done = runs.finals(todo, read_record)
    if not done:
        refuse_held(run)
    hosts.text_from_first(NOTHING if done else run.identity)
    if not done and hosts.agreed(False):
        raise runs.SweepError(
            f"{run.name}: another process was started with another command, code or "
            "data; start all with the same, but for --process_index"
        )
    return here.launch(todo)


def _follow(
    sweep_file: SweepFile,
    workdir: Path,
    row: str,
    seed: int,
    cache: Path,
    stop: stopping.Stop,
) -> int:
    """The share of a process that is not the first; its exit code."""
    from transformer_ablation.parallel import hosts

    expanded = rows.expand(sweep_file.base, rows.select(sweep_file.rows, [row]))
    identify = sweep_data.identifier(expanded, cache, [])
    (run,) = runs.make_runs(expanded, [seed], workdir, identify)
    told = hosts.text_from_first("")
    if told == NOTHING:
        return 0
    if hosts.agreed(told != run.identity):
        print("other processes of this run have another command", file=sys.stderr)
        return 2
    from experiments.run import run_one_factory

    with stopping.on_signals(stop.obey):
        status = run_one_factory(cache)(run, stop, lambda values: None)
    return OUTCOMES.get(status, 1)


def _fail(error: BaseException, place: Place, workdir: Path) -> NoReturn:
    """Says what is wrong and ends this process; a bug's traceback is shown."""
    from transformer_ablation.parallel import hosts

    code, message = command.explain(error, str(workdir))
    if hosts.lost(error):
        code, message = 1, hosts.LOST
    if isinstance(error, KeyboardInterrupt):
        code, message = stopping.REQUEUE, "stopped at once, nothing was saved"
    if message is None:
        sys.excepthook(type(error), error, error.__traceback__)
        message = f"{type(error).__name__}: {error}"
    print(f"process {place.index} of {place.count}: {message}", file=sys.stderr)
    hosts.leave_at_once(code)
