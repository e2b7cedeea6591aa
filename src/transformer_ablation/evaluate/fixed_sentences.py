"""What a model in training makes of a few sentences, always the same ones.

All is computed on one device of this process: the others need not take part.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from transformer_ablation.config import DecodeConfig
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate.translation import (
    Translation,
    make_search,
    read_best,
    search_settings,
)


def short_enough(split: TokenizedSplit, longest: int) -> np.ndarray:
    """Numbers of the pairs of at most ``longest`` ids a side, else of the shortest."""
    lengths = np.maximum(split.source.lengths, split.target.lengths)
    return np.flatnonzero(lengths <= max(longest, lengths.min()))


def make_greedy(
    model: Any, config: DecodeConfig, sources: Ragged
) -> Callable[[Any], list[Translation]]:
    """``translate(params)``: the greedy translation of each source, in order.

    It compiles once. The length cap is that of the config's beam search.
    """
    config = dataclasses.replace(config, beam_size=1)
    rows, width = len(sources), int(sources.lengths.max())
    source_BS = sources.padded(np.arange(rows), rows, width)
    cap_B = (sources.lengths + config.extra_length).astype(np.int32)
    settings = search_settings(config, width + config.extra_length)
    search = jax.jit(make_search(model, settings, fitted=False))

    def translate(params: Any) -> list[Translation]:
        found = jax.device_get(search(params, (source_BS, cap_B)))
        return [read_best(found, row, int(cap_B[row])) for row in range(rows)]

    return translate
