"""The position-wise feed-forward network (section 3.3)."""

import flax.linen as nn

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.linear import Linear


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 at every position (eq. 2): [B, L, D]."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BLD, noise: Noise | None = None):
        dtype = self.config.dtype
        hidden_BLF = nn.relu(Linear(self.config.d_ff, dtype, name="inner")(x_BLD))
        if noise is not None and noise.activation_rate is not None:
            hidden_BLF = noise.drop(hidden_BLF, noise.activation_rate, self.path)
        return Linear(self.config.d_model, dtype, name="outer")(hidden_BLF)
