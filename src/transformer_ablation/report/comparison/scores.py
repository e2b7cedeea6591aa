"""Scores of texts by sacreBLEU: of the whole, of sentences, of groups of sentences.

BLEU and chrF are sums over sentences of counts, from which each score follows; they
are counted once. All are the numbers of sacreBLEU's ``corpus_score`` and
``sentence_score`` (sentence BLEU with its effective order).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation.report.sentence_tests import (
    Cache,
    Progress,
    Text,
    computed,
    key_of,
    quiet,
)
from transformer_ablation.report.text_metrics import metric_of, tokens_of

SUMMED = ("bleu", "chrf")
READ = 1000  # references whose n-grams are held at a time
CHUNK = 250  # sentences whose edits one process counts at a time
ROUNDING = 1e-9  # of floats; scores are from 0 to 100
MANY = 1000  # sentences from which several processes pay


class Wins(NamedTuple):
    """Sentences with the better score, and the exact sign test of them.

    ``p`` is two-sided: how probable a split at least so uneven is where each side wins
    with probability 1/2. Ties, ``identical`` hypotheses among them, are left out;
    without a win there is no p.
    """

    first: int
    second: int
    ties: int
    identical: int
    p: float | None


class Scorer:
    """BLEU, as a signature says, and chrF, each from counts of sentences."""

    def __init__(self, signature: str | None):
        self._signature = signature
        self._metrics = {name: self._against(name, [""]) for name in SUMMED}
        self._of_sentence = {
            "bleu": metric_of("bleu", signature, effective_order=True),
            "chrf": self._metrics["chrf"],
        }

    def _against(self, name: str, references: list[str]) -> Any:
        return metric_of(name, self._signature, references=[references])

    def tokens(self, line: str) -> list[str]:
        """The words of a line as BLEU counts them."""
        return tokens_of(self._metrics["bleu"], line)

    def signatures(self) -> dict[str, str]:
        """sacreBLEU's, by metric."""
        return {n: str(m.get_signature()) for n, m in self._metrics.items()}

    def counts(
        self, texts: Sequence[Sequence[str]], references: Sequence[str]
    ) -> list[dict[str, np.ndarray]]:
        """For each text its counts by metric: one row a sentence.

        References are read once for all texts, some at a time: their n-grams would
        fill the memory.
        """
        rows: list[dict[str, list]] = [{name: [] for name in SUMMED} for _ in texts]
        for start in range(0, len(references), READ):
            part = slice(start, start + READ)
            for name in SUMMED:
                metric = self._against(name, list(references[part]))
                for found, text in zip(rows, texts, strict=True):
                    with quiet():
                        counts = metric._extract_corpus_statistics(text[part], None)
                    found[name] += counts
        return [{n: np.array(counts) for n, counts in found.items()} for found in rows]

    def corpus(self, name: str, counts: np.ndarray) -> float | None:
        """The score of all these sentences together; None of no sentence."""
        if not len(counts):
            return None
        total = counts.sum(axis=0).tolist()
        return self._metrics[name]._compute_score_from_stats(total).score

    def sentences(self, name: str, counts: np.ndarray) -> list[float]:
        """The score of each sentence alone."""
        score = self._of_sentence[name]._compute_score_from_stats
        return [score(row).score for row in counts.tolist()]


def edit_rates(
    texts: Sequence[Text],
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[str],
    cache: Cache,
    progress: Progress,
) -> tuple[list[float], str]:
    """TER of each text, and its signature; what is not in the cache is counted.

    The edits of a corpus are those of its sentences: parts of it are counted at once.
    """
    signature = texts[0].signature
    keys = [key_of("ter", signature, *text.digests) for text in texts]
    jobs: list[Callable[[], Any]] = []
    owners = []
    for i, key in enumerate(keys):
        if cache.get(key) is None:
            for start in range(0, len(references), CHUNK):
                part = slice(start, start + CHUNK)
                lines = list(hypotheses[i][part]), list(references[part])
                jobs.append(functools.partial(edits, signature, *lines))
                owners.append(i)
    few = 0 if len(references) >= MANY else len(jobs)
    if jobs:
        progress(f"counting edits for TER: {len(set(owners))} texts, kept as tests are")
    sums = {i: [0, 0.0] for i in owners}
    for job, (count, length) in computed(jobs, few):
        sums[owners[job]][0] += count
        sums[owners[job]][1] += length
    for i, (count, length) in sums.items():
        cache.put(keys[i], {"edits": count, "length": length})
    stored = [cache.get(key) for key in keys]
    metric = metric_of("ter", signature, references=[list(references[:1])])
    rates = [
        metric._compute_score_from_stats([x["edits"], x["length"]]).score
        for x in stored
    ]
    return rates, str(metric.get_signature())


def edits(
    signature: str | None, hypotheses: list[str], references: list[str]
) -> tuple[int, float]:
    """Edits of some sentences and the words of their references."""
    with quiet():
        score = metric_of("ter", signature).corpus_score(hypotheses, [references])
    return score.num_edits, score.ref_length


def wins(first: Sequence[float], second: Sequence[float], identical: int) -> Wins:
    """Who has the higher score how often, and the sign test."""
    ahead = sum(above(b, a) for a, b in zip(first, second, strict=True))
    behind = sum(above(a, b) for a, b in zip(first, second, strict=True))
    ties = len(first) - ahead - behind
    return Wins(behind, ahead, ties, identical, sign_test(behind, ahead))


def above(score: float, other: float) -> bool:
    """Whether a score is higher by more than rounding of floats."""
    return score - other > ROUNDING


def sign_test(first: int, second: int) -> float | None:
    """Two-sided exact p that both sides win equally often, given wins of each."""
    from scipy.special import bdtr

    n = first + second
    if not n:
        return None
    return min(1.0, 2.0 * float(bdtr(float(min(first, second)), n, 0.5)))
