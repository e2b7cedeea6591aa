"""Translations drawn at random from a step function's distribution.

Each piece is drawn from the softmax of logits divided by a temperature, PAD, UNK and
BOS left out; with ``top_k`` from the k most probable pieces alone (Fan et al. 2018).
It is drawn by the Gumbel-max trick: the largest of logit + noise (Maddison et al.
2014). The noise is a function of the draw's key and the position, so a draw does not
depend on what else is in the batch.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from transformer_ablation.decode.beam import (
    FORBIDDEN,
    NEVER,
    Hypotheses,
    StepFunction,
    top_k,
)
from transformer_ablation.decode.length_penalty import length_penalty
from transformer_ablation.vocabulary import BOS, EOS, PAD

# Named, so that a user's choice of JAX's default moves no draw.
_GENERATOR = "threefry2x32"


class SamplingSettings(NamedTuple):
    """What the compiled sampling depends on."""

    draws: int
    alpha: float
    max_length: int
    top_k: int | None = None
    penalty: str = "wu2016"


class _State(NamedTuple):
    position: jax.Array
    tokens_BCT: jax.Array
    log_BC: jax.Array
    last_BC: jax.Array
    lives_BC: jax.Array
    cut_BC: jax.Array
    cache: Any


def sentence_keys(seed: int, numbers_B: np.ndarray) -> np.ndarray:
    """uint32 [B, 2], a key a sentence: of the seed and the sentence's number."""
    key = jax.random.key(seed, impl=_GENERATOR)
    numbers_B = jnp.asarray(numbers_B, jnp.uint32)
    keys_B = jax.vmap(jax.random.fold_in, (None, 0))(key, numbers_B)
    return np.asarray(jax.random.key_data(keys_B))


def sample(
    step: StepFunction,
    cache: Any,
    cap_B: jax.Array,
    keys_B2: jax.Array,
    temperature_B: jax.Array,
    settings: SamplingSettings,
) -> Hypotheses:
    """``settings.draws`` independent draws a sentence, in the order of their numbers.

    Args:
      step: (cache, tokens [B, C], position) -> (logits [B, C, V], cache), as of the
        beam search; no candidate ever follows another.
      cache: the state of the step function before the first token.
      cap_B: as of the beam search.
      keys_B2: what ``sentence_keys`` returns; draw c of a sentence is the same
        however many there are.
      temperature_B: above 0.

    Log-probabilities, and the scores made of them, are the model's: of temperature 1
    and of all pieces.
    """
    key_B = jax.random.wrap_key_data(keys_B2, impl=_GENERATOR)
    fold_each = jax.vmap(jax.random.fold_in, (None, 0))
    key_BC = jax.vmap(fold_each, (0, None))(key_B, jnp.arange(settings.draws))
    fold_all = jax.vmap(jax.vmap(jax.random.fold_in, (0, None)), (0, None))

    def body(state: _State) -> _State:
        logits_BCV, cache = step(state.cache, state.last_BC, state.position)
        token_BC, log_BC = _draw(
            logits_BCV.astype(jnp.float32),
            fold_all(key_BC, state.position),
            temperature_B,
            settings.top_k,
        )
        return _advance(state._replace(cache=cache), token_BC, log_BC, cap_B)

    def cond(state: _State) -> jax.Array:
        return jnp.any(state.lives_BC) & (state.position < settings.max_length)

    state = lax.while_loop(cond, body, _start(cache, cap_B, settings))
    return _hypotheses(state, cap_B, settings)


def _start(cache: Any, cap_B: jax.Array, settings: SamplingSettings) -> _State:
    shape = (cap_B.shape[0], settings.draws)
    return _State(
        position=jnp.zeros((), jnp.int32),
        tokens_BCT=jnp.full((*shape, settings.max_length), PAD, jnp.int32),
        log_BC=jnp.zeros(shape, jnp.float32),
        last_BC=jnp.full(shape, BOS, jnp.int32),
        lives_BC=jnp.broadcast_to(cap_B[:, None] > 0, shape),
        cut_BC=jnp.zeros(shape, bool),
        cache=cache,
    )


def _draw(
    logits_BCV: jax.Array,
    key_BC: jax.Array,
    temperature_B: jax.Array,
    count: int | None,
) -> tuple[jax.Array, jax.Array]:
    """A piece of each candidate [B, C], and its log-probability."""
    size = logits_BCV.shape[-1]
    if count is None:
        allowed_V = ~np.isin(np.arange(size), FORBIDDEN)
        logit_BCK = jnp.where(allowed_V[None, None], logits_BCV, NEVER)
        token_11K = jnp.arange(size, dtype=jnp.int32)[None, None]
        token_BCK = jnp.broadcast_to(token_11K, logit_BCK.shape)
    else:
        logit_BCK, token_BCK = top_k(logits_BCV, min(count, size), FORBIDDEN)
    # From the largest down, so that a low temperature overflows nothing.
    below_BCK = logit_BCK - logit_BCK.max(axis=-1, keepdims=True)
    draw = jax.vmap(jax.vmap(lambda key: jax.random.gumbel(key, logit_BCK.shape[-1:])))
    noisy_BCK = below_BCK / temperature_B[:, None, None] + draw(key_BC)
    place_BC1 = noisy_BCK.argmax(axis=-1)[..., None]
    normaliser_BC = jax.nn.logsumexp(logits_BCV, axis=-1)
    token_BC = jnp.take_along_axis(token_BCK, place_BC1, axis=-1)[..., 0]
    logit_BC = jnp.take_along_axis(logit_BCK, place_BC1, axis=-1)[..., 0]
    return token_BC.astype(jnp.int32), logit_BC - normaliser_BC


def _advance(
    state: _State, token_BC: jax.Array, log_BC: jax.Array, cap_B: jax.Array
) -> _State:
    """One token further for the draws that live."""
    token_BC = jnp.where(state.lives_BC, token_BC, PAD)
    position = state.position + 1
    goes_on_BC = state.lives_BC & (token_BC != EOS)
    at_cap_B1 = (position >= cap_B)[:, None]
    return state._replace(
        position=position,
        tokens_BCT=state.tokens_BCT.at[:, :, state.position].set(token_BC),
        log_BC=state.log_BC + jnp.where(state.lives_BC, log_BC, 0.0),
        last_BC=token_BC,
        lives_BC=goes_on_BC & ~at_cap_B1,
        cut_BC=state.cut_BC | (goes_on_BC & at_cap_B1),
    )


def _hypotheses(
    state: _State, cap_B: jax.Array, settings: SamplingSettings
) -> Hypotheses:
    """As the beam search returns them, but in the order of the draws."""
    length_BC = (state.tokens_BCT != PAD).sum(axis=-1)
    penalty_BC = length_penalty(length_BC, settings.alpha, settings.penalty)
    exists_B1 = (cap_B > 0)[:, None]
    return Hypotheses(
        tokens=state.tokens_BCT,
        scores=jnp.where(exists_B1, state.log_BC / penalty_BC, NEVER),
        log_probabilities=jnp.where(exists_B1, state.log_BC, NEVER),
        unfinished=state.cut_BC,
    )
