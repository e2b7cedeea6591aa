"""The runs whose heads are tabulated: checked, then loaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from absl import flags

from experiments import decoding_flags, run_data, runs_flag, shared_flags
from experiments.telling import tell
from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.runs import loading


class Loaded(NamedTuple):
    """Config with the flags' changes, data and model of a run."""

    config: Config
    prepared: Prepared
    trained: loading.Trained


def checked(options: flags.FlagValues) -> list[loading.SavedRun]:
    """What --run or --runs name, without their checkpoints; quick, loads no JAX.

    Raises:
      LoadError: for a run that cannot be used.
    """
    several = options.runs is not None
    folders = runs_flag.run_folders(options) if several else []
    folders = folders or [shared_flags.run_folder(options)]
    runs = [loading.read_run(folder) for folder in folders]
    for run in runs:
        loading.check_attention(run.directory, run.config)
        if options.importance:
            _check_heads(run)
    return runs


def loaded(
    runs: Sequence[loading.SavedRun], options: flags.FlagValues
) -> dict[str, Loaded]:
    """Runs by name, all at hand before the first is worked on: none fails later."""
    from transformer_ablation import parallel

    cache = shared_flags.cache_folder(options)
    parallel.set_up(cache)
    names = _names([run.directory for run in runs])
    found = [_load(run, cache, options) for run in runs]
    return dict(zip(names, found, strict=True))


def _check_heads(run: loading.SavedRun) -> None:
    """Refuses a run whose heads cannot be taken away.

    Raises:
      LoadError: naming the architecture.
    """
    kind = run.config.model.architecture
    if kind != "transformer":
        raise loading.LoadError(
            f"{run.directory}: --importance takes away heads of a Transformer; "
            f"model.architecture = {kind!r} has one attention a layer"
        )


def _names(folders: Sequence[Path]) -> list[str]:
    """ROW/seedK where that tells the runs apart, else their folders."""
    short = ["/".join(folder.absolute().parts[-2:]) for folder in folders]
    return short if len(set(short)) == len(short) else [str(f) for f in folders]


def _load(run: loading.SavedRun, cache: Path, options: flags.FlagValues) -> Loaded:
    config = decoding_flags.changed(run.config, options)
    prepared = run_data.prepared_of(run, cache)
    average = config.decode.average_checkpoints
    return Loaded(config, prepared, loading.load(run, average, options.step, tell))
