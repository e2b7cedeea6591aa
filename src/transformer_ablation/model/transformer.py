"""The encoder-decoder Transformer (section 3), whole and step by step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from transformer_ablation.model import widths
from transformer_ablation.model.attention import padding_mask
from transformer_ablation.model.banded import Band
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.encoder_decoder import EncoderDecoder
from transformer_ablation.model.layers import (
    DecoderContext,
    DecoderLayer,
    EncoderContext,
    EncoderLayer,
    empty_past,
    stack,
)
from transformer_ablation.model.neighbourhood import slot_mask
from transformer_ablation.model.packed import Places, same_sequence
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


def make_room(cache: DecodeCache, length: int) -> DecodeCache:
    """The cache with room for ``length`` positions, more than it has."""
    old = cache.origin_BCT.shape[-1]

    def longer(x, axis: int):
        return widths.longer(x, axis, x.shape[axis] // old * (length - old))

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


def _start_memory(model: "Transformer", source_BS, used: int):
    """The memory's keys and values of each layer, of ``used`` positions and padded."""
    memory_BSD = model.encode(source_BS[:, :used])
    context = DecoderContext(memory_BSD, None, None, None)
    _, memory = model.decoder.start(jnp.zeros(()), None, context)
    added = source_BS.shape[1] - used
    return {
        "memory_keys": widths.longer(memory["memory_keys"], 4, added),
        "memory_values": widths.longer(memory["memory_values"], 3, added),
    }


class Transformer(EncoderDecoder):
    """A ``TranslationModel``, whose memory is [B, S, D]."""

    grows = True
    follow = staticmethod(follow)
    make_room = staticmethod(make_room)

    def setup(self):
        config = self.config
        self.embeddings = self.new_embeddings()
        self.source_positions = Positions(config)
        self.target_positions = Positions(config)
        self.encoder = stack(EncoderLayer, config, config.num_layers, ["__call__"])
        depth, methods = config.layers_of_decoder, ["__call__", "start"]
        self.decoder = stack(DecoderLayer, config, depth, methods)
        if config.norm == "pre":
            self.encoder_norm = layer_norm(config)
            self.decoder_norm = layer_norm(config)

    def _layer_numbers(self, noise: Noise | None, layers: int):
        """What tells the layers' noise apart; nothing without noise."""
        return None if noise is None else jnp.arange(layers)

    def _self_mask(self, tokens_BL, at: Places | None, causal: bool):
        """Who sees whom: a mask [B, 1, L, L], or the ``Band`` that makes none."""
        real_BL = tokens_BL != self.pad_id
        band = Band(real_BL, at, self.config.attention_window, causal)
        banded = self.config.attention_implementation == "banded"
        return band if banded else band.whole()

    def encode(self, source_BS, noise: Noise | None = None, packed: bool = False):
        """The memory [B, S, D] that the decoder attends to."""
        at = self._places(source_BS, packed)
        x_BSD = self._embed(source_BS, "source")
        x_BSD = self.source_positions(x_BSD, at and at.position_BL)
        x_BSD = self._input_dropout(x_BSD, noise, "source")
        context = EncoderContext(self._self_mask(source_BS, at, causal=False), noise)
        numbers = self._layer_numbers(noise, self.config.num_layers)
        x_BSD, _ = self.encoder(x_BSD, numbers, context)
        return self.encoder_norm(x_BSD) if self.config.norm == "pre" else x_BSD

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
        memory_mask_B1LM = padding_mask(source_BS, self.pad_id)
        if at:
            memory_mask_B1LM &= same_sequence(at, self._places(source_BS, packed))
        context = DecoderContext(
            memory_BSD=memory_BSD,
            self_mask_B1LM=self._self_mask(inputs_BT, at, causal=True),
            memory_mask_B1LM=memory_mask_B1LM,
            noise=noise,
        )
        numbers = self._layer_numbers(noise, self.config.layers_of_decoder)
        x_BTD, _ = self.decoder(x_BTD, numbers, context)
        return self.decoder_norm(x_BTD) if self.config.norm == "pre" else x_BTD

    def start_cache(
        self, source_BS, candidates: int, length: int, fitted: bool = False
    ) -> DecodeCache:
        """Encodes, and makes room for ``length`` positions of every candidate.

        With ``fitted``, which takes longer to compile, hardly any padding is encoded,
        and the cache is of one candidate until a step has been followed.
        """
        batch = source_BS.shape[0]
        memory = widths.in_fitting_width(
            _start_memory, self, source_BS, self.pad_id, fitted
        )
        past = empty_past(self.config, batch, length * candidates)
        stacked = {"params": self.decoder.variables["params"], **memory}
        return DecodeCache(
            layers=tuple(
                {**jax.tree.map(lambda x, n=n: x[n], stacked), **past}
                for n in range(self.config.layers_of_decoder)
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
