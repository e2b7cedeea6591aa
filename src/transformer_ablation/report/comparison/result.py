"""What a comparison of two rows or runs says: options and results, unrounded."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transformer_ablation.report.comparison import scores, words
from transformer_ablation.report.comparison.intervals import Bucket
from transformer_ablation.report.seed_tests import SeedTest
from transformer_ablation.report.sentence_tests import SentenceTest, Settings

LENGTH_STARTS = {
    "words": (10, 20, 30, 40, 50, 60),
    "characters": (50, 100, 150, 200, 250, 300),
}
FREQUENCY_STARTS = (1, 2, 5, 10, 100, 1000)
LONGEST_NAME = 24  # letters of a name that heads columns


@dataclasses.dataclass(frozen=True)
class Options:
    """What is compared, and how. None for starts are the defaults."""

    length_unit: str = "words"
    length_starts: tuple[int, ...] | None = None
    frequency_starts: tuple[int, ...] = FREQUENCY_STARTS
    ngrams: str = "match"
    most_ngrams: int = 10
    sentence_metric: str = "chrf"
    ter: bool = True
    tests: Settings | None = Settings()
    test_metrics: tuple[str, ...] = ("bleu",)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Where buckets of source lengths begin."""
        return self.length_starts or LENGTH_STARTS[self.length_unit]


class Frequencies(NamedTuple):
    """How often words occur, in which text, and why not in the training text."""

    counts: Mapping[str, int]
    origin: str
    why: str | None = None


class Both(NamedTuple):
    """A value of each side; None where it is not known."""

    first: float | None
    second: float | None

    @property
    def difference(self) -> float | None:
        """The second's minus the first's."""
        if self.first is None or self.second is None:
            return None
        return self.second - self.first

    @property
    def percent(self) -> "Both":
        """Parts of 1 as percent."""
        first, second = (None if x is None else 100 * x for x in self)
        return Both(first, second)


class LengthGroup(NamedTuple):
    """Sentences whose sources have a length of one bucket, and their scores."""

    bucket: Bucket
    sentences: int
    scores: Mapping[str, Both]


class WordGroup(NamedTuple):
    """Words whose frequency is of one bucket: how both sides get them."""

    bucket: Bucket
    first: words.Accuracy
    second: words.Accuracy

    @property
    def f1(self) -> Both:
        """F1 of both sides."""
        return Both(self.first.f1, self.second.f1)


class Sentence(NamedTuple):
    """One line in one pair; ``number`` counts from 1. Scores are by metric."""

    pair: int
    number: int
    length: int
    bucket: int
    hypotheses: tuple[str, str]
    scores: Mapping[str, Both]


@dataclasses.dataclass(frozen=True)
class PairResult:
    """Two runs: corpus scores, ``length`` ratio to the references, tests, wins."""

    name: str
    seeds: tuple[int, int]
    folders: tuple[str, str]
    corpus: Mapping[str, Both]
    tests: Mapping[str, Mapping[str, SentenceTest]]  # by metric and kind
    wins: scores.Wins
    lengths: Sequence[LengthGroup]
    words: Sequence[WordGroup]
    unfinished: Both
    mismatches: Both


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two rows or runs on one split; differences are the second's minus the first's."""

    names: tuple[str, str]
    split: str
    options: Options
    signatures: Mapping[str, str]
    differences: Mapping[str, tuple[Any, Any]]  # of the configs
    facts: Mapping[str, tuple[Any, Any]]  # of the records, where they differ
    sources: Sequence[str]
    references: Sequence[str]
    pairs: Sequence[PairResult]
    over_seeds: Mapping[str, SeedTest]  # by corpus score, where there are two seeds
    lengths: Sequence[LengthGroup]  # means over pairs
    f1: Sequence[Both]  # by bucket of word frequency, means over pairs
    frequencies: Frequencies
    ngrams: tuple[Sequence[words.NGram], Sequence[words.NGram]]
    sentences: Sequence[Sentence]
    left_out: Sequence[str]

    @property
    def labels(self) -> tuple[str, str]:
        """The names in figures and tables: where one is long, first and second."""
        if max(map(len, self.names)) <= LONGEST_NAME:
            return self.names
        return ("first", "second")

    def ahead(self, sentence: Sentence) -> int | None:
        """Whose sentence has the higher score: 0, 1, or None for neither."""
        both = sentence.scores[self.options.sentence_metric]
        if scores.above(both.first or 0.0, both.second or 0.0):
            return 0
        return 1 if scores.above(both.second or 0.0, both.first or 0.0) else None

    def largest(self, side: int | None, most: int | None) -> list[Sentence]:
        """Sentences that a side has better (None: neither), by their difference."""
        metric = self.options.sentence_metric
        found = [s for s in self.sentences if self.ahead(s) == side]
        found.sort(key=lambda s: -abs(s.scores[metric].difference or 0.0))
        return found if most is None else found[:most]
