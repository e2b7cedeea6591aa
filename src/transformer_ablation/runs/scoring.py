"""What probability a trained model gives to translations that one has."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_ablation.config import Config
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate.perplexity import Scorer, token_scores
from transformer_ablation.runs.errors import LineError, RunError
from transformer_ablation.runs.loading import Trained
from transformer_ablation.vocabulary import EOS, Vocabulary


class SentenceScore(NamedTuple):
    """A target given its source: natural logarithms of probabilities.

    ``pieces``, ``ids`` and ``token_log_probs`` have one entry a piece of the target,
    the end of sentence last; ``log_prob`` is the sum of ``token_log_probs``.
    """

    source: str
    target: str
    pieces: list[str]
    ids: list[int]
    token_log_probs: list[float]
    log_prob: float

    @property
    def ppl(self) -> float:
        """exp(-log_prob / pieces); infinite beyond what a float can hold."""
        return perplexity_of(self.log_prob, len(self.ids))


class Scores(NamedTuple):
    """Of every pair in order; ``log_prob`` and ``tokens`` are sums over them."""

    sentences: list[SentenceScore]
    log_prob: float
    tokens: int

    @property
    def ppl(self) -> float:
        """Perplexity a target piece, as a run's record has it of a split."""
        return perplexity_of(self.log_prob, self.tokens)


def perplexity_of(log_prob: float, tokens: int) -> float:
    """exp(-log_prob / tokens)."""
    mean = -log_prob / tokens
    return math.exp(mean) if mean < 700 else math.inf


def score(
    trained: Trained,
    scorer: Scorer,
    config: Config,
    vocabulary: Vocabulary,
    sources: Sequence[str],
    targets: Sequence[str],
) -> Scores:
    """Scores of the targets under teacher forcing, without label smoothing.

    Raises:
      RunError: without a pair, or where there are not as many of the one as of the
        other.
      LineError: for a line beyond learned positions.
    """
    if len(sources) != len(targets):
        raise RunError(f"{len(sources)} sources, but {len(targets)} targets")
    if not sources:
        raise RunError("there is no sentence to score")
    sides = [_encoded(vocabulary, texts) for texts in (sources, targets)]
    for name, side in zip(("source", "target"), sides, strict=True):
        for number, ids in enumerate(side, start=1):
            if scorer.longest is not None and len(ids) > scorer.longest:
                raise LineError(
                    f"{name} {number}: is {len(ids)} pieces long with the end of "
                    f"sentence, but model.max_length = {scorer.longest} learned "
                    "positions; shorten it"
                )
    split = TokenizedSplit(*map(Ragged.of, sides))
    rows = min(config.decode.sentences_per_batch, power_of_two(len(sources)))
    found = token_scores(scorer, trained.params, split, rows)
    sentences = [
        SentenceScore(
            source=source,
            target=target,
            pieces=vocabulary.pieces(ids),
            ids=ids,
            token_log_probs=(values := scores.tolist()),
            log_prob=math.fsum(values),
        )
        for source, target, ids, scores in zip(
            sources, targets, sides[1], found, strict=True
        )
    ]
    total = math.fsum(sentence.log_prob for sentence in sentences)
    return Scores(sentences, total, sum(len(s.ids) for s in sentences))


def power_of_two(count: int) -> int:
    """The smallest that is at least ``count``: few sizes of a batch are compiled."""
    return 1 << max(0, count - 1).bit_length()


def _encoded(vocabulary: Vocabulary, texts: Sequence[str]) -> list[list[Any]]:
    return [[*ids, EOS] for ids in vocabulary.encode_all(texts)]
