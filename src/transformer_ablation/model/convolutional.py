"""The gated convolutional encoder-decoder (Gehring et al. 2017).

Layers are y = GLU(conv(x)) in a residual, x' = (x + y) sqrt(1/2). The encoder's
kernels are centred, the decoder's causal. In every decoder layer y attends to the
last encoder layer's output z before it is added: with g the decoder's input, e the
encoder's (embeddings and positions), S the length of the source,
    d = W y + b + g,  a = softmax(d . z),  c = sqrt(S) sum_j a_j (z_j + e_j)
    y' = (y + W' c + b') sqrt(1/2)
Products are not divided ("dot"), which wants embeddings as small as Gehring's, whose
deviation is 0.1: unscaled ones and learned positions have 1/sqrt(d_model). Larger ones
make the first attention so sharp that sqrt(S) blows it up. ``compatibility``
"scaled_dot" divides d . z by sqrt(d_model).
Kernels one place apart, or with ``kernel_dilation`` "doubling" 1, 2, 4, 8, 16
places in the layers one after the other and again from 1 (ByteNet, Kalchbrenner et al.
2016).

Differs from Gehring et al.: no weight normalisation, and no smaller gradient for the
encoder, which Adam all but takes back; one width throughout.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model import widths
from transformer_ablation.model.attention import (
    attention_weights,
    dot_scores,
    padding_mask,
    scaled_dot_scores,
    weighted_sum,
)
from transformer_ablation.model.convolution import GatedConvolution
from transformer_ablation.model.dropout import Noise, dropped
from transformer_ablation.model.encoder_decoder import FixedCache, FixedCacheModel
from transformer_ablation.model.linear import Linear
from transformer_ablation.model.packed import same_sequence
from transformer_ablation.model.positions import Positions

# Layers until the dilation is 1 again.
CYCLE = 5


def dilation(config: ModelConfig, number: int) -> int:
    """How far apart the places of a layer's kernel are; layers count from 0."""
    return 2 ** (number % CYCLE) if config.kernel_dilation == "doubling" else 1


def _half(x):
    """A sum of two as spread as one of them."""
    return x * 0.5**0.5


class Memory(NamedTuple):
    """What a decoder layer attends to: keys z, values z + e, and a mask."""

    keys_BMD: Any
    values_BMD: Any
    mask_B1LM: Any


def _convolution(config: ModelConfig, number: int, causal: bool) -> GatedConvolution:
    return GatedConvolution(
        config.d_model,
        config.kernel_width,
        dilation(config, number),
        causal,
        config.dtype,
    )


class Encoder(nn.Module):
    """Residual gated convolutions."""

    config: ModelConfig

    def setup(self):
        config = self.config
        self.layers = [
            _convolution(config, number, causal=False)
            for number in range(config.num_layers)
        ]

    def __call__(self, x_BSD, sequence_BS, noise: Noise | None):
        for layer in self.layers:
            y_BSD = layer(dropped(x_BSD, noise, layer.path), sequence_BS)
            x_BSD = _half(x_BSD + y_BSD)
        return x_BSD


class DecoderLayer(nn.Module):
    """A causal gated convolution that attends to the memory, in its residual."""

    config: ModelConfig
    number: int

    def setup(self):
        config = self.config
        self.convolution = _convolution(config, self.number, causal=True)
        self.query = Linear(config.d_model, config.dtype)
        self.output = Linear(config.d_model, config.dtype)

    def __call__(self, x_BLD, g_BLD, memory: Memory, sequence_BL, noise: Noise | None):
        y_BLD = self.convolution(dropped(x_BLD, noise, self.path), sequence_BL)
        y_BLD, weights_B1LM = self._attend(y_BLD, g_BLD, memory, noise)
        return _half(x_BLD + y_BLD), weights_B1LM

    def step(self, x_BCD, g_BCD, memory: Memory, past_BCWD):
        """One position: [B, C, D], and the inputs that later ones still see."""
        y_BCD, past_BCWD = self.convolution.step(past_BCWD, x_BCD)
        y_BCD, _ = self._attend(y_BCD, g_BCD, memory, None)
        return _half(x_BCD + y_BCD), past_BCWD

    def _attend(self, y_BLD, g_BLD, memory: Memory, noise: Noise | None):
        dot = self.config.compatibility == "dot"
        scores = dot_scores if dot else scaled_dot_scores
        queries_BL1D = (self.query(y_BLD) + g_BLD)[:, :, None]
        keys_B1DM = jnp.swapaxes(memory.keys_BMD, 1, 2)[:, None]
        weights_B1LM = attention_weights(
            scores(queries_BL1D, keys_B1DM), memory.mask_B1LM
        )
        used_B1LM = weights_B1LM
        if noise is not None and noise.attention_rate is not None:
            used_B1LM = noise.drop(
                used_B1LM, noise.attention_rate, (*self.path, "attention")
            )
        sums_BLD = weighted_sum(used_B1LM, memory.values_BMD[:, None])[:, :, 0]
        lengths_BL = memory.mask_B1LM.sum(axis=-1)[:, 0]
        sums_BLD = sums_BLD * (lengths_BL[..., None] ** 0.5).astype(sums_BLD.dtype)
        return _half(y_BLD + self.output(sums_BLD)), weights_B1LM

    @property
    def past(self) -> int:
        """How many earlier positions a step sees."""
        return self.convolution.past


class Weights(nn.Module):
    """Where the attention of all layers is sown: [N, B, 1, T, S]."""

    def __call__(self, weights_NB1TS):
        self.sow("attention", "weights", weights_NB1TS)


class Decoder(nn.Module):
    """The decoder's layers."""

    config: ModelConfig

    def setup(self):
        numbers = range(self.config.num_layers)
        self.layers = [DecoderLayer(self.config, number) for number in numbers]
        self.cross_attention = Weights()

    def __call__(self, g_BTD, memory: Memory, sequence_BT, noise: Noise | None):
        x_BTD, weights = g_BTD, []
        for layer in self.layers:
            x_BTD, weights_B1TS = layer(x_BTD, g_BTD, memory, sequence_BT, noise)
            weights.append(weights_B1TS)
        self.cross_attention(jnp.stack(weights))
        return x_BTD

    def pasts(self, *shape: int):
        """What every layer has seen before the first position: [..., W, D]."""
        size, dtype = self.config.d_model, self.config.dtype
        return tuple(jnp.zeros((*shape, n.past, size), dtype) for n in self.layers)

    def step(self, g_BCD, memory: Memory, pasts):
        """One position of C candidates: [B, C, D], and the new pasts."""
        x_BCD, found = g_BCD, []
        for layer, past_BCWD in zip(self.layers, pasts, strict=True):
            x_BCD, past_BCWD = layer.step(x_BCD, g_BCD, memory, past_BCWD)
            found.append(past_BCWD)
        return x_BCD, tuple(found)


def _start(model: "Convolutional", source_BS, used: int):
    """Keys and values of the source cut to ``used``, and padded again."""
    added = source_BS.shape[1] - used
    found = model.encode(source_BS[:, :used])
    return tuple(widths.longer(x_BUD, 1, added) for x_BUD in found)


class Convolutional(FixedCacheModel):
    """A ``TranslationModel`` of gated convolutions.

    Its cache has the memory and the positions' vectors [T, D], if there are any, and
    of each layer the inputs that its kernel still sees.
    """

    def setup(self):
        config = self.config
        self.embeddings = self.new_embeddings()
        self.source_positions = Positions(config)
        self.target_positions = Positions(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    def encode(self, source_BS, noise: Noise | None = None, packed: bool = False):
        """Keys z and values z + e of the memory, each [B, S, D]."""
        at = self._places(source_BS, packed)
        e_BSD = self._embed(source_BS, "source")
        e_BSD = self.source_positions(e_BSD, at and at.position_BL)
        e_BSD = self._input_dropout(e_BSD, noise, "source")
        real_BS = source_BS != self.pad_id
        # Padding is a sequence of its own, which no real position sees.
        sequence_BS = at.sequence_BL if at else real_BS.astype(jnp.int32)
        z_BSD = self.encoder(e_BSD, sequence_BS, noise)
        return z_BSD, z_BSD + e_BSD

    def decode(
        self,
        memory,
        source_BS,
        target_BT,
        noise: Noise | None = None,
        packed: bool = False,
    ):
        """The decoder's last hidden states [B, T, D] under teacher forcing."""
        at = self._places(target_BT, packed)
        g_BTD = self._embed(self.shift_right(target_BT, packed), "target")
        g_BTD = self.target_positions(g_BTD, at and at.position_BL)
        g_BTD = self._input_dropout(g_BTD, noise, "target")
        mask_B1LM = padding_mask(source_BS, self.pad_id)
        if at:
            mask_B1LM &= same_sequence(at, self._places(source_BS, packed))
        sequence_BT = at.sequence_BL if at else None
        return self.decoder(g_BTD, Memory(*memory, mask_B1LM), sequence_BT, noise)

    def start_cache(
        self, source_BS, candidates: int, length: int, fitted: bool = False
    ) -> FixedCache:
        """Encodes; of one candidate if ``fitted``, as ``TranslationModel`` says."""
        memory = widths.in_fitting_width(_start, self, source_BS, self.pad_id, fitted)
        pasts = self.decoder.pasts(source_BS.shape[0], 1 if fitted else candidates)
        memory = Memory(*memory, padding_mask(source_BS, self.pad_id))
        return FixedCache((memory, self.target_positions.vectors(length)), pasts)

    def step(self, cache: FixedCache, tokens_BC, position) -> Any:
        """Logits [B, C, V] of what follows ``tokens_BC`` at ``position``."""
        memory, positions_TD = cache.memory
        g_BCD = self._embed(tokens_BC, "target")
        if positions_TD is not None:
            g_BCD = g_BCD + positions_TD[position][None, None].astype(g_BCD.dtype)
        pasts = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (*tokens_BC.shape, *x.shape[2:])),
            cache.states,
        )
        x_BCD, pasts = self.decoder.step(g_BCD, memory, pasts)
        return self.logits(x_BCD), cache._replace(states=pasts)
