"""Vocabulary projection and loss in one, a part of the batch at a time.

The logits of a batch are its largest array by far. Here those of a few hundred
positions stand in memory at once: the loss is taken from them, and its gradient
too, so the backward pass has nothing left to do but to scale what is there.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from transformer_ablation.model.encoder_decoder import project
from transformer_ablation.train.loss import LossSums

# Logits that stand in memory at once: a CPU's caches hold so many, an accelerator
# wants larger products.
_LOGITS = {"cpu": 2**21}
_MANY_LOGITS = 2**27


def projected_sums(
    sums: Callable[[Any, Any], LossSums],
    x_BTD: Any,
    matrix_VD: Any,
    target_BT: Any,
    pad_id: int,
    logits_at_once: int | None = None,
) -> LossSums:
    """``sums(logits, target)`` of all positions, whose logits are never all there.

    ``sums`` adds up over positions, and padding adds nothing. Only the loss has a
    gradient: with respect to ``x_BTD`` in its type, and to the matrix in float32.
    """
    if logits_at_once is None:
        logits_at_once = _LOGITS.get(jax.default_backend(), _MANY_LOGITS)
    size, positions = x_BTD.shape[-1], target_BT.size
    parts = -(-positions * matrix_VD.shape[0] // logits_at_once)
    rows = -(-positions // parts)
    added = parts * rows - positions
    x_ND = jnp.pad(x_BTD.reshape(-1, size), ((0, added), (0, 0)))
    target_N = jnp.pad(target_BT.reshape(-1), (0, added), constant_values=pad_id)
    x_PND, target_PN = x_ND.reshape(parts, rows, size), target_N.reshape(parts, rows)

    @jax.custom_vjp
    def total(x_PND, matrix_VD):
        return forward(x_PND, matrix_VD)[0]

    def forward(x_PND, matrix_VD):
        low_VD = matrix_VD.astype(x_PND.dtype)

        def of_logits(logits_NV, target_N):
            found = sums(logits_NV, target_N)
            return found.loss, found

        def body(carry, part):
            x_ND, target_N = part
            gradient, found = jax.grad(of_logits, has_aux=True)(
                project(x_ND, low_VD), target_N
            )
            gradient_NV = gradient.astype(x_ND.dtype)
            x_gradient_ND = gradient_NV @ low_VD
            matrix_gradient_DV = jnp.einsum(
                "ND,NV->DV", x_ND, gradient_NV, preferred_element_type=jnp.float32
            )
            carry = jax.tree.map(jnp.add, carry, (found, matrix_gradient_DV))
            return carry, x_gradient_ND

        zero = LossSums(*jnp.zeros(3)), jnp.zeros(matrix_VD.shape[::-1])
        (found, matrix_gradient_DV), x_gradient_PND = lax.scan(
            body, zero, (x_PND, target_PN), unroll=parts == 1
        )
        return found, (x_gradient_PND, matrix_gradient_DV.T)

    def backward(gradients, cotangent):
        x_gradient_PND, matrix_gradient_VD = gradients
        scale = cotangent.loss
        return (
            x_gradient_PND * scale.astype(x_gradient_PND.dtype),
            matrix_gradient_VD * scale,
        )

    total.defvjp(forward, backward)
    found = total(x_PND, matrix_VD)
    return LossSums(found.loss, *lax.stop_gradient(found[1:]))
