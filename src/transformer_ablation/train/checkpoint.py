"""Checkpoints by update number: atomic, asynchronous, checked when restored."""

import json
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
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
from transformer_ablation.train import integrity
from transformer_ablation.train.step import TrainState
from transformer_ablation.train.tree_difference import first_difference

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
    "train.sample_sentences",
    "train.attention_images",
    "decode.",
)


# Of Orbax's folders that are being written, or were when their process was killed.
UNFINISHED = "*.orbax-checkpoint-tmp*"
# A writer of several processes is process 0 alone: the others wait for nobody.
_WRITER = {0}


class CheckpointError(ValueError):
    """A checkpoint that is not there, or is not this run's."""


class DamagedError(CheckpointError):
    """A checkpoint whose files are not as they were written."""


class Checkpoints:
    """The checkpoints of one run, the newest ``train.keep_checkpoints`` of them.

    One that a stop made, between those that the config asks for, is kept only until
    the next: which checkpoints a run ends with does not depend on its stops.

    Saved are step, parameters and optimizer as numpy, and as JSON the config
    and the vocabulary's hash. Orbax writes beside and renames, in the background;
    then, also there, a manifest of all files is added. A step without one is one
    whose writer was killed, and counts as not there. Steps of versions that wrote no
    manifests do count; their facts lack the name of one.
    """

    def __init__(self, directory: Path, config: Config, vocabulary_hash: str):
        self._directory = Path(directory).absolute()
        self._facts = {
            "config": to_mapping(config),
            "vocabulary_hash": vocabulary_hash,
            "manifest": integrity.MANIFEST,
        }
        self._config = config
        self._saved = False
        self._sealer = ThreadPoolExecutor(1, "seal")
        self._sealing: Future[None] | None = None
        self._directory.mkdir(parents=True, exist_ok=True)
        # Orbax's barriers are for those who call it.
        processes = ocp.options.MultiprocessingOptions(active_processes=_WRITER)
        options = ocp.CheckpointManagerOptions(
            create=False,
            multiprocessing_options=processes,
            enable_async_checkpointing=True,
            # In the background a folder that cannot be made would keep threads
            # waiting, and the process from ending, for minutes.
            async_options=ocp.AsyncOptions(create_directories_asynchronously=False),
        )
        # Named, so that a manager that has saved nothing yet can read what is there.
        handlers = {
            "state": ocp.StandardCheckpointHandler(multiprocessing_options=processes),
            "facts": ocp.JsonCheckpointHandler(multiprocessing_options=processes),
        }
        self._manager = ocp.CheckpointManager(
            self._directory, options=options, item_handlers=handlers
        )

    def steps(self) -> list[int]:
        """Update numbers in numeric order, once everything begun is complete."""
        self.wait()
        return self._complete()

    def _complete(self) -> list[int]:
        return sorted(filter(self._counts, self._manager.all_steps()))

    def _counts(self, step: int) -> bool:
        """Whether it was finished, as far as can be said without reading it all."""
        if integrity.is_sealed(self._folder(step)):
            return True
        try:
            text = (self._folder(step) / "facts" / "metadata").read_bytes()
            return "manifest" not in json.loads(text)
        except (OSError, ValueError, TypeError):
            return False

    def _folder(self, step: int) -> Path:
        return self._directory / str(step)

    def save(self, state: TrainState, notes: Mapping[str, Any] | None = None) -> None:
        """Begins to save; returns once the values are copied to the host.

        ``notes`` are plain values that ``notes`` gives back.
        """
        step = int(state.step)
        self.wait()
        if step in self._complete():
            return
        self._remove_unfinished()
        self._saved = True
        items = ocp.args.Composite(
            state=ocp.args.StandardSave(_as_numpy(state)._asdict()),
            facts=ocp.args.JsonSave({**self._facts, "notes": dict(notes or {})}),
        )
        self._manager.save(step, args=items)
        self._sealing = self._sealer.submit(self._seal, step)

    def _seal(self, step: int) -> None:
        self._manager.wait_until_finished()
        integrity.seal(self._folder(step))

    def _remove_unfinished(self) -> None:
        """What killed processes have left; a reader leaves it alone."""
        for folder in self._directory.glob(UNFINISHED):
            shutil.rmtree(folder, ignore_errors=True)
        for step in self._manager.all_steps():
            if not self._counts(step):
                self._manager.delete(step)

    def notes(self, step: int) -> dict[str, Any]:
        """What was noted beside the checkpoint of an update."""
        return self._read_facts(step).get("notes", {})

    def wait(self) -> None:
        """Returns when everything begun is on disk; raises what went wrong."""
        sealing, self._sealing = self._sealing, None
        if sealing is not None:
            sealing.result()
        if self._saved:  # a reader deletes nothing
            self._prune()

    def close(self) -> None:
        """Waits and releases the threads."""
        try:
            self.wait()
        finally:
            self._sealer.shutdown()
            self._manager.close()

    def regular(self) -> list[int]:
        """Steps that the config asked for, not a stop; in numeric order."""
        return [step for step in self.steps() if self._is_regular(step)]

    def _is_regular(self, step: int) -> bool:
        train = self._config.train
        if step == train.steps or train.checkpoints_by_clock:
            return True
        every = train.checkpoint_every_steps
        return every is not None and step % every == 0

    def _prune(self) -> None:
        steps = self._complete()
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
        self._folder(step).rename(place)
        self._manager.reload()
        return place

    def restore(self, like: TrainState, step: int | None = None) -> TrainState:
        """The state at ``step`` (default newest) as numpy, in the tree of ``like``.

        ``like`` is a state, or its shapes.

        Raises:
          CheckpointError: if there is none, or its config, vocabulary or tree
            is not this run's; the message names the first difference.
          DamagedError: if its files are not as they were written; it names them.
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
        folder = self._folder(step)
        if integrity.is_sealed(folder) and (found := integrity.faults(folder)):
            raise DamagedError(f"{folder}: is damaged: {integrity.as_text(found)}")
        try:
            return self._read(step, like)
        except CheckpointError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise DamagedError(f"{folder}: cannot be read ({why})") from error

    def _read(self, step: int, like: TrainState) -> TrainState:
        saved = self._manager.item_metadata(step).state
        faults = [self._other_facts(step), first_difference(saved, like._asdict())]
        if any(faults):
            raise CheckpointError(
                f"{self._folder(step)}: {'; '.join(filter(None, faults))}; "
                "put back what it was trained with, or train in another run directory"
            )
        items = ocp.args.Composite(
            state=ocp.args.StandardRestore(_blank(like)._asdict())
        )
        return TrainState(**self._manager.restore(step, args=items).state)

    def restore_intact(
        self, like: TrainState, tell: Callable[[str], None]
    ) -> TrainState | None:
        """The newest state that is as it was written, or None if there is none.

        Damaged ones are set aside, and ``tell`` is given a line on each.

        Raises:
          CheckpointError: if it is intact, but not this run's.
        """
        for step in reversed(self.steps()):
            try:
                return self.restore(like, step)
            except DamagedError as error:
                place = self.set_aside(step)
                tell(f"{error}; moved to {place}, the one before is used")
        return None

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
