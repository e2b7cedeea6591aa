"""What single lines of text are looked at for, by checks and filters alike.

A line ends at a line feed and nowhere else, so it holds none. Many lines, joined
with line feeds, can be asked at once whether any of them is of a kind.
"""

import hashlib
import html.entities
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

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


class Kind(NamedTuple):
    """Something that the characters of a line show.

    Attributes:
      occurs: whether a line, or any of several joined with line feeds, is of it.
      place: the index of the first character concerned, in a line of this kind.
    """

    occurs: Callable[[str], bool]
    place: Callable[[str], int]


def _found_by(find: Callable[[str], int]) -> Kind:
    """The kind of text in which ``find`` gives an index, not -1."""
    return Kind(lambda text: find(text) >= 0, find)


def _character(character: str) -> Kind:
    return Kind(lambda text: character in text, lambda line: line.find(character))


def _pattern_at(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return -1 if match is None else match.start()


def _reference_at(text: str) -> int:
    """A numeric character reference, or one of the names of HTML 5."""
    for match in _REFERENCE.finditer(text):
        if match[1].startswith("#") or match[1] in html.entities.html5:
            return match.start()
    return -1


def _outer_space_at(text: str) -> int:
    if text.startswith(" "):
        return 0
    after = text.find("\n ")
    before = text.find(" \n")
    if max(after, before) >= 0:
        return max(after, before)
    return len(text) - 1 if text.endswith(" ") else -1


def _is_not_nfc(text: str) -> bool:
    return not unicodedata.is_normalized("NFC", text)


def _not_nfc_at(line: str) -> int:
    normal = unicodedata.normalize("NFC", line)
    different = (
        i for i, (a, b) in enumerate(zip(line, normal, strict=False)) if a != b
    )
    return next(different, min(len(line), len(normal)))


# In the order of a report.
KINDS = {
    "control": _found_by(lambda text: _pattern_at(_CONTROL, text)),
    "replacement": _character("\ufffd"),
    "carriage_return": _character("\r"),
    "next_line": _character("\x85"),
    "line_separator": _character("\u2028"),
    "paragraph_separator": _character("\u2029"),
    "not_nfc": Kind(_is_not_nfc, _not_nfc_at),
    "character_reference": _found_by(_reference_at),
    "tag": _found_by(lambda text: _pattern_at(_TAG, text)),
    "outer_space": _found_by(_outer_space_at),
    "double_space": _found_by(lambda text: text.find("  ")),
}


def lines_of_kind(kind: Kind, lines: Sequence[str], joined: str) -> list[int]:
    """Indices of the lines of a kind; ``joined`` is the lines with line feeds."""
    if not kind.occurs(joined):
        return []
    return [i for i, line in enumerate(lines) if kind.occurs(line)]


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
