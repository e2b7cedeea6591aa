"""Flags that several command lines share, each described once."""

from pathlib import Path

from absl import flags

from experiments.command import UsageError
from transformer_ablation.report.record import SWEEP_FILE, RecordError
from transformer_ablation.runs.cache_folder import cache_folder as named_cache


def define_runs(values: flags.FlagValues) -> None:
    """--rows and --seeds."""
    flags.DEFINE_list(
        "rows", None, "names of rows, with commas; all by default", flag_values=values
    )
    text = "whole numbers, with commas; train.seed of base by default"
    flags.DEFINE_string("seeds", None, text, flag_values=values)


def define_jobs(values: flags.FlagValues) -> None:
    """--jobs and --devices_per_run."""
    text = "runs at a time, a process each; auto: one a GPU, or one a core of the CPU"
    flags.DEFINE_string("jobs", "1", text, flag_values=values)
    bounds = {"lower_bound": 1, "flag_values": values}
    text = (
        "GPUs, or cores of the CPU, that each of them has; by default an even share of "
        "what there is"
    )
    flags.DEFINE_integer("devices_per_run", None, text, **bounds)


def define_run(values: flags.FlagValues) -> None:
    """--run."""
    text = "folder of a run, WORKDIR/runs/ROW/seedK; needed"
    flags.DEFINE_string("run", None, text, flag_values=values)


def run_folder(options: flags.FlagValues) -> Path:
    """The folder that --run names.

    Raises:
      UsageError: if it is missing.
    """
    if not options.run:
        raise UsageError(
            "--run is missing; name the folder of a run, for example "
            "--run=runs/table3/runs/base/seed0"
        )
    return Path(options.run)


def define_workdir(values: flags.FlagValues, text: str = "folder of the sweep") -> None:
    """--workdir."""
    flags.DEFINE_string("workdir", None, text, flag_values=values)


def check_sweep(flag: str, folder: str | Path) -> None:
    """The library, which finds out too, does not know what the flag is called.

    Raises:
      RecordError: there is no such folder, or neither a sweep nor a run in it.
    """
    path, what = Path(folder), "no such folder"
    if path.is_dir():
        if (path / SWEEP_FILE).exists() or any(path.glob("runs/*/seed*")):
            return
        what = f"holds neither {SWEEP_FILE} nor a run"
    raise RecordError(
        f"--{flag}: {folder}: {what}; name the folder of a sweep, or start one there "
        "with python -m experiments.sweep"
    )


def define_format(
    values: flags.FlagValues, formats: tuple[str, ...] = ("text", "json")
) -> None:
    """--format; the first is the default."""
    text = f"one of {', '.join(formats)}"
    flags.DEFINE_enum("format", formats[0], formats, text, flag_values=values)


def define_cache(values: flags.FlagValues) -> None:
    """--cache."""
    text = (
        "folder of prepared data; else the environment variable "
        "TRANSFORMER_ABLATION_CACHE, else ~/.cache/transformer_ablation"
    )
    flags.DEFINE_string("cache", None, text, flag_values=values)


def cache_folder(options: flags.FlagValues) -> Path:
    """The folder of prepared data that the flag and the environment name."""
    return named_cache(options.cache)
