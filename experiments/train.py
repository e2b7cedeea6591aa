"""``python -m experiments.train``: one run, a sweep of one row and one seed."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import flags

from experiments import command, shared_flags, sweep_runs
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import stopping
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.local import Outcome
from transformer_ablation.sweep.plan import duration


def define(values: flags.FlagValues) -> None:
    """Flags of one run."""
    shared_flags.define_workdir(values, "folder of the sweep; needed")
    flags.DEFINE_string("row", "base", "name of the row", flag_values=values)
    text = "train.seed of base by default"
    bounds = {"lower_bound": 0, "upper_bound": 2**31 - 1}
    flags.DEFINE_integer("seed", None, text, flag_values=values, **bounds)
    shared_flags.define_time_limit(values)
    shared_flags.define_cache(values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> int:
    """Run or resume the run and print its scores; 1 where it has none."""
    if not options.workdir:
        raise command.UsageError(
            "--workdir is missing; name a folder for the run, for example "
            "--workdir=runs/one"
        )
    directory, outcome = _complete(options, sweep_file)
    record = read_record(directory)
    if record is not None:
        found = summary(directory, record)
        as_json = options.format == "json"
        print(json.dumps(found, indent=1) if as_json else as_text(found))
    if not outcome.complete:
        print(outcome.message(), file=sys.stderr)
    return outcome.exit_code


def _complete(options: flags.FlagValues, sweep_file: SweepFile) -> tuple[Path, Outcome]:
    """Does what is left of the run; its folder, and how it ended."""
    seed = sweep_file.base.train.seed if options.seed is None else options.seed
    stop, minutes = stopping.Stop(), shared_flags.time_limit(options)
    with stopping.at_limits(stop, minutes):
        (run,), outcome = sweep_runs.complete(
            Path(options.workdir),
            sweep_file,
            [options.row],
            [seed],
            shared_flags.cache_folder(options),
            stop,
        )
    return run.directory, outcome


def summary(directory: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """The run as one JSON object; what is not known is None."""
    names = "row group label seed reason step tokens_per_second parameters".split()
    return {
        **{name: record[name] for name in names},
        "state": record["status"],
        "steps": record["config"]["train"]["steps"],
        "seconds": record["seconds"],
        "scores": record["scores"],
        "config": record["config"],
        "directory": str(directory),
    }


def as_text(found: Mapping[str, Any]) -> str:
    """The run and its scores for people."""
    spent = sum(value or 0 for value in found["seconds"].values())
    total = (found["parameters"] or {}).get("total")
    step = "-" if found["step"] is None else f"{found['step']:,}"
    lines = [
        f"{found['row']} seed {found['seed']}: {found['state']}"
        + (f" ({found['reason']})" if found["reason"] else ""),
        f"update {step} of {found['steps']:,}, {duration(spent)}"
        + ("" if total is None else f", {total:,} parameters"),
    ]
    for score in found["scores"]:
        steps, n = ", ".join(map(str, score["steps"])), score["unfinished"]
        lines.append(
            f"{score['split']} {score['metric']} {score['value']:.2f} "
            f"({score['sentences']:,} sentences, checkpoint {steps})"
            + (f"; {n:,} hypotheses hit the length cap" if n else "")
        )
    return "\n".join([*lines, f"in {found['directory']}"])


COMMAND = command.Command(
    name="train",
    summary="Train and score one run, or what is missing of it, and print its scores.",
    examples=(
        "python -m experiments.train --config=configs/table3.py:grammar "
        "--workdir=runs/one",
        "python -m experiments.train --config=configs/table3.py:grammar "
        "--workdir=runs/table3 --row=A_h1 --seed=1",
    ),
    define=define,
    body=body,
    takes_config=True,
)

if __name__ == "__main__":
    command.main(COMMAND)
