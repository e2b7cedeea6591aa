"""What a command says on stderr: before something that takes a while, or of a fault."""

import sys
import unicodedata

from transformer_ablation.report.cells import DIRECTIONS


def tell(text: str) -> None:
    """One line at once, ``text ...``; stdout stays the results' alone."""
    print(f"{text} ...", file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """A message. Data in it moves no cursor and turns no line around."""
    letters = (c for c in text if c == "\n" or not _moves(c))
    print("".join(letters), file=sys.stderr)


def _moves(letter: str) -> bool:
    direction = unicodedata.bidirectional(letter)
    return unicodedata.category(letter) == "Cc" or direction in DIRECTIONS
