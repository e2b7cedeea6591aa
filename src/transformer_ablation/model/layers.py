"""One layer of each stack (section 3.1), and the stacks as scans over layers."""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from transformer_ablation.config import ModelConfig
from transformer_ablation.model import linear
from transformer_ablation.model.attention import MultiHeadAttention
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.feed_forward import FeedForward
from transformer_ablation.model.sublayer import Residual


class EncoderContext(NamedTuple):
    """What every encoder layer sees besides its input."""

    mask_B1LM: Any
    noise: Noise | None


class DecoderContext(NamedTuple):
    """What every decoder layer sees besides its input and its cache.

    ``memory_BSD`` is None in a cached step: its keys and values are in the
    cache. ``slot`` is the first, traced, of those that a cached step fills.
    """

    memory_BSD: Any
    self_mask_B1LM: Any
    memory_mask_B1LM: Any
    noise: Noise | None
    slot: Any = None


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward network, each in its residual."""

    config: ModelConfig

    def setup(self):
        self.self_attention = MultiHeadAttention(self.config)
        self.self_attention_residual = Residual(self.config)
        self.feed_forward = FeedForward(self.config)
        self.feed_forward_residual = Residual(self.config)

    def __call__(self, x_BLD, number, context: EncoderContext):
        mask_B1LM, noise = context
        noise = None if noise is None else noise.of_layer(number)
        x_BLD = self.self_attention_residual(
            x_BLD, lambda y: self.self_attention(y, y, mask_B1LM, noise), noise
        )
        x_BLD = self.feed_forward_residual(
            x_BLD, lambda y: self.feed_forward(y, noise), noise
        )
        return x_BLD, None


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the memory, feed-forward network.

    ``__call__`` runs whole targets; ``start`` makes the layer's cache from the
    memory and ``step`` runs one position against it. The three share every
    parameter, and tests hold them equal.
    """

    config: ModelConfig

    def setup(self):
        self.self_attention = MultiHeadAttention(self.config)
        self.self_attention_residual = Residual(self.config)
        self.cross_attention = MultiHeadAttention(self.config)
        self.cross_attention_residual = Residual(self.config)
        self.feed_forward = FeedForward(self.config)
        self.feed_forward_residual = Residual(self.config)

    def __call__(self, x_BLD, number, context: DecoderContext):
        memory_BSD, self_mask_B1LM, memory_mask_B1LM, noise, _ = context
        noise = None if noise is None else noise.of_layer(number)
        x_BLD = self.self_attention_residual(
            x_BLD, lambda y: self.self_attention(y, y, self_mask_B1LM, noise), noise
        )
        x_BLD = self.cross_attention_residual(
            x_BLD,
            lambda y: self.cross_attention(y, memory_BSD, memory_mask_B1LM, noise),
            noise,
        )
        x_BLD = self.feed_forward_residual(
            x_BLD, lambda y: self.feed_forward(y, noise), noise
        )
        return x_BLD, None

    def start(self, carry, _, context: DecoderContext):
        """The memory's keys and values, computed once a sentence."""
        keys, values = self.cross_attention.keys_values(context.memory_BSD)
        return carry, {"memory_keys": keys, "memory_values": values}

    def step(self, x_BCD, cache: dict, context: DecoderContext):
        """One position of C candidates a sentence: [B, C, D], and the new past.

        The keys and values of position p of candidate c are kept in slot
        p * C + c, C the most there may be; the mask says which slots are a
        candidate's own past.
        """
        past = {}

        def attend_to_past(y_BCD):
            k_BHKC, v_BHCU = self.self_attention.keys_values(y_BCD)
            past["keys"] = lax.dynamic_update_slice(
                cache["keys"], k_BHKC, (0, 0, 0, context.slot)
            )
            past["values"] = lax.dynamic_update_slice(
                cache["values"], v_BHCU, (0, 0, context.slot, 0)
            )
            return self.self_attention.attend(
                y_BCD, past["keys"], past["values"], context.self_mask_B1LM
            )

        def attend_to_memory(y_BCD):
            return self.cross_attention.attend(
                y_BCD,
                cache["memory_keys"],
                cache["memory_values"],
                context.memory_mask_B1LM,
            )

        x_BCD = self.self_attention_residual(x_BCD, attend_to_past, None)
        x_BCD = self.cross_attention_residual(x_BCD, attend_to_memory, None)
        x_BCD = self.feed_forward_residual(x_BCD, self.feed_forward, None)
        return x_BCD, past


# Layers are written out where a loop over them would cost more time than it saves: a
# few of any size, and more where each computes so long that compiling is nothing to it.
FEW_LAYERS, MORE_LAYERS, LARGE = 4, 8, 512


def _written_out(config: ModelConfig, layers: int) -> bool:
    return layers <= (MORE_LAYERS if config.d_model >= LARGE else FEW_LAYERS)


# What of a layer, besides its input, is kept for the backward pass; the rest of it
# is computed again there. "cheap" keeps what linear maps put out.
_KEPT = {
    "layers": jax.checkpoint_policies.nothing_saveable,
    "cheap": jax.checkpoint_policies.save_only_these_names(linear.RESULT),
}


def stack(layer: Any, config: ModelConfig, layers: int, methods: list[str]) -> Any:
    """So many layers as one scan: depth costs hardly any compile time.

    Parameters have a leading axis of layers; each listed method takes (carry,
    per-layer input, context) and returns (carry, per-layer output).
    """
    if config.rematerialize != "none":
        layer = nn.remat(
            layer, methods=["__call__"], policy=_KEPT[config.rematerialize]
        )
    return nn.scan(
        layer,
        variable_axes={"params": 0, "attention": 0},
        split_rngs={"params": True},
        in_axes=(0, nn.broadcast),
        length=layers,
        unroll=layers if _written_out(config, layers) else 1,
        methods=methods,
    )(config)


def empty_past(config: ModelConfig, batch: int, slots: int) -> dict:
    """The zeroed self-attention cache of a layer, as ``keys_values`` gives it."""
    dtype = jnp.dtype(config.dtype)
    return {
        "keys": jnp.zeros((batch, config.num_heads, config.d_k, slots), dtype),
        "values": jnp.zeros((batch, config.num_heads, slots, config.d_v), dtype),
    }
