"""Words and n-grams that two texts get, as compare-mt counts them.

A word of a hypothesis matches one of its reference's, each of which is used up by it:
of three "the" for two in the reference, two match.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from transformer_ablation.report.comparison.intervals import place

Tokens = Sequence[Sequence[str]]
LONGEST = 4  # words of an n-gram
SMOOTHING = 1.0
KINDS = {
    "match": "in the hypothesis and in the reference",
    "over": "in the hypothesis, without one in the reference",
    "under": "in the reference, without one in the hypothesis",
}


class Accuracy(NamedTuple):
    """Words of one bucket: how many in hypotheses and references, how many match."""

    hypotheses: int
    references: int
    matches: int

    @property
    def precision(self) -> float | None:
        """Of the words of the hypotheses, the part that match; None without any."""
        return self.matches / self.hypotheses if self.hypotheses else None

    @property
    def recall(self) -> float | None:
        """Of the words of the references, the part that match; None without any."""
        return self.matches / self.references if self.references else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both; None where there is no such word at all."""
        both = self.hypotheses + self.references
        return 2 * self.matches / both if both else None


class NGram(NamedTuple):
    """An n-gram, how often each side has it, and how often the references do.

    ``score`` is the part of the side that has it more often, smoothed:
    (a + 1) / (a + b + 2).
    """

    words: str
    first: int
    second: int
    references: int
    score: float


def frequencies(lines: Iterable[Sequence[str]]) -> Counter[str]:
    """How often each word occurs."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line)
    return counts


def accuracies(
    hypotheses: Tokens,
    references: Tokens,
    frequency: Mapping[str, int],
    starts: Sequence[int],
) -> list[Accuracy]:
    """A bucket each: words by their ``frequency`` (0 where it lacks them)."""
    sums = [[0, 0, 0] for _ in range(len(starts) + 1)]
    known: dict[str, list[int]] = {}
    for ours, theirs in zip(hypotheses, references, strict=True):
        left = Counter(theirs)
        for word in [*ours, *theirs]:
            if word not in known:
                known[word] = sums[place(starts, frequency.get(word, 0))]
        for word in theirs:
            known[word][1] += 1
        for word in ours:
            known[word][0] += 1
            if left[word] > 0:
                left[word] -= 1
                known[word][2] += 1
    return [Accuracy(*entry) for entry in sums]


def ngram_counts(
    hypotheses: Tokens, references: Tokens, kind: str = "match"
) -> Counter[str]:
    """N-grams up to ``LONGEST`` words of one of ``KINDS``, words joined by spaces."""
    counts: Counter[str] = Counter()
    for ours, theirs in zip(hypotheses, references, strict=True):
        mine, other = Counter(ngrams(ours)), Counter(ngrams(theirs))
        if kind == "match":
            counts.update(mine & other)
        else:
            counts.update(mine - other if kind == "over" else other - mine)
    return counts


def ngrams(words: Sequence[str]) -> list[str]:
    """Every n-gram of a sentence."""
    return [
        " ".join(words[i : i + n])
        for n in range(1, LONGEST + 1)
        for i in range(len(words) - n + 1)
    ]


def distinctive(
    first: Mapping[str, int],
    second: Mapping[str, int],
    references: Tokens,
    most: int,
    pairs: int = 1,
) -> tuple[list[NGram], list[NGram]]:
    """The n-grams that the first has more often than the second, and the other way.

    Counts are those of so many ``pairs`` of texts, which have the same references. Of
    equal scores, the one with the larger difference comes first, then the longer.
    """
    ours, theirs = _ranked(first, second, most), _ranked(second, first, most)
    wanted = {*ours, *theirs}
    in_references = Counter(
        ngram for line in references for ngram in ngrams(line) if ngram in wanted
    )

    def made(ngram: str) -> NGram:
        a, b = first.get(ngram, 0), second.get(ngram, 0)
        there = pairs * in_references[ngram]
        return NGram(ngram, a, b, there, score(max(a, b), min(a, b)))

    return [made(ngram) for ngram in ours], [made(ngram) for ngram in theirs]


def score(count: int, other: int) -> float:
    """The smoothed part that one side has: 1/2 where both have it as often."""
    return (count + SMOOTHING) / (count + other + 2 * SMOOTHING)


def _ranked(ours: Mapping[str, int], others: Mapping[str, int], most: int) -> list[str]:
    more = [ngram for ngram, count in ours.items() if count > others.get(ngram, 0)]

    def order(ngram: str) -> tuple:
        a, b = ours[ngram], others.get(ngram, 0)
        return -score(a, b), b - a, -ngram.count(" "), ngram

    return sorted(more, key=order)[:most]
