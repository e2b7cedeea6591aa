"""``python -m experiments.plan``: check every row of a sweep and count its cost."""

import functools
import json
import math

from absl import flags

from experiments import command, plan_notes, preset_flag, shared_flags
from transformer_ablation.model.accounting import (
    paper_counts,
    parameter_counts,
    step_flops,
)
from transformer_ablation.model.memory import update_memory
from transformer_ablation.sweep import plan, rows, runs
from transformer_ablation.sweep.file import SweepFile

PRESET_BASE = "configs/base.py"  # compared over where no --config says


def define(values: flags.FlagValues) -> None:
    """Flags of the plan."""
    shared_flags.define_runs(values)
    shared_flags.define_workdir(values, "folder of the sweep, to see what is finished")
    rate = plan.DEFAULT_FLOPS_PER_SECOND
    text = "operations a second that the times assume, sustained"
    flags.DEFINE_float("flops_per_second", rate, text, 1.0, flag_values=values)
    text = "take the times from updates of the smallest and the largest row, here"
    flags.DEFINE_bool("measure", False, text, flag_values=values)
    shared_flags.define_cache(values)
    text = "print only where these presets differ, with commas; --config is then"
    text += f" {PRESET_BASE} by default"
    flags.DEFINE_list("compare_presets", None, text, flag_values=values)
    shared_flags.define_format(values)


def body(options: flags.FlagValues, sweep_file: SweepFile) -> None:
    """Print the plan, or how presets differ."""
    if not math.isfinite(options.flops_per_second):
        raise command.UsageError(
            f"--flops_per_second={options.flops_per_second}: must be a finite number"
        )
    if options.compare_presets is not None:
        _compare(options, sweep_file)
        return
    chosen = rows.select(sweep_file.rows, options.rows)
    seeds = runs.parse_seeds(options.seeds, sweep_file.base.train.seed)
    expanded = rows.expand(sweep_file.base, chosen)
    counted = plan.make_plan(
        sweep_file.title,
        expanded,
        seeds,
        parameter_counts=parameter_counts,
        paper_counts=paper_counts,
        step_flops=step_flops,
        update_memory=update_memory,
        measured=_measure(options, expanded) if options.measure else None,
        flops_per_second=options.flops_per_second,
        state_of=functools.partial(plan_notes.state, options.workdir),
    )
    notes = plan_notes.workdir_notes(options.workdir, sweep_file.base, counted)
    if options.format == "json":
        print(json.dumps({**plan.as_json(counted), "notes": notes}, indent=1))
    else:
        print(plan.as_text(counted, notes))


def _measure(options: flags.FlagValues, expanded: list) -> plan.StepTimes:
    from experiments import plan_measure  # loads JAX

    return plan_measure.measure(expanded, shared_flags.cache_folder(options))


def _compare(options: flags.FlagValues, sweep_file: SweepFile) -> None:
    names = options.compare_presets
    if len(names) < 2 or options.preset is not None:
        raise command.UsageError(
            "--compare_presets needs two names or more and no --preset, for example "
            "--compare_presets=paper,tensor2tensor_later"
        )
    found = preset_flag.compare(sweep_file.base, names)
    if options.format == "json":
        print(json.dumps({"presets": names, "differences": found}, indent=1))
    else:
        print(preset_flag.as_text(names, found))


COMMAND = command.Command(
    name="plan",
    summary="Expand and check every row of a sweep, and count parameters, FLOPs, "
    "time, memory and disk. Touches no data and no device but with --measure.",
    examples=(
        "python -m experiments.plan --config=configs/table3.py:wmt14 --seeds=0,1,2",
        "python -m experiments.plan --config=configs/table3.py --measure",
        "python -m experiments.plan "
        "--compare_presets=paper,tensor2tensor_2017_06,tensor2tensor_later",
    ),
    define=define,
    body=body,
    takes_config=True,
    config=lambda options: PRESET_BASE if options.compare_presets else None,
)

if __name__ == "__main__":
    command.main(COMMAND)
