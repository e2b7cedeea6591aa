"""Checkpoints by update number: atomic, asynchronous, checked when restored."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from transformer_ablation.config import (
    Config,
    ConfigError,
    differences,
    from_mapping,
    to_mapping,
)
from transformer_ablation.train.step import TrainState

# Sections and fields that move no number of a saved state.
FREE = (
    "data.directory",
    "data.validation_split",
    "data.test_split",
    "train.steps",
    "train.evaluate_every_steps",
    "train.checkpoint_every_steps",
    "train.checkpoint_every_minutes",
    "train.keep_checkpoints",
    "train.log_every_steps",
    "decode.",
)


class CheckpointError(ValueError):
    """A checkpoint that is not there, or is not this run's."""


class Checkpoints:
    """The checkpoints of one run, the newest ``train.keep_checkpoints`` of them.

    One that a stop made, between those that the config asks for, is kept only until
    the next: which checkpoints a run ends with does not depend on its stops.

    Saved are step, parameters and optimizer as numpy, and as JSON the config
    and the vocabulary's hash. Orbax writes beside and renames, so a step that
    is listed is complete; it finishes in the background.
    """

    def __init__(self, directory: Path, config: Config, vocabulary_hash: str):
        self._directory = Path(directory).absolute()
        self._facts = {
            "config": to_mapping(config),
            "vocabulary_hash": vocabulary_hash,
        }
        self._config = config
        self._saved = False
        options = ocp.CheckpointManagerOptions(
            enable_async_checkpointing=True,
            # In the background a folder that cannot be made would keep threads
            # waiting, and the process from ending, for minutes.
            async_options=ocp.AsyncOptions(create_directories_asynchronously=False),
        )
        # Named, so that a manager that has saved nothing yet can read what is there.
        handlers = {
            "state": ocp.StandardCheckpointHandler(),
            "facts": ocp.JsonCheckpointHandler(),
        }
        self._manager = ocp.CheckpointManager(
            self._directory, options=options, item_handlers=handlers
        )

    def steps(self) -> list[int]:
        """Update numbers in numeric order, once everything begun is complete."""
        self.wait()
        return sorted(self._manager.all_steps())

    def save(self, state: TrainState, notes: Mapping[str, Any] | None = None) -> None:
        """Begins to save; returns once the values are copied to the host.

        ``notes`` are plain values that ``notes`` gives back.
        """
        step = int(state.step)
        self.wait()
        if step in self._manager.all_steps():
            return
        self._saved = True
        items = ocp.args.Composite(
            state=ocp.args.StandardSave(_as_numpy(state)._asdict()),
            facts=ocp.args.JsonSave({**self._facts, "notes": dict(notes or {})}),
        )
        self._manager.save(step, args=items)

    def notes(self, step: int) -> dict[str, Any]:
        """What was noted beside the checkpoint of an update."""
        return self._read_facts(step).get("notes", {})

    def wait(self) -> None:
        """Returns when everything begun is on disk; raises what went wrong."""
        self._manager.wait_until_finished()
        if self._saved:  # a reader deletes nothing
            self._prune()

    def close(self) -> None:
        """Waits and releases the manager's threads."""
        self.wait()
        self._manager.close()

    def regular(self) -> list[int]:
        """Steps that the config asked for, not a stop; in numeric order."""
        return [step for step in self.steps() if self._is_regular(step)]

    def _is_regular(self, step: int) -> bool:
        train = self._config.train
        if step == train.steps or train.checkpoint_every_minutes is not None:
            return True
        every = train.checkpoint_every_steps
        return every is not None and step % every == 0

    def _prune(self) -> None:
        steps = sorted(self._manager.all_steps())
        regular = [step for step in steps if self._is_regular(step)]
        kept = {*regular[-self._config.train.keep_checkpoints :], *steps[-1:]}
        for step in steps:
            if step not in kept:
                self._manager.delete(step)

    def set_aside(self, step: int) -> Path:
        """Moves a step that cannot be read to ``damaged_checkpoints`` beside."""
        place = self._directory.parent / "damaged_checkpoints" / str(step)
        place.parent.mkdir(exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        (self._directory / str(step)).rename(place)
        self._manager.reload()
        return place

    def restore(self, like: TrainState, step: int | None = None) -> TrainState:
        """The state at ``step`` (default newest) as numpy, in the tree of ``like``.

        ``like`` is a state, or its shapes.

        Raises:
          CheckpointError: if there is none, or its config, vocabulary or tree
            is not this run's; the message names the first difference.
        """
        steps = self.steps()
        step = (steps[-1] if steps else None) if step is None else step
        if step is None or step not in steps:
            found = ", ".join(map(str, steps)) or "none"
            raise CheckpointError(
                f"{self._directory}: no checkpoint"
                + ("" if step is None else f" of update {step}")
                + f"; there are: {found}"
            )
        faults = [self._other_facts(step), self._other_tree(step, like)]
        if any(faults):
            raise CheckpointError(
                f"{self._directory}/{step}: {'; '.join(filter(None, faults))}; "
                "put back what it was trained with, or train in another run directory"
            )
        items = ocp.args.Composite(
            state=ocp.args.StandardRestore(_blank(like)._asdict())
        )
        return TrainState(**self._manager.restore(step, args=items).state)

    def _read_facts(self, step: int) -> dict[str, Any]:
        items = ocp.args.Composite(facts=ocp.args.JsonRestore())
        return self._manager.restore(step, args=items).facts

    def _other_facts(self, step: int) -> str | None:
        """What it was trained with, where this run has something else."""
        facts = self._read_facts(step)
        try:
            saved = from_mapping(facts["config"])
        except ConfigError as error:
            first = error.problems[0]
            return f"was made by another version of this program ({first})"
        for path, (theirs, ours) in differences(saved, self._config).items():
            if not path.startswith(FREE):
                return f"was trained with {path} = {theirs!r}, this run has {ours!r}"
        theirs, ours = facts["vocabulary_hash"], self._facts["vocabulary_hash"]
        if theirs == ours:
            return None
        return f"was trained with vocabulary {theirs[:12]}, this run has {ours[:12]}"

    def _other_tree(self, step: int, like: TrainState) -> str | None:
        """The first array that has another place, size or type in this model."""
        saved = _described(self._manager.item_metadata(step).state)
        wanted = _described(like._asdict())
        for path in sorted(saved.keys() | wanted.keys(), key=_parameters_first):
            if saved.get(path) != wanted.get(path):
                return (
                    f"{path} is {saved.get(path, 'absent')} in the checkpoint and "
                    f"{wanted.get(path, 'absent')} in this model"
                )
        return None


def _parameters_first(path: str) -> tuple[bool, str]:
    """Before the optimizer's moments, which have the same sizes."""
    return not path.startswith("params/"), path


def read_facts(directory: Path, step: int) -> dict[str, Any]:
    """Config and vocabulary hash of a checkpoint, without a run's config."""
    path = Path(directory).absolute() / str(step) / "facts"
    return ocp.Checkpointer(ocp.JsonCheckpointHandler()).restore(path)


def _as_numpy(state: TrainState) -> TrainState:
    # Copied: the device buffer of a donated state may be reused while the
    # save goes on in the background.
    return jax.tree.map(lambda x: np.array(jax.device_get(x)), state)


def _blank(like: TrainState) -> TrainState:
    return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), like)


def _described(tree: Any) -> dict[str, str]:
    """``{path: "dtype[shape]"}`` of the leaves; tuples and lists look alike."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        "/".join(_key_name(key) for key in path): _leaf_name(leaf)
        for path, leaf in leaves
    }


def _key_name(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _leaf_name(leaf: Any) -> str:
    shape = ",".join(map(str, leaf.shape))
    return f"{np.dtype(leaf.dtype).name}[{shape}]"
