"""``python -m experiments.train``: one run, a sweep of one row and one seed."""

import json
import sys
from pathlib import Path

from absl import flags

from experiments import (
    command,
    host_flags,
    profiling,
    run_lines,
    shared_flags,
    sweep_launch,
    sweep_runs,
    time_flags,
    train_hosts,
)
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import stopping
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.outcome import Outcome
from transformer_ablation.sweep.runs import Run


def define(values: flags.FlagValues) -> None:
    """Flags of one run."""
    shared_flags.define_workdir(values, "folder of the sweep; needed")
    flags.DEFINE_string("row", "base", "name of the row", flag_values=values)
    text = "train.seed of base by default"
    bounds = {"lower_bound": 0, "upper_bound": 2**31 - 1}
    flags.DEFINE_integer("seed", None, text, flag_values=values, **bounds)
    profiling.define(values)
    time_flags.define_limit(values)
    host_flags.define(values)
    shared_flags.define_cache(values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> int:
    """Run or resume the run and print its scores; 1 where it has none."""
    if not options.workdir:
        raise command.UsageError(
            "--workdir is missing; name a folder for the run, for example "
            "--workdir=runs/one"
        )
    ended = _complete(options, sweep_file)
    if isinstance(ended, int):
        return ended  # of a process whose first one tells
    directory, outcome = ended[0].directory, ended[1]
    record = read_record(directory)
    if record is not None:
        found = run_lines.summary(directory, record)
        as_json = options.format == "json"
        print(json.dumps(found, indent=1) if as_json else run_lines.as_text(found))
    if not outcome.complete:
        print(outcome.message(), file=sys.stderr)
    return outcome.exit_code


def _complete(
    options: flags.FlagValues, sweep_file: SweepFile
) -> tuple[Run, Outcome] | int:
    """Does what is left of the run: it and how it ended, or an exit code."""
    place, workdir = host_flags.place(options), Path(options.workdir)
    cache = shared_flags.cache_folder(options)
    seed = sweep_file.base.train.seed if options.seed is None else options.seed
    stop, minutes = stopping.Stop(), time_flags.limit(options)
    if options.profile is not None:
        profiling.check(options.profile, sweep_file, workdir, options.row, seed)
    with stopping.at_limits(stop, minutes), profiling.asked(options.profile):
        if place is not None:
            what = sweep_file, options.row, seed
            return train_hosts.complete(place, workdir, *what, cache, stop)
        request = sweep_runs.Request([options.row], [seed])
        launch = sweep_launch.launcher(cache, stop)
        (run,), outcome = sweep_runs.complete(
            workdir, sweep_file, request, cache, launch
        )
    return run, outcome


COMMAND = command.Command(
    name="train",
    summary="Train and score one run, or what is missing of it, and print its scores.",
    examples=(
        "python -m experiments.train --config=configs/table3.py:grammar "
        "--workdir=runs/one",
        "python -m experiments.train --config=configs/table3.py:grammar "
        "--workdir=runs/table3 --row=A_h1 --seed=1",
        "python -m experiments.train --config=configs/table3.py:grammar "
        "--workdir=runs/one --profile=20:24",
    ),
    define=define,
    body=body,
    takes_config=True,
)

if __name__ == "__main__":
    command.main(COMMAND)
