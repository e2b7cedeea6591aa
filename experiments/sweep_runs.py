"""What a sweep does: check everything, run what is missing."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import sweep_data, sweep_record
from transformer_ablation.config import Config
from transformer_ablation.report.record import read_record, read_records, read_sweep
from transformer_ablation.sweep import local, rows, runs
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.progress import Reporter

Launch = Callable[[list[runs.Run], Path], local.Outcome]


def complete(
    workdir: Path,
    sweep_file: SweepFile,
    names: Sequence[str] | None,
    seeds: Sequence[int],
    cache: Path,
    launch: Launch | None = None,
) -> tuple[list[runs.Run], local.Outcome]:
    """Check everything, then run what is missing of some rows (None: all) and seeds.

    ``launch`` has it run elsewhere than here. Nothing is written to the workdir
    before all has been checked: a request that is refused leaves it as it was.
    """
    base = sweep_file.base
    expanded = rows.expand(base, rows.select(sweep_file.rows, names))
    check_workdir(workdir, base)
    identify = sweep_data.identifier(expanded, cache, read_records(workdir))
    todo = runs.make_runs(expanded, seeds, workdir, identify)
    done = runs.finals(todo, read_record)
    sweep_data.check((run for run in todo if run.name not in done), cache)
    with local.locked(workdir):
        previous = check_workdir(workdir, base)
        runs.check_folders(todo, read_record)
        sweep_record.write(workdir, previous, sweep_file, expanded, seeds)
        return todo, (launch or run_here)(todo, cache)


def check_workdir(workdir: Path, base: Config) -> Mapping[str, Any] | None:
    """``sweep.json`` of the workdir, where it is of this base and all records whole.

    One without any record was left by a sweep that ran nothing; it counts as none.

    Raises:
      SweepError: it is of another base.
      RecordError: a file there cannot be read.
    """
    previous = read_sweep(workdir)
    if not read_records(workdir):
        return None
    runs.check_base(workdir, previous, base)
    return previous


def run_here(todo: list[runs.Run], cache: Path) -> local.Outcome:
    """Run what has no result; JAX is loaded only if there is something."""
    states = runs.finals(todo, read_record)
    if len(states) == len(todo):
        outcome = local.Outcome(states, {}, False)
        ended = "finished"
        if outcome.diverged:
            ended = f"finished, or diverged ({outcome.diverged} of {len(todo)})"
        print(f"nothing to do: every run is {ended}", file=sys.stderr)
        return outcome
    from experiments.run import run_one_factory
    from transformer_ablation.model.accounting import step_flops

    reporter = Reporter(lambda run: run.config.train.steps * step_flops(run.config))
    with reporter:
        return local.launch(
            todo,
            run_one_factory(cache),
            read_record=read_record,
            mark_stopped=sweep_record.mark_stopped,
            reporter=reporter,
        )
