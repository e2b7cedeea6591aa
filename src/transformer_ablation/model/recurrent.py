"""Recurrent encoder-decoders, plain and with attention.

Plain (Sutskever et al. 2014): the encoder's layers read the source, forwards or with
``reverse_source`` backwards, and the state that each ends in is where the decoder's
layer of the same number begins. Nothing else of the source reaches the decoder.

With additive attention (Bahdanau et al. 2015): every encoder layer reads both ways
with d_model / 2 cells each, so the memory m_1 .. m_S has d_model numbers a position,
and the decoder begins as above. At step t, s_{t-1} the first decoder layer's output,
    e_j = v . tanh(W s_{t-1} + U m_j),  a = softmax(e),  c_t = sum_j a_j m_j
    s_t = cell([y_{t-1}; c_t], s_{t-1})
A layer above reads the output of the one below beside c_t (Wu et al. 2016), and
    x_t = tanh(W_o [h_t; c_t] + b_o)
of the last one's output h_t is what logits are made of, in place of Bahdanau's maxout
layer. Differs from Wu et al.: no residual sums, so deep stacks train less well.

Dropout is of what goes from layer to layer, and not of what goes from time to time
(Zaremba et al. 2014): of embeddings, between layers, and before the logits.
"""

import functools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model import linear, widths
from transformer_ablation.model.attention import padding_mask
from transformer_ablation.model.dropout import Noise, dropped
from transformer_ablation.model.encoder_decoder import FixedCache, FixedCacheModel
from transformer_ablation.model.packed import ends, same_sequence, starts
from transformer_ablation.model.recurrence import (
    Begin,
    Fixed,
    Given,
    RecurrentLayer,
    State,
    in_loop,
    multiplier,
)
from transformer_ablation.model.recurrent_attention import (
    AdditiveAttention,
    Attended,
    attentive,
)

FORWARD, BACKWARD = "forward", "backward"


def directions(config: ModelConfig) -> tuple[str, ...]:
    """How the encoder's layers read the source."""
    if config.recurrent_attention != "none":
        return FORWARD, BACKWARD
    return (BACKWARD,) if config.reverse_source else (FORWARD,)


class Memory(NamedTuple):
    """What the encoder makes of the source.

    ``x_BSD`` is the last layer's output; ``states`` has for each layer and direction
    the state after every position, each [B, S, U].
    """

    x_BSD: Any
    states: tuple[dict[str, State], ...]


class Ends(NamedTuple):
    """Where a state that has read a whole source stands: [B, 1], packed [B, T]."""

    first: Any
    last: Any

    def read(self, states: dict[str, State]) -> State:
        """The state after the whole source, both directions side by side."""
        parts = [
            tuple(
                jnp.take_along_axis(
                    x_BSU, (self.last if way == FORWARD else self.first)[..., None], 1
                )
                for x_BSU in state
            )
            for way, state in states.items()
        ]
        return tuple(jnp.concatenate(x, axis=-1) for x in zip(*parts, strict=True))


class Encoder(nn.Module):
    """Layers of cells that read the source in one direction or in both."""

    config: ModelConfig

    def setup(self):
        config, ways = self.config, directions(self.config)
        for way in ways:
            made = [
                RecurrentLayer(
                    config.recurrent_cell,
                    inputs=config.d_model,
                    units=config.d_model // len(ways),
                    dtype=config.dtype,
                )
                for _ in range(config.num_layers)
            ]
            setattr(self, way, made)

    def __call__(self, x_BSD, begins: dict[str, Begin], noise: Noise | None) -> Memory:
        states = []
        for number in range(self.config.num_layers):
            if number:
                x_BSD = dropped(x_BSD, noise, (*self.path, str(number)))
            found = {
                way: getattr(self, way)[number](x_BSD, begin, way == BACKWARD)
                for way, begin in begins.items()
            }
            states.append(found)
            x_BSD = jnp.concatenate([state[0] for state in found.values()], axis=-1)
        return Memory(x_BSD, tuple(states))


class Decoder(nn.Module):
    """Layers of cells; with attention in the first, whose context all of them read."""

    config: ModelConfig

    def setup(self):
        config, self.attends = self.config, self.config.recurrent_attention != "none"
        size = config.d_model
        self.layers = [
            RecurrentLayer(
                config.recurrent_cell,
                inputs=2 * size if number and self.attends else size,
                units=size,
                dtype=config.dtype,
                context=size if self.attends and not number else 0,
            )
            for number in range(config.num_layers)
        ]
        if self.attends:
            self.cross_attention = AdditiveAttention(config)
            self.readout = linear.Linear(size, config.dtype)

    def __call__(
        self, x_BTD, memory_BSD, mask_B1TS, begins: list[Begin], noise: Noise | None
    ):
        """The hidden states that logits are made of: [B, T, D].

        ``mask_B1TS`` may have one row for all positions.
        """
        context_BTD = None
        for number, begin in enumerate(begins):
            place = (*self.path, str(number))
            if number:
                x_BTD = dropped(x_BTD, noise, place)
            if self.attends and not number:
                x_BTD, context_BTD = self._attentive_layer(
                    x_BTD, memory_BSD, mask_B1TS, begin
                )
            else:
                x_BTD = self.layers[number](_beside(x_BTD, context_BTD), begin)[0]
        return dropped(self._read_out(x_BTD, context_BTD), noise, self.path)

    def _products(self, x):
        """Those of the first layer, and the attention's query."""
        found = self.layers[0].products(x)
        zeros = jnp.zeros((*x.shape[:-1], self.config.d_model), x.dtype)
        return found._replace(
            kernels={**found.kernels, "query": self.cross_attention.query_kernel},
            slots={**found.slots, "query": zeros},
        )

    def _attentive_layer(self, x_BTD, memory_BSD, mask_B1TS, begin: Begin):
        shared = self.cross_attention.of_memory(memory_BSD)
        given = Given(shared=shared, mask=mask_B1TS)
        if mask_B1TS.shape[2] > 1:
            mask_TB11S = jnp.moveaxis(mask_B1TS, 2, 0)[:, :, None]
            given = Given(shared=shared, fixed=Fixed(mask=mask_TB11S))
        step = functools.partial(attentive, self.config.recurrent_cell)
        products = self._products(in_loop(x_BTD))
        kept = self.layers[0].loop(step, products, begin, given)
        state, context_BTD, weights_BT1S = kept
        self.cross_attention.record(jnp.swapaxes(weights_BT1S, 1, 2)[None])
        return state[0], context_BTD

    def _read_out(self, x_BLD, context_BLD):
        if not self.attends:
            return x_BLD
        return jnp.tanh(self.readout(_beside(x_BLD, context_BLD)))

    def start(self, memory_BSD) -> Attended | None:
        """What cached steps need of the memory."""
        return self.cross_attention.of_memory(memory_BSD) if self.attends else None

    def step(self, x_BCD, states, attended: Attended | None, mask_B11S):
        """One position of C candidates: hidden states [B, C, D], and new states."""
        context_BCD, found = None, []
        for number, state in enumerate(states):
            if self.attends and not number:
                multiply = multiplier(self._products(x_BCD))
                given = Given(shared=attended, mask=mask_B11S)
                kind = self.config.recurrent_cell
                state, (_, context_BCD, _) = attentive(kind, multiply, state, given)
            else:
                state = self.layers[number].step(_beside(x_BCD, context_BCD), state)
            found.append(state)
            x_BCD = state[0]
        return self._read_out(x_BCD, context_BCD), tuple(found)


def _beside(x_BLD, context_BLD):
    if context_BLD is None:
        return x_BLD
    return jnp.concatenate([x_BLD, context_BLD], axis=-1)


def _start(model: "Recurrent", source_BS, used: int):
    """Memory and final states of the source cut to ``used``, the memory padded."""
    source_BU = source_BS[:, :used]
    memory = model.encode(source_BU)
    whole = model.whole_source(source_BU, None)
    states = tuple(whole.read(layer) for layer in memory.states)
    attended, added = model.decoder.start(memory.x_BSD), source_BS.shape[1] - used
    if attended is not None:
        attended = attended._replace(
            keys_BMK=widths.longer(attended.keys_BMK, 1, added),
            memory_BMD=widths.longer(attended.memory_BMD, 1, added),
        )
    return attended, states


class Recurrent(FixedCacheModel):
    """A ``TranslationModel`` of LSTM or GRU layers.

    Its cache has the memory, if it attends to it, and the layers' states.
    """

    def setup(self):
        self.embeddings = self.new_embeddings()
        self.encoder = Encoder(self.config)
        self.decoder = Decoder(self.config)

    def encode(
        self, source_BS, noise: Noise | None = None, packed: bool = False
    ) -> Memory:
        """Outputs and states of the encoder; padding moves no state that is read."""
        x_BSD = self._input_dropout(self._embed(source_BS, "source"), noise, "source")
        first_BS, last_BS = self._borders(source_BS, packed)
        begins = {
            FORWARD: Begin(~first_BS if packed else None),
            BACKWARD: Begin(~last_BS),
        }
        ways = {way: begins[way] for way in directions(self.config)}
        return self.encoder(x_BSD, ways, noise)

    def _borders(self, source_BS, packed: bool):
        """Which positions are the first, and the last, of a sequence."""
        last_BS = ends(source_BS, self.pad_id, self.eos_id, packed)
        if packed:
            return starts(source_BS, self.eos_id), last_BS
        first_BS = jnp.zeros_like(last_BS).at[:, 0].set(True)
        return first_BS, last_BS

    def whole_source(self, source_BS, target_BT) -> Ends:
        """Where the source of each target position, if packed, begins and ends."""
        borders = self._borders(source_BS, target_BT is not None)
        if target_BT is None:
            found = [x_BS.argmax(axis=1)[:, None] for x_BS in borders]
            return Ends(*found)
        queries, keys = (self._places(x, True) for x in (target_BT, source_BS))
        same_BTS = same_sequence(queries, keys)[:, 0]
        found = [(same_BTS & x_BS[:, None]).argmax(axis=2) for x_BS in borders]
        return Ends(*found)

    def decode(
        self,
        memory: Memory,
        source_BS,
        target_BT,
        noise: Noise | None = None,
        packed: bool = False,
    ):
        """The decoder's last hidden states [B, T, D] under teacher forcing."""
        x_BTD = self._embed(self.shift_right(target_BT, packed), "target")
        x_BTD = self._input_dropout(x_BTD, noise, "target")
        read = self.whole_source(source_BS, target_BT if packed else None).read
        mask_B1TS, keep_BT = padding_mask(source_BS, self.pad_id), None
        if packed:
            mask_B1TS, keep_BT = self._packed_masks(mask_B1TS, source_BS, target_BT)
        begins = [Begin(keep_BT, read(layer)) for layer in memory.states]
        return self.decoder(x_BTD, memory.x_BSD, mask_B1TS, begins, noise)

    def _packed_masks(self, mask_B11S, source_BS, target_BT):
        queries, keys = (self._places(x, True) for x in (target_BT, source_BS))
        mask_B1TS = mask_B11S & same_sequence(queries, keys)
        return mask_B1TS, ~starts(target_BT, self.eos_id)

    def start_cache(
        self, source_BS, candidates: int, length: int, fitted: bool = False
    ) -> FixedCache:
        """Encodes; of one candidate if ``fitted``, as ``TranslationModel`` says."""
        attended, states = widths.in_fitting_width(
            _start, self, source_BS, self.pad_id, fitted
        )
        count = 1 if fitted else candidates
        states = jax.tree.map(lambda x_B1U: jnp.repeat(x_B1U, count, axis=1), states)
        return FixedCache((attended, padding_mask(source_BS, self.pad_id)), states)

    def step(self, cache: FixedCache, tokens_BC, position) -> Any:
        """Logits [B, C, V] of what follows ``tokens_BC``, wherever that is."""
        attended, mask_B11S = cache.memory
        states = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (*tokens_BC.shape, x.shape[-1])), cache.states
        )
        x_BCD = self._embed(tokens_BC, "target")
        x_BCD, states = self.decoder.step(x_BCD, states, attended, mask_B11S)
        return self.logits(x_BCD), cache._replace(states=states)
