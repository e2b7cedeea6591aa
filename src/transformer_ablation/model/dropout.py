"""Dropout whose mask is a function of the key and of the place in the batch.

The mask of an element is a hash of (key, global row, place in the row), so it
does not matter which device, or which accumulation step, holds the row: one
update is one update whatever the hardware. It costs a few integer operations
an element, is made inside the fused loop that uses it, and is made again in
the backward pass instead of being kept.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Noise(NamedTuple):
    """What makes a forward pass a training pass; without it nothing is dropped.

    Rates are arguments of the compiled step, not constants in it, so rows that
    differ only in their rates share one program. A rate of None leaves the
    place out of the program altogether. ``first_row`` is the global number of
    the first row at hand.
    """

    dropout_rate: Any = None
    attention_rate: Any = None
    activation_rate: Any = None
    first_row: Any = 0


def random_bits(key: jax.Array, first_row: Any, shape: tuple[int, ...]) -> jax.Array:
    """Uniform uint32 of ``shape``; row i depends on ``first_row + i`` alone.

    A counter is mixed with the two words of the key by the finaliser of
    MurmurHash3 (Appleby, public domain), the second word in mid-way.
    """
    word0, word1 = jax.random.bits(key, (2,), jnp.uint32)
    row_size = int(np.prod(shape[1:], dtype=np.int64))
    index = lax.iota(jnp.uint32, shape[0] * row_size).reshape(shape)
    x = index + (jnp.uint32(first_row) * jnp.uint32(row_size) + word0)
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = x ^ word1
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    return x ^ (x >> 15)


def _masked(x: jax.Array, rate: Any, key: jax.Array, first_row: Any) -> jax.Array:
    rate = jnp.asarray(rate, jnp.float32)
    # rate < 1, so the threshold fits; the comparison is exact to 2**-24.
    threshold = (rate * np.float32(2**32)).astype(jnp.uint32)
    keep = random_bits(key, first_row, x.shape) >= threshold
    scaled = x * (1.0 / (1.0 - rate)).astype(x.dtype)
    return jnp.where(keep, scaled, jnp.zeros_like(x))


@jax.custom_vjp
def _dropout(x: jax.Array, rate: Any, key: jax.Array, first_row: Any) -> jax.Array:
    return _masked(x, rate, key, first_row)


def _forward(x, rate, key, first_row):
    return _masked(x, rate, key, first_row), (rate, key, first_row)


def _backward(residuals, gradient):
    return _masked(gradient, *residuals), None, None, None


_dropout.defvjp(_forward, _backward)


def dropout(x: jax.Array, rate: Any, key: jax.Array, first_row: Any = 0) -> jax.Array:
    """``x`` with elements zeroed at ``rate`` and the others scaled by 1/(1-rate).

    The leading axis of ``x`` is the batch row. ``rate`` may be traced and gets
    no gradient. At rate 0 the result is ``x`` exactly.
    """
    return _dropout(x, rate, key, first_row)
