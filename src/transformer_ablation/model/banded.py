"""Restricted self-attention (section 4) at a cost of r a position, and not of n.

A row is cut into blocks of queries, and a block is multiplied with its own keys and
those of its neighbours that the window reaches: n blocks of so many keys, in place of
one product of n x n. Blocks are rows of a larger batch, so what attends is the same
code as elsewhere.

N is the number of a row's blocks, C = B * N of those of a batch, I the queries of a
block and J the keys that it sees.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from transformer_ablation.model.band_costs import Extent, extent
from transformer_ablation.model.neighbourhood import neighbourhood_mask
from transformer_ablation.model.packed import Places, same_sequence


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["real_BL", "places"],
    meta_fields=["window", "causal"],
)
@dataclasses.dataclass(frozen=True)
class Band:
    """Who sees whom in self-attention, without a mask of all pairs.

    A position sees the real ones (``real_BL``) of its own sequence, if ``places`` says
    that a row has several, and of its neighbourhood, as ``neighbourhood_mask`` has it.
    """

    real_BL: Any
    places: Places | None
    window: int | None
    causal: bool

    @property
    def extent(self) -> Extent:
        """How a row is cut."""
        return extent(self.real_BL.shape[1], self.window, self.causal)

    def _cut(self, x_BLHK: Any) -> Any:
        """[B, N, I, ...], with zeros behind the row where its last block has more."""
        block, (batch, length) = self.extent.block, x_BLHK.shape[:2]
        x_BLHK = _longer(x_BLHK, 0, -length % block)
        return x_BLHK.reshape(batch, -1, block, *x_BLHK.shape[2:])

    def queries(self, x_BLHK: Any) -> Any:
        """A row's blocks: [C, I, ...]."""
        return _joined(self._cut(x_BLHK))

    def keys(self, x_BLHK: Any) -> Any:
        """What each block sees, zeros (or False) beyond the row: [C, J, ...]."""
        block, left, right = self.extent
        x_BNIHK = self._cut(x_BLHK)
        before = _longer(x_BNIHK[:, :-1, block - left :], 1, 0)
        after = _longer(x_BNIHK[:, 1:, :right], 0, 1)
        return _joined(jnp.concatenate([before, x_BNIHK, after], axis=2))

    def rows(self, x_CIHU: Any) -> Any:
        """Blocks as rows again: [B, L, ...]."""
        batch, length = self.real_BL.shape
        x_BMHU = x_CIHU.reshape(batch, -1, *x_CIHU.shape[2:])
        return x_BMHU[:, :length]

    def mask(self) -> Any:
        """Which keys a block's queries may attend to: [C, 1, I, J]."""
        block, left, _ = self.extent
        near_11JJ = neighbourhood_mask(self.extent.seen, self.window, self.causal)
        mask_C1IJ = near_11JJ[:, :, left : left + block]
        mask_C1IJ = mask_C1IJ & self.keys(self.real_BL)[:, None, None]
        if self.places is not None:
            own, seen = (
                jax.tree.map(of_block, self.places)
                for of_block in (self.queries, self.keys)
            )
            mask_C1IJ &= same_sequence(own, seen)
        return mask_C1IJ

    def whole(self) -> Any:
        """The mask of all pairs: [B, 1, L, L]."""
        length = self.real_BL.shape[1]
        mask_B1LL = neighbourhood_mask(length, self.window, self.causal)
        mask_B1LL = mask_B1LL & self.real_BL[:, None, None]
        if self.places is not None:
            mask_B1LL &= same_sequence(self.places, self.places)
        return mask_B1LL


def _longer(x_BL: Any, before: int, after: int) -> Any:
    """``x`` with so many zeros (or False) added along its second axis."""
    added = [(before, after) if axis == 1 else (0, 0) for axis in range(x_BL.ndim)]
    return jnp.pad(x_BL, added)


def _joined(x_BNIHK: Any) -> Any:
    return x_BNIHK.reshape(-1, *x_BNIHK.shape[2:])
