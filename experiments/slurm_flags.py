"""Flags of the sweep that only ``--launcher=slurm`` has, and --cancel."""

from absl import flags

from experiments import command
from transformer_ablation.sweep.devices import AUTO
from transformer_ablation.sweep.slurm_options import FIELDS


def define(values: flags.FlagValues) -> None:
    """--slurm, --dry_run, --wait and --cancel."""
    text = f"KEY=VALUE, any number of times; keys: {', '.join(FIELDS)}"
    flags.DEFINE_multi_string("slurm", [], text, flag_values=values)
    text = "slurm: write and show the script, submit nothing"
    flags.DEFINE_bool("dry_run", False, text, flag_values=values)
    text = "slurm: stay until no run is in the queue, then print the table"
    flags.DEFINE_bool("wait", False, text, flag_values=values)
    text = "slurm: cancel what is queued or running of --workdir"
    flags.DEFINE_bool("cancel", False, text, flag_values=values)


def check(options: flags.FlagValues) -> None:
    """Refuse what only Slurm has without it."""
    for name in ("slurm", "dry_run", "wait"):
        if options[name].value and options.launcher != "slurm":
            raise command.UsageError(f"--{name} is for --launcher=slurm")
    if options.launcher == "slurm":
        if options.jobs not in ("1", AUTO) or options.devices_per_run is not None:
            raise command.UsageError(
                "--jobs and --devices_per_run are for --launcher=local; say "
                "--slurm=array_limit=N for the runs at a time, and --slurm=gres=gpu:K "
                "or --slurm=cpus=K for the devices of each"
            )
        if options.time_limit is not None:
            raise command.UsageError(
                "--time_limit is for --launcher=local; say --slurm=time=H:MM:SS"
            )
    if options.dry_run and options.wait:
        raise command.UsageError("--dry_run submits nothing that --wait could await")
