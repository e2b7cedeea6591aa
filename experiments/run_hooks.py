"""What happens between updates: logging, progress, evaluation, checkpoints."""

import threading
import time
from collections.abc import Callable
from typing import Any

from experiments.run_log import Log
from experiments.run_meter import Meter
from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.evaluate.perplexity import Perplexity, Scorer, perplexity
from transformer_ablation.report.metrics import MetricWriter
from transformer_ablation.sweep import stopping
from transformer_ablation.train.checkpoint import Checkpoints
from transformer_ablation.train.loop import Every, Hook
from transformer_ablation.train.step import TrainState

VALIDATED = "validation/perplexity"


def validated(
    config: Config,
    prepared: Prepared,
    scorer: Scorer,
    state: TrainState,
    stop: threading.Event,
) -> Perplexity | None:
    """The perplexity of the validation split; None if given up, as ``stop`` is set."""
    rows, check = config.decode.sentences_per_batch, lambda: stopping.check(stop)
    try:
        return perplexity(scorer, state.params, prepared.validation, rows, check)
    except stopping.Stopped:
        return None


def validation(config: Config, action: Callable[[int, TrainState], Any]) -> Every:
    """The hook that does something as often as the config validates."""
    return Every(action, config.train.evaluate_every_steps, config.train.steps)


def hooks(
    config: Config,
    validate: Callable[[TrainState], Perplexity | None],
    checkpoints: Checkpoints,
    writer: MetricWriter,
    progress: Callable[[dict[str, Any]], None],
    meter: Meter,
    look: Callable[[int, TrainState], None],
) -> tuple[Hook, Every, Hook]:
    """Logging, validation, checkpoints, in the order in which they run.

    ``look`` is what else is done where the model has been validated.
    """
    train = config.train

    def evaluate(step: int, state: TrainState) -> None:
        started = time.monotonic()
        progress({"phase": "validation"})
        found = validate(state)
        if found is not None:  # else it is made when the run goes on
            look(step, state)
        meter.add_evaluation(time.monotonic() - started)
        progress({"phase": "training"})
        if found is None:
            return
        values = {
            "validation/nll": found.nll / found.target_tokens,
            VALIDATED: found.value,
        }
        writer.write(step, values, meter.train_seconds)
        writer.flush()

    def save(step: int, state: TrainState) -> None:
        writer.flush()
        checkpoints.save(state, meter.notes)
        meter.save(step=step)

    every, minutes = train.checkpoint_every_steps, train.checkpoint_every_minutes
    return (
        Log(train.log_every_steps, train.steps, writer, progress, meter),
        validation(config, evaluate),
        Every(save, every, train.steps, minutes),
    )
