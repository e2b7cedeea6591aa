"""What single lines of text are looked at for, by checks and filters alike.

A line ends at a line feed and nowhere else, so it holds none. Many lines, joined
with line feeds, can be asked at once whether any of them is of a kind.
"""

import bisect
import hashlib
import html.entities
import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

_EXCERPT, _BEFORE = 60, 20  # characters
# All of Unicode's category Cc but tab, line feed, carriage return and next line.
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_REFERENCE = re.compile(
    "&(#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[A-Za-z][A-Za-z0-9]{1,31};)"
)
_TAG = re.compile("</?[A-Za-z][A-Za-z0-9:_-]*(?:[ \t][^<>\n]*)?/?>")
_EMPTY_PRINT = int.from_bytes(hashlib.blake2b(b"", digest_size=8).digest(), "little")
_MIX = np.uint64(0x9E3779B97F4A7C15)


# The index of the first place at or after another in a text, or -1: in a line, or in
# lines joined with line feeds. A place never goes beyond its line.
Find = Callable[[str, int], int]


def _character(character: str) -> Find:
    return lambda text, start: text.find(character, start)


def _pattern(pattern: re.Pattern[str]) -> Find:
    def find(text: str, start: int) -> int:
        match = pattern.search(text, start)
        return -1 if match is None else match.start()

    return find


def _reference(text: str, start: int) -> int:
    """A numeric character reference, or one of the names of HTML 5."""
    for match in _REFERENCE.finditer(text, start):
        if match[1].startswith("#") or match[1] in html.entities.html5:
            return match.start()
    return -1


def _leading_space(text: str, start: int) -> int:
    if text.startswith(" ", start) and (start == 0 or text[start - 1] == "\n"):
        return start
    place = text.find("\n ", start)
    return -1 if place < 0 else place + 1


def _trailing_space(text: str, start: int) -> int:
    place = text.find(" \n", start)
    return len(text) - 1 if place < 0 and text.endswith(" ", start) else place


def _not_nfc(text: str, start: int) -> int:
    """Where Unicode's normal form C begins to differ."""
    if start == 0 and unicodedata.is_normalized("NFC", text):
        return -1
    while start < len(text):
        end = text.find("\n", start)
        line = text[start:] if end < 0 else text[start:end]
        if not unicodedata.is_normalized("NFC", line):
            normal = unicodedata.normalize("NFC", line)
            pairs = enumerate(zip(line, normal, strict=False))
            different = (i for i, (a, b) in pairs if a != b)
            return start + next(different, min(len(line), len(normal)))
        start += len(line) + 1
    return -1


# In the order of a report.
KINDS: dict[str, Find] = {
    "control": _pattern(_CONTROL),
    "replacement": _character("\ufffd"),
    "carriage_return": _character("\r"),
    "next_line": _character("\x85"),
    "line_separator": _character("\u2028"),
    "paragraph_separator": _character("\u2029"),
    "byte_order_mark": _character("\ufeff"),
    "not_nfc": _not_nfc,
    "character_reference": _reference,
    "tag": _pattern(_TAG),
    "leading_space": _leading_space,
    "trailing_space": _trailing_space,
    "double_space": _character("  "),
}


class Joined:
    """Lines as one text, in which each is found again."""

    def __init__(self, lines: Sequence[str]):
        self.text = "\n".join(lines)
        # Where the line after each begins.
        self._next = list(itertools.accumulate(len(line) + 1 for line in lines))

    def of_kind(self, find: Find) -> list[int]:
        """Indices of the lines in which something is found."""
        found = []
        place = find(self.text, 0)
        while place >= 0:
            line = bisect.bisect_right(self._next, place)
            found.append(line)
            place = find(self.text, self._next[line])
        return found


def excerpt(line: str, place: int = 0) -> str:
    """At most 60 characters about an index; an ellipsis stands for what is cut."""
    start = max(0, place - _BEFORE)
    end = start + _EXCERPT
    before, after = "…" * (start > 0), "…" * (end < len(line))
    return f"{before}{line[start:end]}{after}"


def fingerprints(lines: Sequence[str]) -> np.ndarray:
    """uint64, one hash a line; equal lines have equal ones on any machine."""
    digests = [hashlib.blake2b(x.encode(), digest_size=8).digest() for x in lines]
    return np.array(np.frombuffer(b"".join(digests), "<u8"), np.uint64)


def pair_fingerprints(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """uint64, one hash a pair, of the hashes of its two lines."""
    prints: np.ndarray = first * _MIX + second
    return prints


def empty(prints: np.ndarray) -> np.ndarray:
    """A mask of the hashes that are those of lines without a character."""
    mask: np.ndarray = prints == np.uint64(_EMPTY_PRINT)
    return mask


def repeats(prints: np.ndarray) -> np.ndarray:
    """A mask of the hashes that have stood before."""
    order = np.argsort(prints, kind="stable")
    mask: np.ndarray = np.zeros(len(prints), bool)
    mask[order[1:]] = prints[order[1:]] == prints[order[:-1]]
    return mask


def among(prints: np.ndarray, others: np.ndarray) -> np.ndarray:
    """A mask of the hashes that are among ``others``."""
    known = np.unique(others)
    if len(known) == 0:
        return np.zeros(len(prints), bool)
    places = np.minimum(np.searchsorted(known, prints), len(known) - 1)
    mask: np.ndarray = known[places] == prints
    return mask
