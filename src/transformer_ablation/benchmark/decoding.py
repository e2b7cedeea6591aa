"""Beam search and scoring at a given length, as an untrained model cannot end itself.

A search ends when its hypotheses do, and those of random parameters end anywhere. So
the end of sentence is forbidden here, and every sentence is cut at a length that is
asked for: its reference's, say. Each position costs what it costs in training's end.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from transformer_ablation import parallel
from transformer_ablation.config import DecodeConfig
from transformer_ablation.data.batches import EvaluationBatch
from transformer_ablation.data.ragged import TokenizedSplit
from transformer_ablation.decode.beam import NEVER
from transformer_ablation.evaluate.perplexity import batches, longest_input
from transformer_ablation.evaluate.translation import make_search, search_settings
from transformer_ablation.vocabulary import EOS, PAD


def some_sentences(split: TokenizedSplit, count: int) -> TokenizedSplit:
    """At most ``count`` pairs, drawn evenly from the whole split."""
    chosen = np.linspace(0, len(split) - 1, min(count, len(split)))
    return split.take(np.unique(chosen.round().astype(np.int64)))


def decode_batches(
    model: Any, config: DecodeConfig, split: TokenizedSplit
) -> list[EvaluationBatch]:
    """Pairs by length, in batches and shapes as translation has them."""
    longest = longest_input(model, config.extra_length)
    return batches(split, config.sentences_per_batch, longest)


def reference_lengths(batch: EvaluationBatch, config: DecodeConfig) -> np.ndarray:
    """Target tokens of each row, no more than the search allows; 0 for empty rows."""
    lengths_B = (batch.target != PAD).sum(axis=1)
    allowed_B = (batch.source != PAD).sum(axis=1) + config.extra_length
    return np.minimum(lengths_B, allowed_B).astype(np.int32)


class Search:
    """The compiled search of a config; ``max_length`` is as translation has it.

    ``fitted`` is that of ``make_search``.
    """

    def __init__(self, model: Any, config: DecodeConfig, *, fitted: bool = True):
        self._model, self._config, self._fitted = model, config, fitted
        self._compiled: dict[int, Callable] = {}

    def __call__(self, params: Any, source_BS: np.ndarray, cap_B: np.ndarray) -> Any:
        """Hypotheses of exactly ``cap_B`` tokens, on the host when it returns.

        Raises:
          ValueError: if a length is more than the source's padded one and
            ``extra_length`` together.
        """
        length = source_BS.shape[1] + self._config.extra_length
        if cap_B.max() > length:
            raise ValueError(f"{cap_B.max()} tokens do not fit into {length}")
        if length not in self._compiled:
            settings = search_settings(self._config, length)
            endless_11V = np.zeros((1, 1, self._model.vocabulary_size), np.float32)
            endless_11V[0, 0, EOS] = NEVER
            search = make_search(
                self._model, settings, endless_11V, fitted=self._fitted
            )
            self._compiled[length] = parallel.map_batch(search)
        return self._compiled[length](params, (source_BS, cap_B))
