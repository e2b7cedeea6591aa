"""A run's folder as a model with trained parameters; no Python config is needed.

It may have been moved: its config, vocabulary and checkpoints are read and compared.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import Config, ConfigError, from_mapping
from transformer_ablation.report.json_file import read_json
from transformer_ablation.report.record import live_status, read_record
from transformer_ablation.runs.errors import LoadError
from transformer_ablation.vocabulary import Vocabulary


class SavedRun(NamedTuple):
    """What a run's folder says without its checkpoints.

    ``results_version`` is that of its record, None without one.
    """

    directory: Path
    config: Config
    vocabulary: Vocabulary
    state: str
    results_version: int | None = None


class Trained(NamedTuple):
    """A model; ``params`` are the mean of the checkpoints of ``steps``."""

    model: Any
    params: Any
    steps: list[int]


def read_run(directory: Path) -> SavedRun:
    """Config and vocabulary of a run; quick, loads no JAX.

    Raises:
      LoadError, RecordError, VocabularyError: no such folder, no run, or a broken one.
    """
    if not directory.is_dir():
        example = "name a run's, for example runs/table3/runs/base/seed0"
        raise LoadError(f"{directory}: there is no such folder; {example}")
    record = read_record(directory)
    mapping = read_json(path := directory / "config.json")
    if mapping is None:
        below = sorted(directory.glob("runs/*/seed*")) or sorted(
            directory.glob("seed*")
        )
        hint = f"; name a run in it, for example {below[0]}" if below else ""
        raise LoadError(f"{directory}: holds no run (config.json is missing){hint}")
    try:
        config = from_mapping(mapping)
    except ConfigError as error:
        lines = "\n".join(f"{path}: {problem}" for problem in error.problems)
        raise LoadError(f"{lines}\nis it of another version of this program?") from None
    vocabulary = Vocabulary.load(directory / "vocabulary.model")
    state = "without a record" if record is None else live_status(record)
    version = None if record is None else record["results_version"]
    return SavedRun(directory, config, vocabulary, state, version)


def check_attention(directory: Path, config: Config) -> None:
    """Refuses a run of a model without attention.

    Raises:
      LoadError: naming the architecture.
    """
    model = config.model
    if model.architecture == "recurrent" and model.recurrent_attention == "none":
        raise LoadError(
            f"{directory}: has no attention (model.architecture = 'recurrent', "
            "model.recurrent_attention = 'none')"
        )


def check_average(config: Config, count: int, name: str) -> None:
    """Refuses the mean of more checkpoints than the run keeps.

    Raises:
      LoadError: naming the option and the field that says how many there are.
    """
    train = config.train
    every, kept = train.checkpoint_every_steps, train.keep_checkpoints
    most, why = kept, f"train.keep_checkpoints = {kept}"
    made = train.checkpoints_by_steps
    if not train.checkpoints_by_clock and made < kept:
        when = "at the end only" if every is None else f"every {every} updates"
        most, why = made, f"it saves {when}, of {train.steps}"
    if count > most:
        raise LoadError(
            f"{name}={count}: the run has {most} checkpoint{'s' * (most > 1)} at most "
            f"({why}); no more can be averaged"
        )


def version_note(run: SavedRun) -> str | None:
    """What to know of a run of another results version, or None.

    Its parameters can be used all the same: only numbers may not be mixed.
    """
    if run.results_version in (None, RESULTS_VERSION):
        return None
    return (
        f"{run.directory}: is of results version {run.results_version}, this program "
        f"of {RESULTS_VERSION}: what it makes may differ from what the run has recorded"
    )


def load(
    run: SavedRun,
    count: int,
    step: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Trained:
    """The model with the mean of ``count`` checkpoints, up to ``step`` if given.

    ``tell`` hears what is loaded before it is.

    Raises:
      LoadError: if there are too few checkpoints, one cannot be read, or the
        parameters are those of a run that has diverged.
      CheckpointError: if one is of another config or vocabulary.
    """
    import jax
    import numpy as np

    from transformer_ablation import parallel
    from transformer_ablation.runs.building import build_model
    from transformer_ablation.train.averaging import average
    from transformer_ablation.train.checkpoint import Checkpoints
    from transformer_ablation.train.step import state_shapes

    folder = run.directory / "checkpoints"
    if not folder.is_dir():  # opening would make it
        _choose([], count, step, run)
    model = build_model(run.config, run.vocabulary.size)
    checkpoints = Checkpoints(folder, run.config, run.vocabulary.content_hash)
    try:
        steps = _choose(checkpoints.steps(), count, step, run)
        tell(f"loading checkpoint {', '.join(map(str, steps))} of {run.directory}")
        shapes = state_shapes(model, run.config)
        params = average([_restore(checkpoints, shapes, s) for s in steps])
    finally:
        checkpoints.close()
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(params)):
        raise LoadError(
            f"{folder}: the parameters of update {', '.join(map(str, steps))} are not "
            "finite: the run has diverged; take an earlier checkpoint with --step"
        )
    return Trained(model, parallel.replicate(params), steps)


def _choose(
    found: Sequence[int], count: int, step: int | None, run: SavedRun
) -> list[int]:
    """The newest ``count`` checkpoints, the last of them ``step`` if given."""
    where = f"{run.directory}/checkpoints"
    if not found and run.state == "finished":
        folder = run.directory / "checkpoints"
        there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        raise LoadError(
            f"{where}: no complete checkpoint, though the run is finished: it was "
            f"moved, deleted or damaged; there: {', '.join(there) or 'nothing'}"
        )
    if not found:
        steps, every = run.config.train.steps, run.config.train.checkpoint_every_steps
        due = f"the first comes by update {min(every or steps, steps)}"
        raise LoadError(f"{where}: no checkpoint yet; the run is {run.state}; {due}")
    if step is not None and step not in found:
        raise LoadError(f"{where}: no checkpoint of update {step}; there are {found}")
    chosen = [s for s in found if step is None or s <= step][-count:]
    if len(chosen) < count:
        need = f"{count} checkpoints are to be averaged"
        raise LoadError(f"{where}: {need}, but those up to {chosen[-1]} are {chosen}")
    return chosen


def _restore(checkpoints: Any, shapes: Any, step: int) -> Any:
    """Parameters at a step; a damaged file is the user's to know, not a bug."""
    from transformer_ablation.train.checkpoint import DamagedError

    try:
        return checkpoints.restore(shapes, step).params
    except DamagedError as error:
        advice = "restore it from a copy, or use another with --step"
        raise LoadError(f"{error}; {advice}") from error
