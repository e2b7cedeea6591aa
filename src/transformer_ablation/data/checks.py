"""The report of a corpus: what its splits hold, counted in one pass over the text.

Of each kind a finding says how many lines (or pairs) there are, the number of the
first, from 1, and an excerpt of it. Text is never kept: what has to be compared
with other lines is compared by 64-bit hashes.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation.data.languages import Typical
from transformer_ablation.data.lines import (
    KINDS,
    Find,
    Joined,
    among,
    empty,
    excerpt,
    fingerprints,
    pair_fingerprints,
    repeats,
)

RULES = 2  # raised whenever another rule gives another report

LONG_WORDS = 100  # more are a long line
LENGTH_RATIO = 3  # more times the words of the other side
RATIO_WORDS = 10  # the longer side has at least so many

LINE_KINDS = (
    *("empty", "blank", "long"),
    *KINDS,
    *("other_language", "other_translation"),
)
PAIR_KINDS = ("duplicate", "copy", "length_ratio")

Read = Callable[[Iterable[int]], list[tuple[str, str]]]


class Prints(NamedTuple):
    """Hashes of the lines of a split: uint64 [pairs], by side."""

    first: np.ndarray
    second: np.ndarray

    @property
    def pairs(self) -> np.ndarray:
        """uint64, one hash a pair."""
        return pair_fingerprints(self.first, self.second)


class Examination:
    """Counts and findings of a split, of which chunks are added in order.

    Attributes:
      length: how many pairs have been added.
    """

    def __init__(self, languages: tuple[str, str], typical: Typical | None):
        """``typical`` tells the languages apart; None: they are not judged."""
        self._languages = languages
        self.length = 0
        self._sides = (_Side(0, typical), _Side(1, typical))
        self._copy, self._ratio = _Tally(), _Tally()

    def add(self, chunk: Sequence[tuple[str, str]]) -> None:
        """Pairs of lines, none of which holds a line feed."""
        first, second = zip(*chunk, strict=True)
        a = self._sides[0].add(first, self.length)
        b = self._sides[1].add(second, self.length)

        def show(i: int) -> dict[str, str]:
            return _by_language(self._languages, chunk[i])

        copies = [i for i, (x, y) in enumerate(chunk) if x == y != ""]
        self._copy.add(copies, self.length, show)
        longer, shorter = np.maximum(a, b), np.minimum(a, b)
        apart = (longer > LENGTH_RATIO * shorter) & (longer >= RATIO_WORDS)
        hits = [i for i in np.flatnonzero(apart).tolist() if all(chunk[i])]
        self._ratio.add(hits, self.length, show)
        self.length += len(chunk)

    def facts(self, read: Read) -> tuple[dict, Prints]:
        """What a manifest says of the split, and the hashes of its lines.

        ``read`` gives pairs by their indices, for excerpts.
        """
        prints = Prints(*(side.prints() for side in self._sides))
        checks: dict[str, Any] = {
            "pair": {
                "duplicate": _found(
                    _duplicates(prints),
                    read,
                    lambda pair: _by_language(self._languages, pair),
                ),
                "copy": self._copy.facts(),
                "length_ratio": self._ratio.facts(),
            }
        }
        facts: dict[str, Any] = {"pairs": self.length}
        for i, (language, side) in enumerate(
            zip(self._languages, self._sides, strict=True)
        ):
            others = _other_translations(prints, i)
            checks[language] = {
                **side.findings(),
                "other_translation": _found(others, read, _line_of(i)),
            }
            facts[language] = side.facts()
        return {**facts, "checks": checks}, prints


def overlaps(
    splits: Mapping[str, Prints], languages: tuple[str, str], reads: Mapping[str, Read]
) -> dict[str, dict]:
    """By split and other split: what of the one stands in the other as well.

    That is its pairs, and its lines by language; of a pair with an empty side,
    nothing.
    """
    return {
        split: {
            other: _overlap(prints, splits[other], languages, reads[split])
            for other in splits
            if other != split
        }
        for split, prints in splits.items()
    }


def rules(languages: tuple[str, str], typical: Typical | None, sample: int) -> dict:
    """The numbers behind the findings, for a manifest."""
    told_apart: dict[str, Any] | None = None
    if typical is not None:
        counts = map(len, typical.sides)
        told_apart = {
            "unit": typical.unit,
            "sample_pairs": sample,
            **dict(zip(languages, counts, strict=True)),
        }
    return {
        "long_words": LONG_WORDS,
        "length_ratio": LENGTH_RATIO,
        "length_ratio_words": RATIO_WORDS,
        "typical": told_apart,
    }


def finding(count: int | None, index: int | None = None, shown: Any = None) -> dict:
    """A finding; ``count`` is None where it could not be judged."""
    line = None if index is None else index + 1
    return {"count": count, "line": line, "excerpt": shown}


class _Tally:
    """How many there are of a kind, and the first."""

    def __init__(self) -> None:
        self._count = 0
        self._index: int | None = None
        self._shown: Any = None

    def add(
        self, hits: Sequence[int] | np.ndarray, start: int, show: Callable[[int], Any]
    ) -> None:
        """``hits`` are indices into a chunk whose first pair is ``start``."""
        if len(hits) and self._index is None:
            self._index, self._shown = start + int(hits[0]), show(int(hits[0]))
        self._count += len(hits)

    def facts(self) -> dict:
        return finding(self._count, self._index, self._shown)


class _Side:
    """Running counts and findings of one side of a split."""

    def __init__(self, number: int, typical: Typical | None) -> None:
        self._number = number
        self._typical = typical
        self._hash = hashlib.sha256()
        self._lines = self._words = self._characters = self._max_words = 0
        self._tallies = {kind: _Tally() for kind in LINE_KINDS[:-1]}
        self._prints: list[np.ndarray] = []

    def add(self, lines: Sequence[str], start: int) -> np.ndarray:
        """The number of words of each line, int64."""
        split = [line.lower().split() for line in lines]
        words = np.array([len(x) for x in split], np.int64)
        joined = Joined(lines)
        self._hash.update((b"\n" if self._lines else b"") + joined.text.encode())
        self._lines += len(lines)
        self._words += int(words.sum())
        self._characters += len(joined.text) - len(lines) + 1
        self._max_words = max(self._max_words, int(words.max()))
        self._prints.append(fingerprints(lines))
        wordless = np.flatnonzero(words == 0).tolist()
        empties = [i for i in wordless if lines[i] == ""]
        self._tally("empty", empties, lines, start)
        blanks = [i for i in wordless if lines[i] != ""]
        self._tally("blank", blanks, lines, start)
        self._tally("long", np.flatnonzero(words > LONG_WORDS), lines, start)
        for kind, find in KINDS.items():
            self._tally(kind, joined.of_kind(find), lines, start, find)
        if self._typical is not None:
            hits = self._typical.misplaced(split, self._number)
            self._tally("other_language", hits, lines, start)
        return words

    def prints(self) -> np.ndarray:
        """uint64, one hash a line."""
        return np.concatenate(self._prints)

    def facts(self) -> dict:
        return {
            "words": self._words,
            "characters": self._characters,
            "max_words": self._max_words,
            "sha256": self._hash.hexdigest(),
        }

    def findings(self) -> dict:
        found = {kind: tally.facts() for kind, tally in self._tallies.items()}
        if self._typical is None:
            found["other_language"] = finding(None)
        return found

    def _tally(
        self,
        kind: str,
        hits: Sequence[int] | np.ndarray,
        lines: Sequence[str],
        start: int,
        find: Find = lambda line, start: start,
    ) -> None:
        def show(i: int) -> str:
            return excerpt(lines[i], find(lines[i], 0))

        self._tallies[kind].add(hits, start, show)


def _duplicates(prints: Prints) -> np.ndarray:
    """A mask of the pairs that have stood before."""
    return repeats(prints.pairs) & _filled(prints)


def _other_translations(prints: Prints, side: int) -> np.ndarray:
    """A mask of new pairs whose line on a side has stood before, in another pair."""
    new = np.flatnonzero(~repeats(prints.pairs) & _filled(prints))
    mask: np.ndarray = np.zeros(len(prints.first), bool)
    mask[new] = repeats(prints[side][new])
    return mask


def _filled(prints: Prints) -> np.ndarray:
    """A mask of the pairs without an empty side; no other is compared."""
    filled: np.ndarray = ~(empty(prints.first) | empty(prints.second))
    return filled


def _overlap(
    prints: Prints, other: Prints, languages: tuple[str, str], read: Read
) -> dict:
    pairs = among(prints.pairs, other.pairs) & _filled(prints)
    found = {"pair": _found(pairs, read, lambda pair: _by_language(languages, pair))}
    for i, language in enumerate(languages):
        mask = among(prints[i], other[i]) & _filled(prints)
        found[language] = _found(mask, read, _line_of(i))
    return found


def _found(
    mask: np.ndarray, read: Read, show: Callable[[tuple[str, str]], Any]
) -> dict:
    """The finding of the pairs of a mask; the first is read for its excerpt."""
    if not mask.any():
        return finding(0)
    index = int(np.argmax(mask))
    return finding(int(mask.sum()), index, show(read([index])[0]))


def _line_of(side: int) -> Callable[[tuple[str, str]], str]:
    return lambda pair: excerpt(pair[side])


def _by_language(languages: tuple[str, str], pair: tuple[str, str]) -> dict[str, str]:
    return dict(zip(languages, map(excerpt, pair), strict=True))
