"""The local launcher of a sweep: workers on this machine."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import origin, sweep_record
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import devices, plan, pool, runs, stopping
from transformer_ablation.sweep.device_locks import DeviceLocks
from transformer_ablation.sweep.devices import Share
from transformer_ablation.sweep.identity import training
from transformer_ablation.sweep.outcome import Outcome
from transformer_ablation.sweep.progress import Reporter
from transformer_ablation.sweep.protocols import Hear, StartWorker
from transformer_ablation.sweep.worker_process import WorkerProcess

WORKER = (sys.executable, "-m", "experiments.sweep_worker")


def launch(
    todo: list[runs.Run],
    start_worker: StartWorker,
    shares: Sequence[Share] = (Share(),),
    stop: stopping.Stop | None = None,
    busy: Sequence[str] = (),
    wait_for_training: bool = True,
) -> Outcome:
    """Run what has no result; without anything to run, no worker is started.

    ``busy`` are devices of the shares that another sweep has too. What another launcher
    trains at the moment is waited for unless ``wait_for_training`` is False.
    """
    states = runs.finals(todo, read_record)
    if len(states) == len(todo):
        outcome = Outcome(states, {}, False)
        ended = "every run is finished" if todo else "no run has failed"
        if outcome.diverged:
            ended += f", or diverged ({outcome.diverged} of {len(todo)})"
        print(f"nothing to do: {ended}", file=sys.stderr)
        return outcome
    if busy:
        print(
            f"in use by another sweep of this machine too: device {', '.join(busy)}; "
            "runs that share one are slower, and on a GPU may lack memory",
            file=sys.stderr,
        )
    print(estimate(todo, states), file=sys.stderr)
    with Reporter(cost, jobs=len(shares)) as reporter:
        return pool.launch(
            todo,
            start_worker,
            shares=shares,
            read_record=read_record,
            mark_stopped=sweep_record.mark_stopped,
            reporter=reporter,
            cost=cost,
            stop=stop,
            wait_for_training=wait_for_training,
        )


@contextlib.contextmanager
def shares(options: Any) -> Iterator[tuple[list[Share], list[str]]]:
    """What --jobs and --devices_per_run ask for, of devices no other launcher has;
    and those of them that one has all the same."""
    with DeviceLocks() as locks:
        found = devices.shares(
            options.jobs, options.devices_per_run, os.environ, locks.take
        )
        yield found, locks.busy


def launcher(
    cache: Path,
    stop: stopping.Stop,
    shares: Sequence[Share] = (Share(),),
    busy: Sequence[str] = (),
) -> Callable[[list[runs.Run]], Outcome]:
    """``launch(runs)`` with workers in processes of their own."""
    return lambda todo: launch(todo, worker_starter(cache), shares, stop, busy)


def cost(run: runs.Run) -> float:
    """The operations of a run's training."""
    from transformer_ablation.model.accounting import step_flops

    return run.config.train.steps * step_flops(run.config)


def estimate(todo: Sequence[runs.Run], states: Mapping[str, str]) -> str:
    """What is to be run, and the time that ``plan`` would say for it."""
    left = len([run for run in todo if run.name not in states])
    flops = plan.left_to_train(
        (training(run.config), states.get(run.name), cost(run)) for run in todo
    )
    rate = plan.DEFAULT_FLOPS_PER_SECOND
    return (
        f"{plan.counted(left, 'run')} to do: {flops:.2e} FLOPs, about "
        f"{plan.duration(flops / rate)} by plan's rough estimate ({rate:.3g} FLOP/s "
        "sustained, as of two laptop cores; one run after the other, without compiling "
        "and scoring; plan --measure tries this machine)"
    )


def worker_starter(cache: Path) -> StartWorker:
    """``start(share, hear)``: a worker in a process of its own."""
    root = str(Path(__file__).parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    environment = {**origin.environment(), "PYTHONPATH": path}
    settings: dict[str, Any] = {"cache": str(cache)}

    def start(share: Share, hear: Hear) -> WorkerProcess:
        return WorkerProcess(WORKER, environment, settings, share, hear)

    return start
