"""Gated convolutions over positions (Dauphin et al. 2017), whole and step by step."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp

from transformer_ablation.model import linear


def shifted(x_BLD, offset: int):
    """At each position what is ``offset`` places to its right; zeros beyond the row."""
    length = x_BLD.shape[1]
    if abs(offset) >= length:
        return jnp.zeros_like(x_BLD)
    before, after = max(0, -offset), max(0, offset)
    kept = x_BLD[:, after : length - before]
    rest = [(0, 0)] * (x_BLD.ndim - 2)
    return jnp.pad(kept, [(0, 0), (before, after), *rest])


def offsets(width: int, dilation: int, causal: bool) -> list[int]:
    """The places that a kernel sees, relative to its own, from left to right.

    A causal kernel ends at its own place; another is centred there, one of even
    width with the extra place on the left.
    """
    first = -(width - 1) if causal else -(width // 2)
    return [(first + i) * dilation for i in range(width)]


class GatedConvolution(nn.Module):
    """A (x) sigmoid(B), where A and B [B, L, D] are convolutions of the input.

    The kernel's ``width`` places are ``dilation`` apart. Without weight normalisation
    the kernel starts so that the output is as spread as the input (Gehring et al.
    2017, section 3.5): normal with variance 4 / (width * D).
    """

    size: int
    width: int
    dilation: int
    causal: bool
    dtype: str

    def setup(self):
        shape = (self.width, self.size, 2 * self.size)
        normal = nn.initializers.normal((4 / (self.width * self.size)) ** 0.5)
        self.kernel = self.param("kernel", normal, shape)
        self.bias = self.param("bias", nn.initializers.zeros_init(), shape[2:])

    @property
    def past(self) -> int:
        """How many positions before it a causal position depends on."""
        return (self.width - 1) * self.dilation

    def __call__(self, x_BLD, sequence_BL: Any = None):
        """[B, L, D]. A position sees those of its own number in ``sequence_BL``."""
        places = []
        for offset in offsets(self.width, self.dilation, self.causal):
            place_BLD = shifted(x_BLD, offset) if offset else x_BLD
            if sequence_BL is not None and offset:
                same_BL = shifted(sequence_BL, offset) == sequence_BL
                place_BLD = jnp.where(same_BL[..., None], place_BLD, 0.0)
            places.append(place_BLD)
        return self._gated(places)

    def step(self, past_BCWD, x_BCD):
        """One position after ``past`` of W others: [B, C, D], and the new past."""
        seen_BCWD = jnp.concatenate([past_BCWD, x_BCD[:, :, None]], axis=2)
        return self._gated(
            [seen_BCWD[:, :, i * self.dilation] for i in range(self.width)]
        ), seen_BCWD[:, :, 1:]

    def _gated(self, places: list):
        """Of what stands at each place of the kernel, [B, L, D] each."""
        x = jnp.concatenate(places, axis=-1).astype(self.dtype)
        kernel_IO = self.kernel.reshape(-1, 2 * self.size)
        x = linear.biased(linear.product(x, kernel_IO), self.bias)
        values, gates = jnp.split(x, 2, axis=-1)
        return values * nn.sigmoid(gates)
