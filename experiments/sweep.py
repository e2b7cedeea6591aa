"""``python -m experiments.sweep``: run or resume a sweep, then print its table."""

import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from experiments import command, shared_flags, sweep_data, sweep_record, tables
from transformer_ablation.report.record import read_record, read_sweep
from transformer_ablation.sweep import local, rows, runs
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.progress import Reporter


def define(values: flags.FlagValues) -> None:
    """Flags of the sweep."""
    shared_flags.define_workdir(values, "folder the sweep lives in; needed")
    shared_flags.define_runs(values)
    flags.DEFINE_string("launcher", "local", "where runs run: local", values)
    flags.DEFINE_integer("jobs", 1, "runs at a time: 1", flag_values=values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> int:
    """Check everything, run what is missing, print the table."""
    _check_options(options)
    workdir, cache = Path(options.workdir), shared_flags.cache_folder(options)
    seeds = runs.parse_seeds(options.seeds, sweep_file.base.train.seed)
    _, outcome = complete(workdir, sweep_file, options.rows, seeds, cache)
    tables.print_table(workdir)
    if outcome.left:
        print(outcome.message(), file=sys.stderr)
    return 1 if outcome.left else 0


def complete(
    workdir: Path,
    sweep_file: SweepFile,
    names: Sequence[str] | None,
    seeds: Sequence[int],
    cache: Path,
) -> tuple[list[runs.Run], local.Outcome]:
    """Check everything, then run what is missing of some rows (None: all) and seeds."""
    base = sweep_file.base
    expanded = rows.expand(base, rows.select(sweep_file.rows, names))
    runs.check_base(workdir, read_sweep(workdir), base)
    with local.locked(workdir):
        previous = read_sweep(workdir)
        runs.check_base(workdir, previous, base)
        identify = sweep_data.identifier([item.config.data for item in expanded], cache)
        todo = runs.make_runs(expanded, seeds, workdir, identify)
        runs.check_folders(todo, read_record)
        sweep_record.write(workdir, previous, sweep_file, expanded, seeds)
        return todo, _launch(todo, cache)


def _check_options(options: flags.FlagValues) -> None:
    """Refuse what is missing, and what is not there yet."""
    if not options.workdir:
        raise command.UsageError(
            "--workdir is missing; name a folder for the runs, for example "
            "--workdir=runs/table3"
        )
    if options.launcher != "local":
        raise command.UsageError(
            f"--launcher={options.launcher}: not available yet; only local is"
        )
    if options.jobs != 1:
        raise command.UsageError(f"--jobs={options.jobs}: not available yet; only 1 is")


def _launch(todo: list[runs.Run], cache: Path) -> local.Outcome:
    """Run what has no result; JAX is loaded only if there is something."""
    pending = [run for run in todo if not runs.is_final(run, read_record)]
    if not pending:
        print("nothing to do: every run is finished", file=sys.stderr)
        return local.Outcome({run.name: "skipped" for run in todo}, {}, False)
    sweep_data.check_lengths(pending, cache)
    from experiments.run import run_one_factory
    from transformer_ablation.model.accounting import step_flops

    reporter = Reporter(lambda run: run.config.train.steps * step_flops(run.config))
    with reporter:
        return local.launch(
            todo,
            run_one_factory(cache),
            read_record=read_record,
            mark_failed=sweep_record.mark_failed,
            reporter=reporter,
        )


COMMAND = command.Command(
    name="sweep",
    summary="Run every row of a sweep, or what is missing of it, and print the table.",
    examples=(
        "python -m experiments.sweep --config=configs/table3.py:grammar "
        "--workdir=runs/table3",
        "python -m experiments.sweep --config=configs/table3.py:multi30k "
        "--config.data.directory=DIR --workdir=runs/m30k --rows=base,A_h1",
        "python -m experiments.sweep --config=configs/table3.py --workdir=runs/five "
        "--seeds=0,1,2,3,4",
    ),
    define=define,
    body=body,
    takes_config=True,
)

if __name__ == "__main__":
    command.main(COMMAND)
