"""How many layers it takes until the ends of a sequence depend on each other.

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
    """Layers until both ends of a sequence depend on each other; None if never.

    The stack has ``layers`` from the input upwards, and again from the first one if
    that is not enough. An even window reaches one place farther to the left than to
    the right, so the last position may depend on the first in fewer layers than the
    first on the last: the larger number counts. A direction in which nothing ever
    passes, as the future of a recurrent layer, is left out.
    """
    matrices = [depends(layer, n, seed) for seed, layer in enumerate(layers)]
    crossed = (_crossed(matrices, *ends) for ends in ((0, n - 1), (n - 1, 0)))
    return max((count for count in crossed if count is not None), default=None)


def _crossed(matrices: Sequence[np.ndarray], first: int, last: int) -> int | None:
    """Layers until the output at ``last`` depends on the input at ``first``."""
    reached_N = np.arange(len(matrices[0])) == first
    for done in itertools.count(0, len(matrices)):
        before_N = reached_N
        for count, matrix in enumerate(matrices, done + 1):
            reached_N = (matrix & reached_N).any(axis=1)
            if reached_N[last]:
                return count
        if (reached_N == before_N).all():
            return None
    return None
