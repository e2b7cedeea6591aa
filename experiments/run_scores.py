"""The scores that a run ends with."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from experiments import run_parts, scoring
from transformer_ablation.report import record
from transformer_ablation.sweep import claims
from transformer_ablation.sweep.runs import Run
from transformer_ablation.train.averaging import average
from transformer_ablation.train.checkpoint import (
    CheckpointError,
    Checkpoints,
    DamagedError,
)


class Scores(NamedTuple):
    """Entries of the record's ``scores`` and the seconds they took."""

    entries: list[dict[str, Any]]
    seconds: float


def averaged(parts: run_parts.Parts, checkpoints: Checkpoints) -> tuple[Any, list[int]]:
    """Parameters averaged over the newest checkpoints, and their updates.

    Raises:
      CheckpointError: if there are fewer than the config asks for.
      DamagedError: if one is damaged; it has been set aside.
    """
    count = parts.config.decode.average_checkpoints
    steps = checkpoints.regular()[-count:]
    if len(steps) < count:
        raise CheckpointError(
            f"decode.average_checkpoints: {count} checkpoints are to be averaged, but "
            f"there are {len(steps)}; save more often (train.checkpoint_every_steps)"
        )
    return average([_params(parts, checkpoints, s) for s in steps]), steps


def _params(parts: run_parts.Parts, checkpoints: Checkpoints, step: int) -> Any:
    """Parameters at an update that the mean needs."""
    try:
        return checkpoints.restore(parts.shapes, step).params
    except DamagedError as error:
        place = checkpoints.set_aside(step)
        raise DamagedError(
            f"{error}; moved to {place}. The mean needs it: put a copy back, or move "
            f"the checkpoints after update {step} away, and the run makes them again"
        ) from error


def score_run(
    run: Run,
    scored: scoring.Scored,
    progress: Callable[[dict[str, Any]], None],
    stop: threading.Event,
) -> Scores | None:
    """Scores of the validation and the test split, or None if told to stop.

    The record's ``reason`` says meanwhile what is being scored.
    """
    started = time.monotonic()
    folder = run.directory / "translations"

    def tell(event: dict[str, Any]) -> None:
        claims.check(run.directory)
        record.update_record(run.directory, reason=event["phase"])
        progress(event)

    def place(name: str) -> Path:
        claims.check(run.directory)
        return folder / f"{name}.txt"

    splits = scoring.splits(run.config)
    entries = scoring.score(scored, splits, place, tell, stop)
    return None if entries is None else Scores(entries, time.monotonic() - started)
