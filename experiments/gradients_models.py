"""The models whose gradients are measured: of runs' folders, or of a config's rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from experiments import run_data, shared_flags
from experiments.command import UsageError
from experiments.telling import tell
from transformer_ablation.config import Config
from transformer_ablation.runs import loading
from transformer_ablation.sweep.rows import ExpandedRow

INITIAL, TRAINED = "at initialisation", "trained"


class Subject(NamedTuple):
    """A model, its parameters by what they are, and the sentences it is asked of."""

    name: str
    config: Config
    model: Any
    params: dict[str, Any]
    sentences: Any


def of_rows(options: flags.FlagValues, rows: list[ExpandedRow]) -> Iterator[Subject]:
    """Each row as it begins: no training is needed."""
    from transformer_ablation.data.tokens import prepare
    from transformer_ablation.runs.building import build_model

    cache = shared_flags.cache_folder(options)
    for item in rows:
        prepared = prepare(item.config.data, cache)
        model = build_model(item.config, prepared.vocabulary.size)
        params = {INITIAL: _initial(model, item.config)}
        sentences = _some(item.config, prepared.validation, options)
        yield Subject(item.row.name, item.config, model, params, sentences)


def of_runs(
    options: flags.FlagValues, runs: list[loading.SavedRun]
) -> Iterator[Subject]:
    """Each run as it began, and with its newest checkpoint.

    Raises:
      LoadError: if a run has no checkpoint, or its data have changed.
    """
    from transformer_ablation import parallel

    cache = shared_flags.cache_folder(options)
    for run in runs:
        prepared = run_data.prepared_of(run, cache)
        trained = loading.load(run, 1, tell=tell)
        params = {
            INITIAL: _initial(trained.model, run.config),
            TRAINED: parallel.on_one_device(trained.params),
        }
        sentences = _some(run.config, prepared.validation, options)
        yield Subject(_name(run), run.config, trained.model, params, sentences)


def _name(run: loading.SavedRun) -> str:
    """ROW/seedK, as a sweep calls it."""
    return "/".join(Path(run.directory).absolute().parts[-2:])


def _initial(model: Any, config: Config) -> Any:
    from transformer_ablation import parallel
    from transformer_ablation.train.step import create_state

    return parallel.on_one_device(create_state(model, config).params)


def _some(config: Config, split: Any, options: flags.FlagValues) -> Any:
    """So many sentences, at equal distances of all; each of some that are joined.

    Raises:
      UsageError: if there are too few, or more pieces than positions.
    """
    import numpy as np

    from transformer_ablation.dependence.gradients import joined

    needed = options.sentences * options.joined
    if len(split) < needed:
        raise UsageError(
            f"--sentences={options.sentences}, --joined={options.joined}: the "
            f"validation split has {len(split)} sentences, and {needed} are needed"
        )
    first = np.linspace(0, len(split) - options.joined, options.sentences).astype(int)
    chosen = (first[:, None] + np.arange(options.joined)[None]).ravel()
    found = joined(split.take(chosen), options.joined)
    longest = max(int(side.lengths.max()) for side in (found.source, found.target))
    model = config.model
    if model.positions == "learned" and longest > model.max_length:
        raise UsageError(
            f"--joined={options.joined}: sequences have up to {longest} pieces, more "
            f"than model.max_length = {model.max_length} learned positions; join fewer"
        )
    return found
