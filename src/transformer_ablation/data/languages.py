"""Lines in the wrong language, by words that a corpus has on one side only.

Nothing is known of any language: a sample of the corpus says which words, or else
which characters, are typical of a side.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

SAMPLE_PAIRS = 16_384
_BLOCKS = 16  # of which the sample consists
_LEAST_LINES = 5  # that hold a typical word, and
_LEAST_SHARE = 500  # one line in so many
_TIMES_THE_OTHER = 5  # as many lines as on the other side
# Unit: how many typical ones each side needs, and a line in the wrong language.
_UNITS = {"words": (20, 3), "characters": (10, 8)}
_TIMES_ITS_OWN = 3


@dataclasses.dataclass(frozen=True)
class Typical:
    """What is typical of the two sides.

    Attributes:
      unit: words (what white space separates) or characters, in lower case.
      sides: those of the first and of the second side.
    """

    unit: str
    sides: tuple[frozenset[str], frozenset[str]]

    def misplaced(self, words: Sequence[Sequence[str]], side: int) -> list[int]:
        """Indices of the lines of a side that look like the other's.

        ``words`` are those of each line, in lower case. Such a line has at least
        three different words (eight characters) typical of the other side, and
        more than three times as many as of its own.
        """
        own, other = self.sides[side], self.sides[1 - side]
        least = _UNITS[self.unit][1]
        found = []
        texts = words if self.unit == "words" else map("".join, words)
        for i, units in enumerate(texts):
            count = len(other.intersection(units))
            if count >= least and count > _TIMES_ITS_OWN * len(own.intersection(units)):
                found.append(i)
        return found


def learn(pairs: Sequence[tuple[str, str]]) -> Typical | None:
    """What is typical of the sides of some pairs; None if too little is.

    A word is typical of a side if at least five lines there and one in 500 hold
    it, and five times as many as on the other side.
    """
    least = max(_LEAST_LINES, -(-len(pairs) // _LEAST_SHARE))
    for unit, (needed, _) in _UNITS.items():
        counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for pair in pairs:
            for count, line in zip(counts, pair, strict=True):
                count.update(set(_units(line.lower().split(), unit)))
        first = _more_frequent(counts[0], counts[1], least)
        second = _more_frequent(counts[1], counts[0], least)
        if min(len(first), len(second)) >= needed:
            return Typical(unit, (first, second))
    return None


def sample_of(length: int) -> list[range]:
    """Indices to learn from: all of a small split, blocks all over a large one."""
    if length <= SAMPLE_PAIRS:
        return [range(length)]
    size = SAMPLE_PAIRS // _BLOCKS
    starts = ((length - size) * i // (_BLOCKS - 1) for i in range(_BLOCKS))
    return [range(start, start + size) for start in starts]


def _units(words: Sequence[str], unit: str) -> Iterable[str]:
    return words if unit == "words" else "".join(words)


def _more_frequent(
    own: Counter[str], other: Counter[str], least: int
) -> frozenset[str]:
    return frozenset(
        word
        for word, count in own.items()
        if count >= least and count >= _TIMES_THE_OTHER * other[word]
    )
