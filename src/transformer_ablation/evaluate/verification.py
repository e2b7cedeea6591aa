"""Whether cached decoding says what the whole model says, and the search finds it."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from transformer_ablation.config import DecodeConfig
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.decode.beam import NEVER, BeamSettings
from transformer_ablation.decode.length_penalty import length_penalty
from transformer_ablation.evaluate.perplexity import longest_input
from transformer_ablation.evaluate.translation import make_search
from transformer_ablation.vocabulary import EOS

SENTENCES = 8
LENGTH = 12
CLOSE = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 1e-2}
# The cut vocabulary of the exhaustive search: end of sentence, and some pieces.
PIECES = 3
CAP = 4


class Decoding(NamedTuple):
    """How decoding differs from what the whole model says.

    ``logits``: cached against teacher-forced, the largest difference by their spread;
    ``missed``: sentences whose best hypothesis the beam did not find; ``scores``: the
    largest error of a score. All of ``sentences``, ``positions`` long.
    """

    sentences: int
    positions: int
    logits: float
    missed: int
    scores: float
    allowed: float

    @property
    def equal(self) -> bool:
        """Nothing is missed, and nothing differs by more than is allowed."""
        return max(self.logits, self.scores) <= self.allowed and not self.missed


def compare_decoding(
    model: Any, params: Any, config: DecodeConfig, split: TokenizedSplit
) -> Decoding:
    """Cached against teacher-forced logits, and the beam against all hypotheses.

    The first sentences of ``split``, cut short; the search is over a cut vocabulary,
    so that every hypothesis can be scored by the whole model.
    """
    params = jax.tree.map(jnp.asarray, params)  # numpy cannot be indexed by a tracer
    source_BS, target_BT = _sentences(model, split)
    missed, scores = _search_difference(model, params, config, source_BS)
    return Decoding(
        *target_BT.shape,
        _cached_difference(model, params, source_BS, target_BT),
        missed,
        scores,
        CLOSE[model.config.dtype],
    )


def _sentences(model: Any, split: TokenizedSplit) -> tuple[np.ndarray, np.ndarray]:
    """The first sentences of the split, cut to a common length."""
    rows = range(min(SENTENCES, len(split)))
    length = min(LENGTH, longest_input(model) or LENGTH)

    def cut(side: Ragged) -> np.ndarray:
        padded = np.full((len(rows), length), model.pad_id, np.int32)
        for row, i in zip(padded, rows, strict=True):
            ids = np.append(side[i][:-1][: length - 1], EOS)
            row[: len(ids)] = ids
        return padded

    return cut(split.source), cut(split.target)


def _cached_difference(
    model: Any, params: Any, source_BS: Any, target_BT: Any
) -> float:
    """The largest difference of logits at any real position, by their spread."""
    variables = {"params": params}

    @jax.jit
    def whole(source_BS, target_BT):
        return model.apply(variables, source_BS, target_BT)

    @jax.jit
    def stepwise(source_BS, inputs_TB1):
        length = inputs_TB1.shape[0]
        cache = model.apply(variables, source_BS, 1, length, method="start_cache")

        def body(cache, given):
            tokens_B1, position = given
            logits_B1V, cache = model.apply(
                variables, cache, tokens_B1, position, method="step"
            )
            return cache, logits_B1V[:, 0]

        places_T = jnp.arange(length)
        return jax.lax.scan(body, cache, (inputs_TB1, places_T))[1]

    first_B1 = np.full((len(target_BT), 1), model.bos_id, np.int32)
    inputs_BT = np.concatenate([first_B1, target_BT[:, :-1]], axis=1)
    expected_BTV = np.asarray(whole(source_BS, target_BT))
    found_TBV = np.asarray(stepwise(source_BS, inputs_BT.T[:, :, None]))
    real_BT = target_BT != model.pad_id
    difference = np.abs(np.moveaxis(found_TBV, 0, 1) - expected_BTV)[real_BT].max()
    return float(difference / expected_BTV[real_BT].std())


def _search_difference(
    model: Any, params: Any, config: DecodeConfig, source_BS: Any
) -> tuple[int, float]:
    """Sentences whose best hypothesis is missed, and the largest error of a score."""
    variables = {"params": params}
    allowed = np.array([EOS, *range(EOS + 1, EOS + PIECES)])
    words = [
        (*begun, EOS)
        for count in range(CAP)
        for begun in itertools.product(allowed[1:], repeat=count)
    ]
    alpha, kind = config.length_penalty_alpha, config.length_penalty
    settings = BeamSettings(PIECES ** (CAP - 1), alpha, CAP, penalty=kind)
    hidden_11V = np.full((1, 1, model.vocabulary_size), NEVER, np.float32)
    hidden_11V[..., allowed] = 0

    search = jax.jit(make_search(model, settings, hidden_11V))
    cap_B = np.full(len(source_BS), CAP, np.int32)

    @jax.jit
    def whole(source_BS, target_BT):
        logits_BTV = model.apply(variables, source_BS, target_BT) + hidden_11V
        log_BTV = jax.nn.log_softmax(logits_BTV)
        return jnp.take_along_axis(log_BTV, target_BT[..., None], axis=-1)[..., 0]

    found = jax.device_get(search(params, (source_BS, cap_B)))
    targets_HT = np.full((len(words), CAP), model.pad_id, np.int32)
    for row, hypothesis in zip(targets_HT, words, strict=True):
        row[: len(hypothesis)] = hypothesis
    lengths_H = np.array([len(hypothesis) for hypothesis in words])
    penalties_H = length_penalty(lengths_H.astype(np.float64), alpha, kind)
    wrong, error = 0, 0.0
    for b, source_S in enumerate(source_BS):
        repeated = np.repeat(source_S[None], len(words), axis=0)
        log_HT = np.asarray(whole(repeated, targets_HT), np.float64)
        scores_H = (log_HT * (targets_HT != model.pad_id)).sum(axis=1) / penalties_H
        best = int(scores_H.argmax())
        wrong += found.tokens[b, 0].tolist() != targets_HT[best].tolist()
        error = max(error, abs(float(found.scores[b, 0]) - scores_H[best]))
    return wrong, error
