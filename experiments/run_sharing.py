"""State and parameters, from process 0 to all devices of all processes."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from transformer_ablation import parallel
from transformer_ablation.config import Config
from transformer_ablation.parallel import hosts
from transformer_ablation.train import step
from transformer_ablation.train.checkpoint import Checkpoints


def first_state(
    model: Any,
    config: Config,
    checkpoints: Checkpoints | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> step.TrainState:
    """Process 0's newest intact checkpoint on every device, or a fresh state.

    ``note`` hears of damaged ones.
    """
    shapes, found = step.state_shapes(model, config), None
    if checkpoints is not None:
        found = checkpoints.restore_intact(shapes, note)
    if hosts.agreed(found is not None):
        found = zeros(shapes) if found is None else found
        return parallel.replicate(hosts.from_first(found))
    fresh = step.create_state(model, config)
    if parallel.processes()[1] == 1:
        return fresh
    return parallel.replicate(hosts.from_first(jax.device_get(fresh)))


def shared_params(params: Any) -> Any:
    """Process 0's parameters on every device."""
    return parallel.replicate(hosts.from_first(params))


def zeros(shapes: Any) -> Any:
    """What a process gives that is to be sent something of these shapes."""
    return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
