"""``python -m experiments.sweep``: run or resume a sweep, then print its table."""

import sys
from pathlib import Path

from absl import flags

from experiments import (
    command,
    shared_flags,
    slurm_flags,
    slurm_follow,
    slurm_launch,
    sweep_launch,
    sweep_runs,
    tables,
    time_flags,
)
from transformer_ablation.sweep import runs, stopping
from transformer_ablation.sweep.file import SweepFile


def define(values: flags.FlagValues) -> None:
    """Flags of the sweep."""
    shared_flags.define_workdir(values, "folder the sweep lives in; needed")
    shared_flags.define_runs(values)
    flags.DEFINE_string("launcher", "local", "where runs run: local, slurm", values)
    shared_flags.define_jobs(values)
    text = "run only those that failed, of all seeds unless --seeds names some"
    flags.DEFINE_enum("rerun", None, ["failed"], text, flag_values=values)
    text = "give rows whose config has changed new runs beside the old, as ROW.2"
    flags.DEFINE_bool("beside", False, text, flag_values=values)
    time_flags.define_limit(values)
    slurm_flags.define(values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> int:
    """Check everything, run what is missing, print the table."""
    _check_options(options)
    workdir, cache = Path(options.workdir), shared_flags.cache_folder(options)
    if options.cancel:
        return slurm_follow.cancel(workdir.absolute()) or 0
    seeds = None
    if options.seeds is not None:
        seeds = runs.parse_seeds(options.seeds, sweep_file.base.train.seed)
    request = sweep_runs.Request(
        options.rows, seeds, options.rerun == "failed", options.beside
    )
    if options.launcher == "slurm":
        outcome = slurm_launch.launch(options, sweep_file, request)
    else:
        stop, minutes = stopping.Stop(), time_flags.limit(options)
        with sweep_launch.shares(options) as had, stopping.at_limits(stop, minutes):
            launch = sweep_launch.launcher(cache, stop, *had)
            _, outcome = sweep_runs.complete(
                workdir, sweep_file, request, cache, launch
            )
    if outcome is None:
        return 0
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
    if options.launcher not in ("local", "slurm"):
        raise command.UsageError(
            f"--launcher={options.launcher}: must be local or slurm"
        )
    slurm_flags.check(options)


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
        "python -m experiments.sweep --config=configs/table3.py --workdir=runs/five "
        "--launcher=slurm --slurm=partition=gpu --slurm=gres=gpu:1 "
        "--slurm=time=4:00:00",
        "python -m experiments.sweep --workdir=runs/five --cancel",
    ),
    define=define,
    body=body,
    takes_config=True,
    config=lambda options: "configs/base.py" if options.cancel else None,
)

if __name__ == "__main__":
    command.main(COMMAND)
