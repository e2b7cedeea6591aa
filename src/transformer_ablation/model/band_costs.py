"""How much of a row banded attention computes, by arithmetic alone."""

from typing import NamedTuple

from transformer_ablation.config import ModelConfig

# Queries of a block, at least: products of smaller matrices are hardly faster.
SMALLEST_BLOCK = 16


class Extent(NamedTuple):
    """Blocks of ``block`` queries that see ``left`` and ``right`` positions around."""

    block: int
    left: int
    right: int

    @property
    def seen(self) -> int:
        """Keys that each query is multiplied with."""
        return self.left + self.block + self.right


def blocks(window: int, causal: bool) -> Extent:
    """The blocks of a long row of which each position sees ``window``."""
    left, right = window // 2, 0 if causal else (window - 1) // 2
    return Extent(max(left, right, SMALLEST_BLOCK), left, right)


def extent(length: int, window: int, causal: bool) -> Extent:
    """The blocks of a row of ``length`` positions.

    Where they would see as much as the row has, the row is one block.
    """
    found = blocks(window, causal)
    return found if found.seen < length else Extent(length, 0, 0)


def seen(model: ModelConfig, length: float, causal: bool) -> float:
    """Keys that a query of self-attention is multiplied with, in rows of a length."""
    if model.attention_implementation != "banded" or model.attention_window is None:
        return length
    return min(length, blocks(model.attention_window, causal).seen)
