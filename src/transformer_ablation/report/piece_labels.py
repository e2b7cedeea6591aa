"""Subword pieces as people read them, and the words that they make.

A piece comes as SentencePiece spells it: U+2581 is a space, ``<0xE2>`` a byte, and a
U+2581 of the text itself is a SUB and a ``1`` (a SUB is a SUB and a ``0``).
"""

import re
import string
from collections.abc import Sequence
from typing import NamedTuple

SPACE = "\u2581"
BYTE = re.compile("<0x([0-9A-F]{2})>")
BYTES = re.compile(f"(?:{BYTE.pattern})+")
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
# What stands for a space, and before a piece that goes on with a word.
SHOWN_SPACE, GOES_ON = "\N{OPEN BOX}", "\N{MIDDLE DOT}"


class Labels(NamedTuple):
    """A side of a pair: a label a piece, a label a word, and where words begin."""

    pieces: list[str]
    words: list[str]
    starts: list[int]


def labels(pieces: Sequence[str]) -> Labels:
    """The labels of a sentence's pieces, ``<s>`` and ``</s>`` being words."""
    starts = [i for i in range(len(pieces)) if i == 0 or _begins(pieces, i)]
    ends = [*starts[1:], len(pieces)]
    words = [_text(pieces[a:b]) for a, b in zip(starts, ends, strict=True)]
    begin = set(starts)
    shown = [
        _text([piece]) if i in begin else GOES_ON + _text([piece])
        for i, piece in enumerate(pieces)
    ]
    return Labels(shown, words, starts)


def _begins(pieces: Sequence[str], i: int) -> bool:
    """Whether piece ``i`` begins a word."""
    special = pieces[i] in SPECIAL or pieces[i - 1] in SPECIAL
    return special or pieces[i].startswith(SPACE)


def _text(pieces: Sequence[str]) -> str:
    """Pieces together, without the space before them; bytes as their letters.

    A byte that is no letter by itself stays as it is spelled.
    """
    joined = "".join(pieces)
    part = len(pieces) == 1 and BYTE.fullmatch(joined)
    if not part or chr(int(part[1], 16)) in string.ascii_letters + string.punctuation:
        joined = BYTES.sub(_letters, joined)
    text = joined.removeprefix(SPACE) or joined
    for written, meant in ((SPACE, SHOWN_SPACE), ("\x1a1", SPACE), ("\x1a0", "\x1a")):
        text = text.replace(written, meant)
    return text


def _letters(found: re.Match[str]) -> str:
    codes = bytes(int(code, 16) for code in BYTE.findall(found[0]))
    return codes.decode("utf-8", "replace")
