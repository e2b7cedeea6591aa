"""Rows that hold several sequences, each ending in the end of sentence.

What a row holds can be read off its ids, so a packed batch is ids and nothing else.
A sequence sees itself alone and counts its positions from 0: its hidden states are
those of a row of its own. Padding behind the last sequence is one more sequence.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax


class Places(NamedTuple):
    """Of each position: the number of its sequence, and its position in it."""

    sequence_BL: jnp.ndarray
    position_BL: jnp.ndarray


def places(tokens_BL, eos_id: int) -> Places:
    """Where the sequences of each row are: [B, L] each."""
    first_BL = starts(tokens_BL, eos_id)
    index_BL = jnp.broadcast_to(jnp.arange(tokens_BL.shape[1]), tokens_BL.shape)
    start_BL = lax.cummax(jnp.where(first_BL, index_BL, 0), axis=1)
    return Places(jnp.cumsum(first_BL, axis=1), index_BL - start_BL)


def starts(tokens_BL, eos_id: int):
    """Which positions are the first of a sequence: [B, L]."""
    after_end = tokens_BL[:, :-1] == eos_id
    return jnp.pad(after_end, ((0, 0), (1, 0)), constant_values=True)


def same_sequence(queries: Places, keys: Places):
    """Which positions are of one sequence, of either side: [B, 1, L, M]."""
    same_BLM = queries.sequence_BL[:, :, None] == keys.sequence_BL[:, None, :]
    return same_BLM[:, None]


def ends(tokens_BL, pad_id: int, eos_id: int, packed: bool):
    """Which positions are the last of a sequence: [B, L].

    Without ``packed`` a row is one sequence, which ends where padding follows.
    """
    if packed:
        return tokens_BL == eos_id
    real_BL = tokens_BL != pad_id
    follows_BL = jnp.pad(real_BL[:, 1:], ((0, 0), (0, 1)))
    return real_BL & ~follows_BL
