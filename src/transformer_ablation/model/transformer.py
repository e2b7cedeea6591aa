"""The encoder-decoder Transformer (section 3), whole and step by step."""

from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.attention import (
    neighbourhood_mask,
    padding_mask,
    slot_mask,
)
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.layers import (
    DecoderContext,
    DecoderLayer,
    EncoderContext,
    EncoderLayer,
    empty_past,
    stack,
)
from transformer_ablation.model.packed import places, same_sequence, starts
from transformer_ablation.model.positions import Positions
from transformer_ablation.model.sublayer import layer_norm


class DecodeCache(NamedTuple):
    """The state of cached decoding of C candidates a sentence.

    Each of ``layers`` holds keys [B, H, K, S or T*C] and values [B, H, S or T*C, U] of
    the memory and of the past, and the parameters of the layer, which are taken apart
    here once and not at every step. The past is never moved: ``origin_BCT`` says for
    each candidate whose slot holds its position t, so following a beam is a gather of
    these small integers alone. Before the first step it may be of one candidate.
    """

    layers: tuple[dict, ...]
    origin_BCT: jax.Array
    memory_mask_B11S: jax.Array


def follow(cache: DecodeCache, parent_BC) -> DecodeCache:
    """The cache in which candidate c is what candidate ``parent[b, c]`` was."""
    origin_BCT = jnp.take_along_axis(cache.origin_BCT, parent_BC[..., None], axis=1)
    return cache._replace(origin_BCT=origin_BCT)


def _longer(x, axis: int, added: int):
    """``x`` with so many zeros behind it along an axis."""
    return jnp.pad(x, [(0, added if i == axis else 0) for i in range(x.ndim)])


def make_room(cache: DecodeCache, length: int) -> DecodeCache:
    """The cache with room for ``length`` positions, more than it has."""
    old = cache.origin_BCT.shape[-1]

    def longer(x, axis: int):
        return _longer(x, axis, x.shape[axis] // old * (length - old))

    return cache._replace(
        layers=tuple(
            {
                **kept,
                "keys": longer(kept["keys"], 3),
                "values": longer(kept["values"], 2),
            }
            for kept in cache.layers
        ),
        origin_BCT=longer(cache.origin_BCT, 2),
    )


# Sources are encoded in one of a few widths: no work for padding that all have.
_NARROWEST = 16


def _widths(width: int) -> tuple[int, ...]:
    """Up to ``width``, each half as large again as the one before, in eights."""
    widths, narrower = [], _NARROWEST
    while 5 * narrower <= 4 * width:
        widths.append(narrower)
        narrower = -(-narrower * 3 // 2 // 8) * 8
    return (*widths, width)


def _start_memory(model: "Transformer", source_BS, used: int):
    """The memory's keys and values of each layer, of ``used`` positions and padded."""
    memory_BSD = model.encode(source_BS[:, :used])
    context = DecoderContext(memory_BSD, None, None, None)
    _, memory = model.decoder.start(jnp.zeros(()), None, context)
    added = source_BS.shape[1] - used
    return {
        "memory_keys": _longer(memory["memory_keys"], 4, added),
        "memory_values": _longer(memory["memory_values"], 3, added),
    }


def project(x, matrix_VD):
    """The product of hidden states [..., D] with the rows of a matrix, in float32."""
    return jnp.einsum(
        "...D,VD->...V",
        x,
        matrix_VD.astype(x.dtype),
        preferred_element_type=jnp.float32,
    )


class Transformer(nn.Module):
    """``source`` and ``target`` are token ids ending in the end of sentence.

    The decoder's input is the target shifted right behind ``bos_id``. Ids are
    not checked here, where JAX would clamp them: batches are, on the host.
    Where ``packed`` is asked for, a row holds any number of sequences, its n-th
    target being that of its n-th source; without it, one.
    """

    config: ModelConfig
    vocabulary_size: int
    pad_id: int
    bos_id: int
    eos_id: int

    def setup(self):
        config = self.config
        self.embeddings = {
            name: self.param(
                f"{name}_embedding",
                nn.initializers.normal(config.embedding_stddev or config.d_model**-0.5),
                (self.vocabulary_size, config.d_model),
            )
            for name in self._matrices()
        }
        self.source_positions = Positions(config)
        self.target_positions = Positions(config)
        self.encoder = stack(EncoderLayer, config, ["__call__"])
        self.decoder = stack(DecoderLayer, config, ["__call__", "start"])
        if config.norm == "pre":
            self.encoder_norm = layer_norm(config)
            self.decoder_norm = layer_norm(config)

    def _matrices(self) -> tuple[str, ...]:
        return {
            "all": ("shared",),
            "decoder": ("source", "target"),
            "none": ("source", "target", "output"),
        }[self.config.tied_embeddings]

    def _matrix(self, use: str):
        """The matrix of a use (source, target, output) under the tying."""
        if "shared" in self.embeddings:
            return self.embeddings["shared"]
        return self.embeddings.get(use, self.embeddings["target"])

    def _embed(self, tokens_BL, use: str):
        x_BLD = jnp.take(self._matrix(use), tokens_BL, axis=0)
        if self.config.scale_embeddings:
            x_BLD = x_BLD * self.config.d_model**0.5
        return x_BLD.astype(self.config.dtype)

    def _input_dropout(self, x_BLD, noise: Noise | None, use: str):
        if noise is None or noise.dropout_rate is None:
            return x_BLD
        return noise.drop(x_BLD, noise.dropout_rate, (use, "embedding"))

    def _layer_numbers(self, noise: Noise | None):
        """What tells the layers' noise apart; nothing without noise."""
        return None if noise is None else jnp.arange(self.config.num_layers)

    def _places(self, tokens_BL, packed: bool):
        """The places of a packed batch; None where a row is one sequence."""
        return places(tokens_BL, self.eos_id) if packed else None

    def encode(self, source_BS, noise: Noise | None = None, packed: bool = False):
        """The memory [B, S, D] that the decoder attends to."""
        at = self._places(source_BS, packed)
        x_BSD = self._embed(source_BS, "source")
        x_BSD = self.source_positions(x_BSD, at and at.position_BL)
        x_BSD = self._input_dropout(x_BSD, noise, "source")
        near = neighbourhood_mask(
            source_BS.shape[1], self.config.attention_window, causal=False
        )
        mask_B1LM = padding_mask(source_BS, self.pad_id) & near
        if at:
            mask_B1LM &= same_sequence(at, at)
        context = EncoderContext(mask_B1LM, noise)
        x_BSD, _ = self.encoder(x_BSD, self._layer_numbers(noise), context)
        return self.encoder_norm(x_BSD) if self.config.norm == "pre" else x_BSD

    def shift_right(self, target_BT, packed: bool = False):
        """The decoder's input: the begin of sentence, then all but the last."""
        first_B1 = jnp.full((target_BT.shape[0], 1), self.bos_id, target_BT.dtype)
        shifted_BT = jnp.concatenate([first_B1, target_BT[:, :-1]], axis=1)
        if not packed:
            return shifted_BT
        return jnp.where(starts(target_BT, self.eos_id), self.bos_id, shifted_BT)

    def decode(
        self,
        memory_BSD,
        source_BS,
        target_BT,
        noise: Noise | None = None,
        packed: bool = False,
    ):
        """The decoder's last hidden states [B, T, D] under teacher forcing."""
        inputs_BT = self.shift_right(target_BT, packed)
        at = self._places(target_BT, packed)
        x_BTD = self._embed(inputs_BT, "target")
        x_BTD = self.target_positions(x_BTD, at and at.position_BL)
        x_BTD = self._input_dropout(x_BTD, noise, "target")
        length = target_BT.shape[1]
        near = neighbourhood_mask(length, self.config.attention_window, causal=True)
        self_mask_B1LM = padding_mask(inputs_BT, self.pad_id) & near
        memory_mask_B1LM = padding_mask(source_BS, self.pad_id)
        if at:
            self_mask_B1LM &= same_sequence(at, at)
            memory_mask_B1LM &= same_sequence(at, self._places(source_BS, packed))
        context = DecoderContext(
            memory_BSD=memory_BSD,
            self_mask_B1LM=self_mask_B1LM,
            memory_mask_B1LM=memory_mask_B1LM,
            noise=noise,
        )
        x_BTD, _ = self.decoder(x_BTD, self._layer_numbers(noise), context)
        return self.decoder_norm(x_BTD) if self.config.norm == "pre" else x_BTD

    def _factors(self, x_BLD):
        """What ``project`` makes logits of: hidden states and a matrix."""
        if self.config.scale_logits:
            x_BLD = x_BLD * self.config.d_model**-0.5
        return x_BLD, self._matrix("output")

    def logits(self, x_BLD):
        """Scores of every piece [B, L, V] in float32 (section 3.4); no bias."""
        return project(*self._factors(x_BLD))

    def factors(
        self, source_BS, target_BT, noise: Noise | None = None, packed: bool = False
    ):
        """The logits before their product: x [B, T, D] and the matrix [V, D]."""
        memory_BSD = self.encode(source_BS, noise, packed)
        x_BTD = self.decode(memory_BSD, source_BS, target_BT, noise, packed)
        return self._factors(x_BTD)

    def __call__(
        self, source_BS, target_BT, noise: Noise | None = None, packed: bool = False
    ):
        """Logits [B, T, V] of each target token given those before it."""
        return project(*self.factors(source_BS, target_BT, noise, packed))

    def start_cache(
        self, source_BS, candidates: int, length: int, fitted: bool = False
    ) -> DecodeCache:
        """Encodes, and makes room for ``length`` positions of every candidate.

        With ``fitted``, which takes longer to compile, hardly any padding is encoded,
        and the cache is of one candidate until a step has been followed.
        """
        batch, width = source_BS.shape
        widths = _widths(width) if fitted else (width,)
        places_S = jnp.where(
            (source_BS != self.pad_id).any(axis=0), jnp.arange(width), 0
        )
        memory = nn.switch(
            jnp.searchsorted(jnp.asarray(widths), places_S.max() + 1),
            [partial(_start_memory, used=used) for used in widths],
            self,
            source_BS,
        )
        past = empty_past(self.config, batch, length * candidates)
        stacked = {"params": self.decoder.variables["params"], **memory}
        return DecodeCache(
            layers=tuple(
                {**jax.tree.map(lambda x, n=n: x[n], stacked), **past}
                for n in range(self.config.num_layers)
            ),
            origin_BCT=jnp.zeros(
                (batch, 1 if fitted else candidates, length), jnp.int32
            ),
            memory_mask_B11S=padding_mask(source_BS, self.pad_id),
        )

    def step(self, cache: DecodeCache, tokens_BC, position) -> Any:
        """Logits [B, C, V] of what follows ``tokens_BC`` at ``position``.

        ``position`` is traced and counts from 0, where the token is
        ``bos_id`` and one candidate is enough; it must be below the ``length`` of
        ``start_cache`` or ``make_room``.
        """
        length = cache.origin_BCT.shape[-1]
        own_C = jnp.arange(tokens_BC.shape[1], dtype=jnp.int32)
        origin_BCT = jnp.broadcast_to(cache.origin_BCT, (*tokens_BC.shape, length))
        origin_BCT = origin_BCT.at[:, :, position].set(own_C[None])
        most = cache.layers[0]["values"].shape[2] // length
        x_BCD = self._embed(tokens_BC, "target")
        x_BCD = self.target_positions.at(x_BCD, position, length)
        context = DecoderContext(
            memory_BSD=None,
            self_mask_B1LM=slot_mask(
                origin_BCT, position, self.config.attention_window, most
            ),
            memory_mask_B1LM=cache.memory_mask_B11S,
            noise=None,
            slot=position * most,
        )
        layer, layers = DecoderLayer(self.config, parent=None), []
        for kept in cache.layers:
            variables = {"params": kept["params"]}
            x_BCD, past = layer.apply(variables, x_BCD, kept, context, method="step")
            layers.append({**kept, **past})
        if self.config.norm == "pre":
            x_BCD = self.decoder_norm(x_BCD)
        cache = cache._replace(layers=tuple(layers), origin_BCT=origin_BCT)
        return self.logits(x_BCD), cache
