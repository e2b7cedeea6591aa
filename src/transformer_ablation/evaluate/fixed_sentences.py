"""What a model in training makes of a few sentences, always the same ones.

All is computed on one device of this process: the others need not take part.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

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

KINDS = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}


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


class Attention(NamedTuple):
    """The weights of one pair under teacher forcing, of real positions alone.

    encoder [N, H, S, S], decoder [N, H, T, T] and cross [N, H, T, S], N the layers;
    None where the model has no such attention. Query position t of the decoder is
    the piece before target t.
    """

    encoder: np.ndarray | None = None
    decoder: np.ndarray | None = None
    cross: np.ndarray | None = None

    def known(self) -> dict[str, np.ndarray]:
        """``{kind: weights}`` of what the model has."""
        return {k: w for k, w in self._asdict().items() if w is not None}


def make_attention(
    model: Any, pairs: TokenizedSplit
) -> Callable[[Any], list[Attention]]:
    """``attention(params)``: the weights of each pair, by a program of its own."""
    source, target = pairs.source, pairs.target
    rows = len(source)
    every = np.arange(rows)
    source_BS = source.padded(every, rows, int(source.lengths.max()))
    target_BT = target.padded(every, rows, int(target.lengths.max()))

    @jax.jit
    def record(params: Any) -> dict[str, jax.Array]:
        given = source_BS, target_BT
        # Logits are not asked for, so they are not computed.
        _, sown = model.apply(
            {"params": params}, *given, method="factors", mutable=["attention"]
        )
        stacks = sown.get("attention", {})
        return {
            kind: stacks[stack][part]["weights"][0]
            for kind, (stack, part) in KINDS.items()
            if part in stacks.get(stack, {})
        }

    def attention(params: Any) -> list[Attention]:
        found = jax.device_get(record(params))
        result = []
        for row, (s, t) in enumerate(zip(source.lengths, target.lengths, strict=True)):
            sizes = {"encoder": (s, s), "decoder": (t, t), "cross": (t, s)}
            parts = {
                kind: weights[:, row, :, : sizes[kind][0], : sizes[kind][1]]
                for kind, weights in found.items()
            }
            result.append(Attention(**parts))
        return result

    return attention


def entropies(weights_NHLM: np.ndarray) -> np.ndarray:
    """The entropy of each query's weights, in nats: [N, H, L]."""
    positive = np.where(weights_NHLM > 0, weights_NHLM, 1.0)
    return -(weights_NHLM * np.log(positive)).sum(axis=-1)
