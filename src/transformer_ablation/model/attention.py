"""Attention (section 3.2): compatibility functions, softmax, multi-head attention."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.banded import Band
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.fused import fused_attention
from transformer_ablation.model.linear import Linear

# The score of a hidden place: far below any real one, so its exponential is 0.
HIDDEN = -1e30


def padding_mask(tokens_BM, pad_id: int):
    """Which memory positions may be attended to: [B, 1, 1, M], True for real tokens."""
    return (tokens_BM != pad_id)[:, None, None, :]


@jax.custom_vjp
def attention_weights(scores_BHLM, mask_B1LM):
    """Softmax over the memory positions that the mask allows.

    A query that may attend to nothing gets zeros, not NaN, and a gradient of
    zero: padded rows rely on it.
    """
    scores_BHLM = scores_BHLM.astype(jnp.float32)
    scores_BHLM = jnp.where(mask_B1LM, scores_BHLM, HIDDEN)
    highest_BHL1 = scores_BHLM.max(axis=-1, keepdims=True)
    # Hidden places become 0 exactly, beside any visible one.
    exponentials_BHLM = jnp.exp(scores_BHLM - highest_BHL1)
    total_BHL1 = exponentials_BHLM.sum(axis=-1, keepdims=True)
    some_B1L1 = mask_B1LM.any(axis=-1, keepdims=True)
    return exponentials_BHLM * (some_B1L1 / total_BHL1)


def _weights_forward(scores_BHLM, mask_B1LM):
    weights_BHLM = attention_weights(scores_BHLM, mask_B1LM)
    # A type is no array, so an empty one carries it.
    return weights_BHLM, (weights_BHLM, jnp.empty(0, scores_BHLM.dtype))


def _weights_backward(kept, gradient_BHLM):
    weights_BHLM, like = kept
    product_BHLM = weights_BHLM * gradient_BHLM
    mean_BHL1 = product_BHLM.sum(axis=-1, keepdims=True)
    scores_BHLM = product_BHLM - weights_BHLM * mean_BHL1
    return scores_BHLM.astype(like.dtype), None


attention_weights.defvjp(_weights_forward, _weights_backward)


def dot_scores(q_BLHK, k_BHKM):
    """Products of every query with every key: [B, H, L, M]."""
    return jnp.einsum("BLHK,BHKM->BHLM", q_BLHK, k_BHKM)


def scaled_dot_scores(q_BLHK, k_BHKM):
    """Products divided by sqrt(d_k) (section 3.2.1, eq. 1): [B, H, L, M]."""
    return dot_scores(q_BLHK * q_BLHK.shape[-1] ** -0.5, k_BHKM)


def additive_scores(q_BLHK, k_BHKM, vector_HK):
    """v . tanh(q + k) of every query with every key (Bahdanau et al. 2015)."""
    q_BHL1K = jnp.moveaxis(q_BLHK, 1, 2)[:, :, :, None]
    k_BH1MK = jnp.swapaxes(k_BHKM, 2, 3)[:, :, None]
    hidden_BHLMK = jnp.tanh(q_BHL1K + k_BH1MK)
    return jnp.einsum("BHLMK,HK->BHLM", hidden_BHLMK, vector_HK)


def weighted_sum(weights_BHLM, v_BHMU):
    """The values averaged with the weights: [B, L, H, U]."""
    # In this order the product needs no copy of the values.
    heads_BHLU = weights_BHLM.astype(v_BHMU.dtype) @ v_BHMU
    return jnp.moveaxis(heads_BHLU, 1, 2)


class MultiHeadAttention(nn.Module):
    """Heads of their own ``d_k`` and ``d_v``, concatenated and projected (3.2.2).

    The paper's formula has no biases; ``projection_biases`` adds them to all four
    projections, as the authors' first code does. ``attention_implementation`` other
    than "own" is of whole sequences: a cached step of the search has our own products.
    "banded" is of self-attention: what attends to the memory has our own products too.
    """

    config: ModelConfig

    def setup(self):
        config = self.config
        linear = functools.partial(
            Linear, dtype=config.dtype, use_bias=config.projection_biases
        )
        self.query = linear(config.num_heads * config.d_k)
        self.key = linear(config.num_heads * config.d_k)
        self.value = linear(config.num_heads * config.d_v)
        self.output = linear(config.d_model)
        if config.compatibility == "additive":
            self.vector = self.param(
                "vector",
                nn.initializers.normal(config.d_k**-0.5),
                (config.num_heads, config.d_k),
            )

    def _heads(self, x_BLD, projection: Linear):
        """A projection, head by head: [B, L, H, K or U]."""
        x_BLN = projection(x_BLD)
        return x_BLN.reshape(*x_BLN.shape[:2], self.config.num_heads, -1)

    def keys_values(self, memory_BMD):
        """Keys [B, H, K, M] and values [B, H, M, U] of a memory, as products want."""
        k_BMHK = self._heads(memory_BMD, self.key)
        v_BMHU = self._heads(memory_BMD, self.value)
        return jnp.moveaxis(k_BMHK, 1, 3), jnp.moveaxis(v_BMHU, 1, 2)

    def scores(self, q_BLHK, k_BHKM):
        """The compatibility of queries and keys: [B, H, L, M]."""
        if self.config.compatibility == "additive":
            vector_HK = self.vector.astype(q_BLHK.dtype)
            return additive_scores(q_BLHK, k_BHKM, vector_HK)
        if self.config.compatibility == "dot":
            return dot_scores(q_BLHK, k_BHKM)
        return scaled_dot_scores(q_BLHK, k_BHKM)

    def attend(self, x_BLD, k_BHKM, v_BHMU, mask_B1LM, noise: Noise | None = None):
        """Each position of ``x_BLD`` gathers from the keys and values: [B, L, D].

        The weights are sown as ``attention/weights`` for whoever asks for them.
        """
        q_BLHK = self._heads(x_BLD, self.query)
        return self._joined(self.gather(q_BLHK, k_BHKM, v_BHMU, mask_B1LM, noise))

    def gather(self, q_BLHK, k_BHKM, v_BHMU, mask_B1LM, noise: Noise | None = None):
        """The values averaged with the weights: [B, L, H, U]; the attention itself."""
        weights_BHLM = attention_weights(self.scores(q_BLHK, k_BHKM), mask_B1LM)
        self.sow("attention", "weights", weights_BHLM)
        if noise is not None and noise.attention_rate is not None:
            weights_BHLM = noise.drop(weights_BHLM, noise.attention_rate, self.path)
        return weighted_sum(weights_BHLM, v_BHMU)

    def gather_near(
        self, q_BLHK, k_BLHK, v_BLHU, band: Band, noise: Noise | None = None
    ):
        """``gather`` of a neighbourhood, block by block: [B, L, H, U]."""
        q_CIHK, k_CJHK = band.queries(q_BLHK), band.keys(k_BLHK)
        if noise is not None:
            # Each block is a row: of the same sentences, always the same.
            blocks = q_CIHK.shape[0] // q_BLHK.shape[0]
            noise = noise._replace(first_row=noise.first_row * blocks)
        heads_CIHU = self.gather(
            q_CIHK,
            jnp.moveaxis(k_CJHK, 1, 3),
            jnp.moveaxis(band.keys(v_BLHU), 1, 2),
            band.mask(),
            noise,
        )
        return band.rows(heads_CIHU)

    def _joined(self, heads_BLHU):
        """The heads side by side, projected: [B, L, D]."""
        return self.output(heads_BLHU.reshape(*heads_BLHU.shape[:2], -1))

    def _fused(self, x_BLD, memory_BMD, mask_B1LM):
        """``attend`` in a layout of its own, and without weights."""
        config = self.config
        heads_BLHU = fused_attention(
            self._heads(x_BLD, self.query),
            self._heads(memory_BMD, self.key),
            self._heads(memory_BMD, self.value),
            mask_B1LM,
            1.0 if config.compatibility == "dot" else config.d_k**-0.5,
            config.attention_implementation,
        )
        return self._joined(heads_BLHU)

    def _banded(self, x_BLD, band: Band, noise: Noise | None):
        """``attend`` of each position to its neighbourhood alone."""
        heads = (self._heads(x_BLD, of) for of in (self.query, self.key, self.value))
        return self._joined(self.gather_near(*heads, band, noise))

    def __call__(self, x_BLD, memory_BMD, mask_B1LM, noise: Any = None):
        """Attention from ``x_BLD`` to ``memory_BMD``: [B, L, D].

        The mask of self-attention may be a ``Band``.
        """
        # Weights that somebody asks for are made, whatever the config.
        asked = self.is_mutable_collection("attention")
        if isinstance(mask_B1LM, Band):
            if not asked:
                return self._banded(x_BLD, mask_B1LM, noise)
            mask_B1LM = mask_B1LM.whole()
        if self.config.attention_implementation in ("xla", "cudnn") and not asked:
            return self._fused(x_BLD, memory_BMD, mask_B1LM)
        k_BHKM, v_BHMU = self.keys_values(memory_BMD)
        return self.attend(x_BLD, k_BHKM, v_BHMU, mask_B1LM, noise)
