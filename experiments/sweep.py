"""``python -m experiments.sweep``: run or resume a sweep, then print its table."""

import os
import sys
from pathlib import Path

from absl import flags

from experiments import command, shared_flags, sweep_launch, sweep_runs, tables
from transformer_ablation.sweep import devices, runs, stopping
from transformer_ablation.sweep.file import SweepFile


def define(values: flags.FlagValues) -> None:
    """Flags of the sweep."""
    shared_flags.define_workdir(values, "folder the sweep lives in; needed")
    shared_flags.define_runs(values)
    flags.DEFINE_string("launcher", "local", "where runs run: local", values)
    shared_flags.define_jobs(values)
    text = "run only those that failed, of all seeds unless --seeds names some"
    flags.DEFINE_enum("rerun", None, ["failed"], text, flag_values=values)
    text = "give rows whose config has changed new runs beside the old, as ROW.2"
    flags.DEFINE_bool("beside", False, text, flag_values=values)
    shared_flags.define_time_limit(values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> int:
    """Check everything, run what is missing, print the table."""
    _check_options(options)
    workdir, cache = Path(options.workdir), shared_flags.cache_folder(options)
    seeds = None
    if options.seeds is not None:
        seeds = runs.parse_seeds(options.seeds, sweep_file.base.train.seed)
    request = sweep_runs.Request(
        options.rows, seeds, options.rerun == "failed", options.beside
    )
    shares = devices.shares(options.jobs, options.devices_per_run, os.environ)
    stop, minutes = stopping.Stop(), shared_flags.time_limit(options)
    start = sweep_launch.worker_starter(cache)
    with stopping.at_limits(stop, minutes):
        _, outcome = sweep_runs.complete(
            workdir,
            sweep_file,
            request,
            cache,
            lambda todo: sweep_launch.launch(todo, start, shares, stop),
        )
    tables.print_table(workdir)
    if not outcome.complete:
        print(outcome.message(), file=sys.stderr)
    return outcome.exit_code


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


COMMAND = command.Command(
    name="sweep",
    summary="Run every row of a sweep, or what is missing of it, and print the table.",
    examples=(
        "python -m experiments.sweep --config=configs/table3.py:grammar "
        "--workdir=runs/table3",
        "python -m experiments.sweep --config=configs/table3.py:multi30k "
        "--config.data.directory=DIR --workdir=runs/m30k --rows=base,A_h1",
        "python -m experiments.sweep --config=configs/table3.py --workdir=runs/five "
        "--seeds=0,1,2,3,4 --jobs=2",
        "python -m experiments.sweep --config=configs/table3.py --workdir=runs/five "
        "--rerun=failed",
    ),
    define=define,
    body=body,
    takes_config=True,
)

if __name__ == "__main__":
    command.main(COMMAND)
