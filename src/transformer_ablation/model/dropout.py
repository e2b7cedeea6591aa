"""Dropout whose mask is a function of two words and of the place in the batch.

The mask of an element is a hash of (words, global row, place in the row), so it
does not matter which device, or which accumulation step, holds the row: one
update is one update whatever the hardware. It costs a few integer operations
an element, is made inside the fused loop that uses it, and is made again in
the backward pass instead of being kept.
"""

import zlib
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
    the first row at hand, ``words`` two random uint32 of the update.
    """

    dropout_rate: Any = None
    attention_rate: Any = None
    activation_rate: Any = None
    first_row: Any = 0
    words: Any = None

    def of_layer(self, number: Any) -> "Noise":
        """The noise of one layer of a stack; ``number`` may be traced."""
        return self._replace(words=mixed(self.words, number))

    def drop(self, x: jax.Array, rate: Any, path: tuple[str, ...]) -> jax.Array:
        """``dropout`` of ``x`` at the place of the module tree that ``path`` names.

        Every place has words of its own: a hash is far cheaper, to run and to
        compile, than folding the path into a key of JAX would be.
        """
        place = zlib.crc32("/".join(path).encode())
        return dropout(x, rate, mixed(self.words, place), self.first_row)


def dropped(x: jax.Array, noise: Noise | None, path: tuple[str, ...]) -> jax.Array:
    """``x`` with dropout at ``dropout_rate``, if there is noise that has it."""
    if noise is None or noise.dropout_rate is None:
        return x
    return noise.drop(x, noise.dropout_rate, path)


def mixed(words: jax.Array, number: Any) -> jax.Array:
    """Two words that differ in about every other bit for another number."""
    number = jnp.asarray(number, jnp.uint32)
    x = words ^ (number * jnp.array([0x9E3779B1, 0xC2B2AE3D], jnp.uint32))
    for multiplier, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13), (0x27D4EB2F, 15)):
        x = (x ^ (x >> shift)) * jnp.uint32(multiplier) + x[::-1]
    return x ^ (x >> 16)


def random_bits(words: jax.Array, first_row: Any, shape: tuple[int, ...]) -> jax.Array:
    """Uniform uint32 of ``shape``; row i depends on ``first_row + i`` alone.

    A counter is mixed with the two words by the finaliser of MurmurHash3
    (Appleby, public domain), the second word in mid-way.
    """
    row_size = int(np.prod(shape[1:], dtype=np.int64))
    index = lax.iota(jnp.uint32, shape[0] * row_size).reshape(shape)
    x = index + (jnp.uint32(first_row) * jnp.uint32(row_size) + words[0])
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = x ^ words[1]
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    return x ^ (x >> 15)


def _masked(x: jax.Array, rate: Any, words: jax.Array, first_row: Any) -> jax.Array:
    rate = jnp.asarray(rate, jnp.float32)
    # rate < 1, so the threshold fits; the comparison is exact to 2**-24.
    threshold = (rate * np.float32(2**32)).astype(jnp.uint32)
    keep = random_bits(words, first_row, x.shape) >= threshold
    # In single precision: 1 / 0.9 is 0.16% too small as a bfloat16, for every number.
    wide = jnp.promote_types(x.dtype, jnp.float32)
    scaled = x.astype(wide) * (1.0 / (1.0 - rate))
    return jnp.where(keep, scaled, 0.0).astype(x.dtype)


@jax.custom_vjp
def _dropout(x: jax.Array, rate: Any, words: jax.Array, first_row: Any) -> jax.Array:
    return _masked(x, rate, words, first_row)


def _forward(x, rate, words, first_row):
    return _masked(x, rate, words, first_row), (rate, words, first_row)


def _backward(residuals, gradient):
    return _masked(gradient, *residuals), None, None, None


_dropout.defvjp(_forward, _backward)


def dropout(x: jax.Array, rate: Any, words: jax.Array, first_row: Any = 0) -> jax.Array:
    """``x`` with elements zeroed at ``rate`` and the others scaled by 1/(1-rate).

    The leading axis of ``x`` is the batch row; ``words`` are two random uint32,
    one mask for each pair. ``rate`` may be traced and gets
    no gradient. At rate 0 the result is ``x`` exactly.
    """
    return _dropout(x, rate, words, first_row)
