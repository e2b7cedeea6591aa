"""How many layers it takes until one end of a sequence depends on the other.

What a layer's output depends on is found from its gradients, with random weights: from
a random cotangent at one position, the gradient at every position of the input, which
is exactly zero where the output depends on nothing. A stack depends on what its layers
do, one through the other, so no product of many small gradients is taken for none.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from transformer_ablation.model.layer_types import Layer, drawn

# Cotangents of this size leave a gradient after hundreds of steps of an LSTM, whose
# forget gate takes a quarter off at every one.
LARGE = 1e25
# Positions whose gradients are computed at a time.
AT_A_TIME = 32
# Each program runs once: not worth the time of an optimising compiler.
QUICK = {"xla_backend_optimization_level": 0}


def depends(layer: Layer, n: int, seed: int = 0) -> np.ndarray:
    """[n, n]: whether the output at a position depends on the input at another."""
    parameters, (x_1ND,) = drawn((layer.parameters, layer.inputs(1, n)), seed)
    y = jax.eval_shape(layer.apply, parameters, x_1ND)
    cotangent_1ND = LARGE * drawn(y, seed + 1)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def matrix(parameters: Any, x_1ND: Any, cotangent_1ND: Any) -> Any:
        _, back = jax.vjp(lambda x: layer.apply(parameters, x), x_1ND)

        def of_position(here_N: Any) -> Any:
            (gradient_1ND,) = back(jnp.where(here_N[None, :, None], cotangent_1ND, 0.0))
            return (gradient_1ND != 0).any(axis=(0, 2))

        return jax.lax.map(of_position, jnp.eye(n, dtype=bool), batch_size=AT_A_TIME)

    return np.asarray(matrix(parameters, x_1ND, cotangent_1ND))


def layers_to_cross(layers: Sequence[Layer], n: int) -> int | None:
    """Layers until the last position depends on the first; None if it never does.

    The stack has ``layers`` from the input upwards, and again from the first one if
    that is not enough. A recurrent layer looks back only, so this is the end of it
    that can depend on the other; with layers that look both ways either end will do.
    """
    matrices = [depends(layer, n, seed) for seed, layer in enumerate(layers)]
    reached_N = np.arange(n) == 0
    for count in itertools.count(1):
        reached_before_N = reached_N
        reached_N = (matrices[(count - 1) % len(matrices)] & reached_N).any(axis=1)
        if reached_N[-1]:
            return count
        if count % len(matrices) == 0 and (reached_N == reached_before_N).all():
            return None
    return None
