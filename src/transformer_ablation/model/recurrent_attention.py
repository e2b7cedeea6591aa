"""Additive attention that a recurrent decoder asks at each step (Bahdanau et al. 2015).

``recurrent`` has its equations.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model import linear
from transformer_ablation.model.attention import (
    additive_scores,
    attention_weights,
    weighted_sum,
)
from transformer_ablation.model.recurrence import CELLS, Given, Multiply, State, begun


def attend(query_BLK, keys_BMK, memory_BMD, vector_K, mask_B1LM):
    """Context [B, L, D] and weights [B, 1, L, M] of additive attention."""
    k_B1KM = jnp.swapaxes(keys_BMK, 1, 2)[:, None]
    scores_B1LM = additive_scores(query_BLK[:, :, None], k_B1KM, vector_K[None])
    weights_B1LM = attention_weights(scores_B1LM, mask_B1LM)
    return weighted_sum(weights_B1LM, memory_BMD[:, None])[:, :, 0], weights_B1LM


class Attended(NamedTuple):
    """The memory as every step of the decoder attends to it."""

    keys_BMK: Any
    memory_BMD: Any
    vector_K: Any


class AdditiveAttention(nn.Module):
    """Parameters of the attention, as wide within as the model."""

    config: ModelConfig

    def setup(self):
        glorot, size = nn.initializers.xavier_uniform(), self.config.d_model
        self.query_kernel = self.param("query_kernel", glorot, (size, size))
        self.key_kernel = self.param("key_kernel", glorot, (size, size))
        normal = nn.initializers.normal(size**-0.5)
        self.vector = self.param("vector", normal, (size,))

    def of_memory(self, memory_BMD) -> Attended:
        """What does not depend on the query."""
        keys_BMK = linear.product(memory_BMD, self.key_kernel)
        return Attended(keys_BMK, memory_BMD, self.vector.astype(memory_BMD.dtype))

    def record(self, weights_N1LM):
        """Sows weights [N, B, 1, L, M] for whoever asks for them."""
        self.sow("attention", "weights", weights_N1LM)


def attentive(kind: str, multiply: Multiply, state: State, given: Given):
    """A step of the first decoder layer; keeps output, context and weights.

    What attention computes within is computed again for the backward pass: of all
    steps together it would be the largest array by far.
    """
    state = begun(state, given)
    mask = given.fixed.mask if given.mask is None else given.mask
    query = multiply("query", state[0])
    again = jax.checkpoint(attend, prevent_cse=False)
    context, weights = again(query, *given.shared, mask)
    state = CELLS[kind].advance(multiply, state, context)
    # The loop takes the axis of one candidate off: behind the batch, here too.
    return state, (state, context, jnp.swapaxes(weights, 1, 2))
