"""Perplexity per target piece: unsmoothed, without padding, every sentence once."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from transformer_ablation import parallel
from transformer_ablation.data.batches import EvaluationBatch, evaluation_batches
from transformer_ablation.data.ragged import TokenizedSplit


class Perplexity(NamedTuple):
    """``value`` is exp(nll / target_tokens); the end of sentence is a token."""

    value: float
    nll: float
    target_tokens: int
    sentences: int


class Scorer(NamedTuple):
    """``score(params, (source, target)) -> nll [B], tokens [B]`` over all devices.

    Sequences are padded to at most ``longest``.
    """

    score: Callable
    longest: int | None


def make_scorer(model: Any) -> Scorer:
    """The compiled scores of a model; every shape compiles once.

    The negative log-likelihood of every whole target sentence, and its length.
    """

    def score(params: Any, batch: Any) -> tuple[jax.Array, jax.Array]:
        nll_BT, real_BT = _token_nll(model, params, batch)
        return nll_BT.sum(axis=1), real_BT.sum(axis=1)

    mapped = parallel.map_batch(score)
    return Scorer(mapped, longest_input(model))


def make_token_scorer(model: Any) -> Scorer:
    """As ``make_scorer``, but ``score`` gives nll [B, T], and 0 for padding."""

    def score(params: Any, batch: Any) -> jax.Array:
        return _token_nll(model, params, batch)[0]

    return Scorer(parallel.map_batch(score), longest_input(model))


def _token_nll(model: Any, params: Any, batch: Any) -> tuple[jax.Array, jax.Array]:
    """The negative log-likelihood of each target token, and which are real."""
    source_BS, target_BT = batch
    logits_BTV = model.apply({"params": params}, source_BS, target_BT)
    gold_BT = jnp.take_along_axis(logits_BTV, target_BT[..., None], axis=-1)
    nll_BT = jax.nn.logsumexp(logits_BTV, axis=-1) - gold_BT[..., 0]
    real_BT = target_BT != model.pad_id
    return jnp.where(real_BT, nll_BT, 0.0), real_BT


def longest_input(model: Any, extra: int = 0) -> int | None:
    """How long a padded sequence may be with ``extra`` positions to come."""
    if model.config.positions != "learned":
        return None
    return model.config.max_length - extra


def sentence_scores(
    scorer: Scorer,
    params: Any,
    split: TokenizedSplit,
    rows: int,
    before: Callable[[], None] = lambda: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Negative log-likelihood and token count of each sentence, in corpus order.

    ``rows`` sentences are scored together, fewer where they are very long; a
    multiple of the devices is used. ``before`` is called before each batch; what it
    raises ends the scoring.
    """
    nll = np.full(len(split), np.nan)
    tokens = np.zeros(len(split), np.int64)
    for batch in batches(split, rows, scorer.longest):
        before()
        found_nll, found_tokens = scorer.score(params, (batch.source, batch.target))
        count = len(batch.indices)
        nll[batch.indices] = found_nll[:count]
        tokens[batch.indices] = found_tokens[:count]
    return nll, tokens


def token_scores(
    scorer: Scorer, params: Any, split: TokenizedSplit, rows: int
) -> list[np.ndarray]:
    """float32 [T] a pair: the log-probability of each target id, in order.

    ``scorer`` is one of tokens; ``rows`` is as for ``sentence_scores``.
    """
    found = [np.zeros(0, np.float32)] * len(split)
    for batch in batches(split, rows, scorer.longest):
        nll_BT = scorer.score(params, (batch.source, batch.target))
        for index, nll_T in zip(batch.indices, nll_BT, strict=False):
            found[index] = -nll_T[: split.target.lengths[index]]
    return found


def perplexity(
    scorer: Scorer,
    params: Any,
    split: TokenizedSplit,
    rows: int,
    before: Callable[[], None] = lambda: None,
) -> Perplexity:
    """exp of the mean negative log-likelihood per target token of a split.

    ``before`` is called before each batch; what it raises ends the scoring.

    Raises:
      ValueError: if there is no sentence, the scores are not finite or a
        sentence was left out.
    """
    if len(split) == 0:
        raise ValueError("there is no sentence to score")
    nll, tokens = sentence_scores(scorer, params, split, rows, before)
    if not np.isfinite(nll).all():
        raise ValueError("a sentence has no finite log-likelihood")
    if not (tokens == split.target.lengths).all():
        raise ValueError("not every target token was scored once")
    total, count = float(nll.sum()), int(tokens.sum())
    # Beyond e^700 the value leaves the range of a float.
    value = math.exp(total / count) if total / count < 700 else math.inf
    return Perplexity(value, total, count, len(split))


def batches(
    split: TokenizedSplit, rows: int, longest: int | None
) -> list[EvaluationBatch]:
    """The batches of a split, whose rows divide over the devices."""
    return evaluation_batches(
        split,
        whole_rows(rows),
        longest=longest,
        row_multiple=parallel.total_device_count(),
    )


def whole_rows(rows: int) -> int:
    """``rows`` rounded up to a multiple of the devices."""
    count = parallel.total_device_count()
    return -(-rows // count) * count
