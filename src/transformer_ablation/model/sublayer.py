"""What surrounds every sub-layer: residual sum, dropout, layer norm."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.dropout import Noise, dropped


def layer_norm(config: ModelConfig, name: str | None = None) -> nn.LayerNorm:
    """Layer normalisation with gain and bias, statistics in float32."""
    return nn.LayerNorm(
        epsilon=config.layer_norm_epsilon,
        dtype=jnp.dtype(config.dtype),
        name=name,
    )


class Residual(nn.Module):
    """Post-norm LayerNorm(x + dropout(f(x))), the paper's (sections 3.1, 5.4).

    Pre-norm is x + dropout(f(LayerNorm(x))). ``sublayer`` maps the (normed)
    input to an array like it, and whatever else it returns is passed on.
    """

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BLD, sublayer: Callable[..., Any], noise: Noise | None):
        norm = layer_norm(self.config, name="norm")
        pre = self.config.norm == "pre"
        y_BLD = sublayer(norm(x_BLD) if pre else x_BLD)
        y_BLD = dropped(y_BLD, noise, self.path)
        return x_BLD + y_BLD if pre else norm(x_BLD + y_BLD)
