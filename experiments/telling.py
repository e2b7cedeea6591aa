"""What a command says on stderr: before something that takes a while, or of a fault."""

import contextlib
import sys
import unicodedata
import warnings
from collections.abc import Container, Iterator
from typing import Any

from transformer_ablation.report.cells import DIRECTIONS


def tell(text: str) -> None:
    """One line at once, ``text ...``; stdout stays the results' alone."""
    print(f"{text} ...", file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """A message. Data in it moves no cursor and turns no line around."""
    letters = (c for c in text if c == "\n" or not _moves(c))
    print("".join(letters), file=sys.stderr)


@contextlib.contextmanager
def own_warnings(packages: Container[str]) -> Iterator[None]:
    """Inside it warnings that these packages define are told as messages are."""

    def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
        if category.__module__.partition(".")[0] in packages:
            complain(str(message))
        else:
            before(message, category, *place, **more)

    with warnings.catch_warnings():
        before, warnings.showwarning = warnings.showwarning, show
        yield


def _moves(letter: str) -> bool:
    direction = unicodedata.bidirectional(letter)
    return unicodedata.category(letter) == "Cc" or direction in DIRECTIONS
