"""What is written of every few updates: scalars and progress."""

import math

import numpy as np

from transformer_ablation.train.loop import Report
from transformer_ablation.train.step import TrainState

# Perplexities of a model that knows nothing can leave the range of a float.
LARGEST_EXPONENT = 700.0


class Log:
    """Scalars and progress; the values of an update are its own, never a window's."""

    def __init__(self, every, last, writer, progress, meter):
        self._every, self._last = every, last
        self._writer, self._progress, self._meter = writer, progress, meter
        self._tokens, self._seconds = 0, 0.0

    def needs_state(self, step: int) -> bool:
        """Never: metrics are enough."""
        return False

    def after(self, report: Report, state: TrainState | None) -> None:
        """Counts the update and, every so often, writes."""
        batch, metrics, before = report.batch, report.metrics, self._meter.train_seconds
        real = int(batch.source_tokens), int(batch.target_tokens)
        self._meter.add_update(report.seconds, *real)
        self._tokens += real[1]
        self._seconds += self._meter.train_seconds - before
        if report.step % self._every and report.step != self._last and report.step > 1:
            return
        size = np.size(batch.source), np.size(batch.target)
        rate = self._tokens / self._seconds if self._seconds else None
        self._tokens, self._seconds = 0, 0.0
        values = {
            "train/loss": metrics.loss,
            "train/nll": metrics.nll,
            "train/perplexity": math.exp(min(metrics.nll, LARGEST_EXPONENT)),
            "train/gradient_norm": metrics.gradient_norm,
            "train/learning_rate": report.rates.learning_rate,
            "train/source_tokens": real[0],
            "train/target_tokens": metrics.tokens,
            "train/padding_tokens": sum(size) - sum(real),
            "train/source_padding": 1 - real[0] / size[0],
            "train/target_padding": 1 - real[1] / size[1],
        }
        if rate is not None:
            values["train/tokens_per_second"] = rate
        self._writer.write(report.step, values, self._meter.train_seconds)
        self._progress(
            {
                "step": report.step,
                "steps": self._last,
                "loss": metrics.loss,
                "tokens_per_second": rate,
                "phase": "training",
            }
        )
