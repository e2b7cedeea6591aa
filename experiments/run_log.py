"""What is written of every few updates: scalars and progress."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from transformer_ablation import parallel
from transformer_ablation.train import norms
from transformer_ablation.train.loop import Report
from transformer_ablation.train.step import TrainState

# Perplexities of a model that knows nothing can leave the range of a float.
LARGEST_EXPONENT = 700.0


def lack(last: int, start: int, every: int) -> str | None:
    """What to say where values end at ``last``, long before a run's checkpoint."""
    if last + every >= start:
        return None
    return (
        f"metrics.jsonl ends at update {last:,}, before checkpoint {start:,}: the "
        "curves of this run lack what is between"
    )


class Log:
    """Scalars and progress; the values of an update are its own, never a window's.

    But speed and waiting are those of the updates since the last that was written; an
    update that was compiled says nothing of speed.
    """

    def __init__(self, every, last, writer, progress, meter):
        self._every, self._last = every, last
        self._writer, self._progress, self._meter = writer, progress, meter
        self._tokens, self._seconds = 0, 0.0
        self._waited: list[float] = []

    def needs_state(self, step: int) -> bool:
        """Never: metrics are enough."""
        return False

    def after(self, report: Report, state: TrainState | None) -> None:
        """Counts the update and, every so often, writes."""
        batch, metrics, before = report.batch, report.metrics, self._meter.train_seconds
        real = int(batch.source_tokens), int(batch.target_tokens)
        self._meter.add_update(report.seconds, report.compiled, *real)
        if not report.compiled:
            self._tokens += real[1]
            self._seconds += self._meter.train_seconds - before
        self._waited.append(report.waited)
        if report.step % self._every and report.step != self._last and report.step > 1:
            return
        size = np.size(batch.source), np.size(batch.target)
        rate = self._tokens / self._seconds if self._seconds else None
        waited = sum(self._waited) / len(self._waited)
        self._tokens, self._seconds, self._waited = 0, 0.0, []
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
            "train/input_wait_seconds": waited,
            **norm_values(metrics.norms),
            **memory_values(),
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


def norm_values(found: Mapping[str, Any]) -> dict[str, float]:
    """Norms by group, and how far an update moves the parameters of each."""
    values = {}
    for group, each in norms.read(found).items():
        values[f"parameter_norm/{group}"] = each.parameter
        values[f"gradient_norm/{group}"] = each.gradient
        if each.parameter:
            values[f"update_ratio/{group}"] = each.update / each.parameter
    return values


def memory_values() -> dict[str, int]:
    """Bytes of the fullest device, where JAX counts them."""
    found = parallel.device_memory()
    return {f"device/memory_{name}_bytes": size for name, size in found.items()}
