"""Whether updates are the same on any number of devices, and after a resumption."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from transformer_ablation import parallel
from transformer_ablation.config import Config
from transformer_ablation.train import step as steps
from transformer_ablation.train.checkpoint import Checkpoints
from transformer_ablation.train.loop import train

UPDATES = 4
# float32 sums of some thousand terms in another order.
CLOSE = 1e-5
# Of the largest entry of each array of mean gradients.
CLOSE_GRADIENT = 1e-4


class Case(NamedTuple):
    """What a run is made of; ``batches(start, stop)`` are its arranged batches."""

    config: Config
    model: Any
    batches: Callable[[int, int], Iterable[Any]]


class Devices(NamedTuple):
    """Largest relative differences of updates on one device and on ``count``."""

    count: int
    metrics: float
    gradient: float

    @property
    def equal(self) -> bool:
        """Within what another order of summation explains."""
        return self.metrics <= CLOSE and self.gradient <= CLOSE_GRADIENT


class Resumed(NamedTuple):
    """How a resumed run's state differs: how many numbers, and by how much at most.

    ``largest`` is relative to each array's largest entry; on a CPU 0 is ``allowed``.
    """

    different: int
    largest: float
    allowed: float

    @property
    def equal(self) -> bool:
        """Nothing differs by more than is allowed."""
        return self.largest <= self.allowed


class _Trace:
    """Metrics of updates, as a hook of the loop."""

    def __init__(self) -> None:
        self.metrics: list[steps.Metrics] = []

    def needs_state(self, step: int) -> bool:
        return False

    def after(self, report: Any, state: Any) -> None:
        self.metrics.append(report.metrics)


def compare_devices(case: Case) -> Devices:
    """The first updates on one device and on all: metrics and mean gradients.

    Adam's moments stand for the gradients: they are sums of them and of their
    squares, while its steps would blow up the noise of entries near zero.
    """
    update = steps.make_update(case.model, case.config)
    with parallel.at_most(1):
        one, one_metrics = _run(case, update, UPDATES)
    several, several_metrics = _run(case, update, UPDATES)
    pairs = zip(one_metrics, several_metrics, strict=True)
    metrics = max(
        abs(a - b) / max(abs(a), abs(b), 1e-30)
        for left, right in pairs
        for a, b in zip(left, right, strict=True)
    )
    gradient = _largest(one.optimizer, several.optimizer)
    return Devices(parallel.device_count(), metrics, gradient)


def compare_resumed(case: Case, folder: Path, vocabulary_hash: str) -> Resumed:
    """Updates in one go, and with a checkpoint in ``folder`` and a new start."""
    update = steps.make_update(case.model, case.config)
    straight, _ = _run(case, update, UPDATES)
    half, _ = _run(case, update, UPDATES // 2)
    saved = Checkpoints(folder, case.config, vocabulary_hash)
    saved.save(half)
    saved.close()
    reopened = Checkpoints(folder, case.config, vocabulary_hash)
    restored = reopened.restore(steps.state_shapes(case.model, case.config))
    reopened.close()
    resumed, _ = _run(case, update, UPDATES, restored)
    pairs = zip(jax.tree.leaves(straight), jax.tree.leaves(resumed), strict=True)
    different = sum(int((np.asarray(a) != np.asarray(b)).sum()) for a, b in pairs)
    allowed = 0.0 if jax.default_backend() == "cpu" else CLOSE_GRADIENT
    return Resumed(different, _largest(straight, resumed), allowed)


def _run(
    case: Case, update: Callable, stop: int, restored: Any = None
) -> tuple[Any, list[steps.Metrics]]:
    """State and metrics after update ``stop``, from a restored state or afresh."""
    config, trace = case.config, _Trace()
    if restored is None:
        state = steps.create_state(case.model, config)
    else:
        state = parallel.replicate(restored)
    state = train(
        state,
        update,
        case.batches(int(state.step), stop),
        key=steps.purpose_key(config.train.seed, steps.DROPOUT),
        rates_at=lambda number: steps.rates_at(config, number),
        hooks=[trace],
    )
    return jax.device_get(state), trace.metrics


def _largest(left: Any, right: Any) -> float:
    """The largest difference of two trees, each array's by its largest entry."""
    found = 0.0
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        found = max(found, float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)))
    return found
