"""Whether updates are the same on any devices, after a resumption, in packed rows."""

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
# Norms of groups of parameters follow from what is compared.
COMPARED = ("loss", "nll", "tokens", "gradient_norm")
UPDATES_IN_HALF_PRECISION = 1


class Limits(NamedTuple):
    """What rounding explains: of metrics, and of gradients by an array's largest."""

    metrics: float
    gradient: float


# Sums of some thousand terms in another order. In half precision each device rounds
# its gradient before it is added: by 2^-9 of it in bfloat16, by 2^-12 in float16;
# later updates, from parameters that Adam has moved by that noise, are not compared.
CLOSE = {
    "float32": Limits(1e-5, 1e-4),
    "bfloat16": Limits(5e-3, 6e-2),
    "float16": Limits(5e-4, 1e-2),
}


class Case(NamedTuple):
    """What a run is made of; ``batches(start, stop)`` are its arranged batches."""

    config: Config
    model: Any
    batches: Callable[[int, int], Iterable[Any]]


class Compared(NamedTuple):
    """Largest relative differences of updates made in two ways, and the limits."""

    updates: int
    metrics: float
    gradient: float
    metrics_allowed: float
    gradient_allowed: float

    @property
    def equal(self) -> bool:
        """Within what another order of summation explains."""
        close = self.metrics <= self.metrics_allowed
        return close and self.gradient <= self.gradient_allowed


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


def compare_devices(case: Case) -> Compared:
    """The first updates on one device and on all: metrics and mean gradients."""
    update = steps.make_update(case.model, case.config)
    full = case.config.model.dtype == "float32"
    count = UPDATES if full else UPDATES_IN_HALF_PRECISION
    with parallel.at_most(1):
        one = _run(case, update, count)
    return _compared(one, _run(case, update, count), case.config)


def compare_packed(packed: Case, alone: Case) -> Compared:
    """One update of the same pairs, several in a row and one a row.

    Both configs must have no dropout: its noise differs from row to row.
    """
    cases = [packed, alone]
    both = [_run(c, steps.make_update(c.model, c.config), 1) for c in cases]
    return _compared(*both, packed.config)


def _compared(left: Any, right: Any, config: Config) -> Compared:
    """Two runs' states and metrics.

    Adam's moments stand for the gradients: they are sums of them and of their
    squares, while its steps would blow up the noise of entries near zero.
    """
    metrics = max(
        abs(a - b) / max(abs(a), abs(b), 1e-30)
        for mine, theirs in zip(left[1], right[1], strict=True)
        for a, b in ((getattr(mine, n), getattr(theirs, n)) for n in COMPARED)
    )
    gradient = _largest(left[0].optimizer, right[0].optimizer)
    return Compared(len(left[1]), metrics, gradient, *CLOSE[config.model.dtype])


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
    close = CLOSE[case.config.model.dtype].gradient
    allowed = 0.0 if jax.default_backend() == "cpu" else close
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
