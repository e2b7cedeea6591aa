"""The sentences whose attention is shown, as text."""

import itertools
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags

from experiments import line_streams
from experiments.command import UsageError

# More would make a page that no browser likes and nobody reads.
MOST_SENTENCES = 20


class Text(NamedTuple):
    """A source, and its target unless the model is to translate it."""

    heading: str
    source: str
    target: str | None


def given(options: flags.FlagValues) -> list[Text] | range:
    """The texts of --source and --target, or places in the validation split.

    Raises:
      UsageError: for a blank one, or too many or too few.
      LineError: for a line on stdin that is not UTF-8.
    """
    if options.validation is not None:
        return _places(options.validation)
    sources, targets = list(options.source), list(options.target or [])
    name = "sentence {}" if len(sources) > 1 else "the sentence"
    if "-" in sources:
        if len(sources) > 1 or targets:
            raise UsageError("--source=- reads all from stdin; give it alone")
        if sys.stdin is None:
            raise UsageError("--source=-: there is no standard input")
        lines = itertools.islice(sys.stdin.buffer, MOST_SENTENCES + 1)
        sources, name = list(line_streams.decoded(lines)), "line {}"
    if targets and len(targets) != len(sources):
        raise UsageError(
            f"{len(sources)} --source, but {len(targets)} --target: give each its own, "
            "or none"
        )
    _count(len(sources))
    texts: list[str | None] = [*targets] or [None] * len(sources)
    found = [
        Text(name.format(i), *pair)
        for i, pair in enumerate(zip(sources, texts, strict=True), start=1)
    ]
    _check_blank(found)
    return found


def _places(asked: str) -> range:
    """Lines of "3" or "3:8", counted from 0.

    Raises:
      UsageError: for anything else.
    """
    match = re.fullmatch(r"([0-9]+)(?::([0-9]+))?", asked.strip())
    first, last = (int(n or match[1]) for n in match.groups()) if match else (0, 0)
    if not 1 <= first <= last:
        raise UsageError(
            f"--validation={asked}: name a line from 1 on, as in --validation=3, or "
            "the first and last of several, as in --validation=3:8"
        )
    _count(last - first + 1)
    return range(first - 1, last)


def _count(sentences: int) -> None:
    if not 1 <= sentences <= MOST_SENTENCES:
        asked = "more" if sentences else "none"
        raise UsageError(
            f"a page shows from 1 to {MOST_SENTENCES} sentences; {asked} are asked for"
        )


def of_split(pairs: Sequence[Any], places: range) -> list[Text]:
    """Pairs of the validation split, with the references as targets.

    Raises:
      UsageError: for places beyond its end, or a blank line.
    """
    if places.stop > len(pairs):
        raise UsageError(
            f"--validation: there is no line {places.stop}; the split has {len(pairs)}"
        )
    found = [Text(f"validation line {i + 1}", *pairs[i]) for i in places]
    _check_blank(found)
    return found


def _check_blank(texts: Sequence[Text]) -> None:
    for text in texts:
        for side, words in (("source", text.source), ("target", text.target)):
            if words is not None and not words.strip():
                raise UsageError(f"{text.heading}: the {side} is blank; give it a word")
