"""Beam search over a step function (section 6.1).

At every position the continuations of all live candidates are ranked together.
An end of sentence among the best ``beam_size`` finishes its hypothesis; the
best ``beam_size`` others live on. Finished hypotheses are kept by score,
log-probability divided by the length penalty. A sentence is done when no live
candidate can overtake what is to be returned, or at its own cap.

A beam of one is greedy search: it ends at the first end of sentence.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from transformer_ablation.decode.length_penalty import (
    best_reachable_score,
    length_penalty,
)
from transformer_ablation.vocabulary import BOS, EOS, PAD, UNK

# Below every log-probability, and still finite when divided or summed.
NEVER = -1e30
# What a decoder may not write: it is not part of any text.
FORBIDDEN = (PAD, UNK, BOS)
_GROUP = 32
_FIRST_ROOM = 16

StepFunction = Callable[[Any, jax.Array, jax.Array], tuple[jax.Array, Any]]
GrowFunction = Callable[[Any, int], Any]


class BeamSettings(NamedTuple):
    """What the compiled search depends on."""

    beam_size: int
    alpha: float
    max_length: int
    n_best: int = 1
    penalty: str = "wu2016"


class Hypotheses(NamedTuple):
    """The best ``n_best`` outputs a sentence, best first.

    ``tokens`` [B, n, max_length] end in the end of sentence and then PAD;
    ``unfinished`` marks those that were cut at the cap without one. A place
    without a hypothesis has score -1e30 and no token.
    """

    tokens: jax.Array
    scores: jax.Array
    log_probabilities: jax.Array
    unfinished: jax.Array


class _Done(NamedTuple):
    """Finished hypotheses, [B, C] or [B, C, T]."""

    tokens: jax.Array
    scores: jax.Array
    log_probabilities: jax.Array
    cut: jax.Array


class _State(NamedTuple):
    position: jax.Array
    tokens_BCT: jax.Array
    log_BC: jax.Array
    last_BC: jax.Array
    done: _Done
    cache: Any


def beam_search(
    step: StepFunction,
    cache: Any,
    reorder: Callable[[Any, jax.Array], Any],
    cap_B: jax.Array,
    settings: BeamSettings,
    grow: GrowFunction | None = None,
    sizes: tuple[int, ...] | None = None,
) -> Hypotheses:
    """Searches all sentences of a batch together.

    Args:
      step: (cache, tokens [B, C], position) -> (logits [B, C, V], cache).
      cache: the state of the step function before the first token.
      reorder: (cache, parents [B, C]) -> the cache in which candidate c is what
        ``parents[b, c]`` was.
      cap_B: how many tokens, the end of sentence included, sentence b may have;
        at most ``settings.max_length``. 0 for a padded row, which is done at
        once and returns nothing.
      grow: (cache, positions) -> the cache with room for so many positions. Given
        it, steps cost less and more is compiled: the first step has one candidate a
        sentence, and ``cache``, which has room for ``sizes[0]``, is made larger as
        sentences need it, so no step reads much that is empty.
      sizes: the positions that ``grow`` makes room for, one after the other, up to
        ``settings.max_length``; ``rooms`` of it by default.
    """

    def body(state: _State) -> _State:
        logits_BCV, cache = step(state.cache, state.last_BC, state.position)
        state = _advance(state._replace(cache=cache), logits_BCV, reorder, settings)
        state = _cut_at_cap(state, cap_B, settings)
        return _close_decided(state, cap_B, settings)

    def search(state: _State, rooms: tuple[int, ...]) -> _Done:
        """Position after position while they fit, then on with a larger cache."""

        def cond(state: _State) -> jax.Array:
            return _any_lives(state) & (state.position < rooms[0])

        def larger(state: _State) -> _Done:
            cache = grow(state.cache, rooms[1])  # type: ignore[misc]
            return search(state._replace(cache=cache), rooms[1:])

        state = lax.while_loop(cond, body, state)
        if len(rooms) == 1:
            return state.done
        return lax.cond(_any_lives(state), larger, lambda state: state.done, state)

    if grow is None:
        state = _start(cache, cap_B, settings, settings.beam_size)
        done = search(state, (settings.max_length,))
    else:
        state = _start(cache, cap_B, settings, 1)
        done = search(body(state), sizes or rooms(settings.max_length))
    return Hypotheses(*(x[:, : settings.n_best] for x in done))


def rooms(max_length: int) -> tuple[int, ...]:
    """The positions a cache has room for, one after the other, up to ``max_length``.

    Each is at least a third larger than the one before, as each is compiled.
    """
    doubled = (_FIRST_ROOM << power for power in range(max_length.bit_length()))
    return (*(room for room in doubled if 4 * room <= 3 * max_length), max_length)


def _any_lives(state: _State) -> jax.Array:
    return jnp.any(state.log_BC[:, 0] > NEVER / 2)


def _start(
    cache: Any, cap_B: jax.Array, settings: BeamSettings, candidates: int
) -> _State:
    """One live candidate a sentence; the other places are empty."""
    shape = (cap_B.shape[0], settings.beam_size)
    never_BC = jnp.full(shape, NEVER, jnp.float32)
    tokens_BCT = jnp.full((*shape, settings.max_length), PAD, jnp.int32)
    return _State(
        position=jnp.zeros((), jnp.int32),
        tokens_BCT=tokens_BCT[:, :candidates],
        log_BC=never_BC.at[:, 0].set(jnp.where(cap_B > 0, 0.0, NEVER))[:, :candidates],
        last_BC=jnp.full(shape, BOS, jnp.int32)[:, :candidates],
        done=_Done(tokens_BCT, never_BC, never_BC, jnp.zeros(shape, bool)),
        cache=cache,
    )


def _advance(
    state: _State, logits_BCV: jax.Array, reorder: Callable, settings: BeamSettings
) -> _State:
    """One token further: some hypotheses finish, the best others live on."""
    beam = settings.beam_size
    log_BK, parent_BK, token_BK = _best_continuations(
        logits_BCV, state.log_BC, 2 * beam
    )
    length = state.position + 1
    ends_BK = token_BK == EOS
    tokens_BKT = _gather(state.tokens_BCT, parent_BK)
    tokens_BKT = tokens_BKT.at[:, :, state.position].set(token_BK)

    first = slice(0, beam)
    ended_BC = jnp.where(ends_BK[:, first], log_BK[:, first], NEVER)
    done = _merge(
        state.done, tokens_BKT[:, first], ended_BC, length, settings, cut=False
    )

    log_BC, place_BC = lax.top_k(jnp.where(ends_BK, NEVER, log_BK), beam)
    return _State(
        position=length,
        tokens_BCT=_gather(tokens_BKT, place_BC),
        log_BC=jnp.maximum(log_BC, NEVER),
        last_BC=_gather(token_BK, place_BC),
        done=done,
        cache=reorder(state.cache, _gather(parent_BK, place_BC)),
    )


def _best_continuations(logits_BCV: jax.Array, log_BC: jax.Array, count: int):
    """The best ``count`` of all C*V continuations: log p, parent, token.

    ``log_BC`` are the log-probabilities of the candidates so far. The best of each
    candidate are found first, so only they are normalised and sorted together.
    Places beyond the C*V have log p NEVER.
    """
    batch, candidates, size = logits_BCV.shape
    logits_BCV = logits_BCV.astype(jnp.float32)
    logit_BCK, token_BCK = top_k(logits_BCV, min(count, size), FORBIDDEN)
    normaliser_BC1 = jax.nn.logsumexp(logits_BCV, axis=-1, keepdims=True)
    best_BCK = log_BC[..., None] + jnp.maximum(logit_BCK - normaliser_BC1, NEVER)
    flat = (batch, candidates * best_BCK.shape[-1])
    log_BK, index_BK = lax.top_k(best_BCK.reshape(flat), min(count, flat[1]))
    token_BK = _gather(token_BCK.reshape(flat), index_BK).astype(jnp.int32)
    parent_BK = index_BK // best_BCK.shape[-1]
    lacking = [(0, 0), (0, count - log_BK.shape[1])]
    log_BK = jnp.pad(log_BK, lacking, constant_values=NEVER)
    return log_BK, jnp.pad(parent_BK, lacking), jnp.pad(token_BK, lacking)


def top_k(x_BCV: jax.Array, count: int, hidden: tuple[int, ...] = ()):
    """``lax.top_k`` with ``hidden`` places as low as NEVER; a long axis in two steps.

    The best ``count`` stand in those ``count`` groups that have the largest maxima;
    of equal numbers the first come first, so groups keep their order. No step makes
    a copy of a long axis to hide a few of its places.
    """
    *shape, size = x_BCV.shape
    groups = -(-size // _GROUP)
    if groups <= 2 * count:
        return lax.top_k(_hide(x_BCV, np.arange(size), hidden), count)
    added = [(0, 0)] * len(shape) + [(0, groups * _GROUP - size)]
    x_BCGN = jnp.pad(x_BCV, added, constant_values=-jnp.inf)
    x_BCGN = x_BCGN.reshape(*shape, groups, _GROUP)
    maxima_BCG = x_BCGN.max(axis=-1)
    for group in {place // _GROUP for place in hidden}:
        places_N = group * _GROUP + np.arange(_GROUP)
        highest_BC = _hide(x_BCGN[..., group, :], places_N, hidden).max(axis=-1)
        maxima_BCG = maxima_BCG.at[..., group].set(highest_BC)
    _, group_BCK = lax.top_k(maxima_BCG, count)
    group_BCK1 = jnp.sort(group_BCK, axis=-1)[..., None]
    few_BCKN = jnp.take_along_axis(x_BCGN, group_BCK1, axis=-2)
    index_BCKN = group_BCK1 * _GROUP + jnp.arange(_GROUP).reshape(
        (1,) * (len(shape) + 1) + (_GROUP,)
    )
    few_BCKN = _hide(few_BCKN, index_BCKN, hidden)
    best_BCK, place_BCK = lax.top_k(few_BCKN.reshape(*shape, -1), count)
    return best_BCK, jnp.take_along_axis(
        index_BCKN.reshape(*shape, -1), place_BCK, axis=-1
    )


def _hide(x: jax.Array, places: Any, hidden: tuple[int, ...]) -> jax.Array:
    """``x`` with NEVER where its place, counted along the last axis, is hidden."""
    if not hidden:
        return x
    places = jnp.asarray(places).reshape((1,) * (x.ndim - places.ndim) + places.shape)
    return jnp.where(jnp.isin(places, jnp.asarray(hidden)), NEVER, x)


def _merge(
    done: _Done,
    tokens_BCT: jax.Array,
    log_BC: jax.Array,
    length: jax.Array,
    settings: BeamSettings,
    *,
    cut: bool,
) -> _Done:
    """The best finished hypotheses, old and new; cut ones rank below the others.

    Cut ones arrive once a sentence, equally long and in order of probability,
    so their order among themselves is the order in which they come.
    """
    penalty = length_penalty(length, settings.alpha, settings.penalty)
    score_BC = jnp.where(log_BC > NEVER / 2, log_BC / penalty, 0)
    score_BC = jnp.where(log_BC > NEVER / 2, score_BC, NEVER)
    new = _Done(tokens_BCT, score_BC, log_BC, jnp.full(log_BC.shape, cut))
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), done, new)
    possible = both.scores > NEVER / 2
    rank = jnp.where(both.cut & possible, NEVER / 2, both.scores)
    _, best_BC = lax.top_k(rank, log_BC.shape[1])
    return jax.tree.map(lambda x: _gather(x, best_BC), both)


def _cut_at_cap(state: _State, cap_B: jax.Array, settings: BeamSettings) -> _State:
    """Sentences at their cap: what lives is cut, and nothing lives on."""
    at_cap_B1 = (state.position >= cap_B)[:, None]
    cut_BC = jnp.where(at_cap_B1, state.log_BC, NEVER)
    done = _merge(
        state.done, state.tokens_BCT, cut_BC, state.position, settings, cut=True
    )
    return state._replace(done=done, log_BC=jnp.where(at_cap_B1, NEVER, state.log_BC))


def _close_decided(state: _State, cap_B: jax.Array, settings: BeamSettings) -> _State:
    """Nothing lives on in a decided sentence, however long the others take."""
    open_B1 = _can_improve(state, cap_B, settings)[:, None]
    return state._replace(log_BC=jnp.where(open_B1, state.log_BC, NEVER))


def _can_improve(state: _State, cap_B: jax.Array, settings: BeamSettings) -> jax.Array:
    """Sentences whose returned hypotheses a live candidate may still overtake."""
    best_live_B = state.log_BC[:, 0]
    lives_B = best_live_B > NEVER / 2
    worst_B = state.done.scores[:, settings.n_best - 1]
    if settings.beam_size == 1:
        return lives_B & (worst_B <= NEVER / 2)
    bound_B = best_reachable_score(
        jnp.where(lives_B, best_live_B, 0.0),
        state.position + 1,
        cap_B,
        settings.alpha,
        settings.penalty,
    )
    return lives_B & (bound_B > worst_B)


def _gather(x_BC: jax.Array, index_BK: jax.Array) -> jax.Array:
    """x[b, index[b, k]] for arrays with any further axes."""
    shape = index_BK.shape + (1,) * (x_BC.ndim - 2)
    return jnp.take_along_axis(x_BC, index_BK.reshape(shape), axis=1)
