"""The position-wise feed-forward network (section 3.3)."""

from functools import partial

import flax.linen as nn
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.linear import dot_general


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 at every position (eq. 2): [B, L, D]."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BLD, noise: Noise | None = None):
        dense = partial(
            nn.Dense,
            dtype=jnp.dtype(self.config.dtype),
            kernel_init=nn.initializers.xavier_uniform(),
            dot_general=dot_general,
        )
        hidden_BLF = nn.relu(dense(self.config.d_ff, name="inner")(x_BLD))
        if noise is not None and noise.activation_rate is not None:
            hidden_BLF = noise.drop(hidden_BLF, noise.activation_rate, self.path)
        return dense(self.config.d_model, name="outer")(hidden_BLF)
