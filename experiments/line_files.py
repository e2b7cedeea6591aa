"""Files of lines, looked through before they are translated."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.command import UsageError
from experiments.line_streams import LINES_AT_ONCE, decoded
from transformer_ablation.data.parallel_text import open_bytes
from transformer_ablation.runs.errors import LineError
from transformer_ablation.runs.lines import check_length, longest_source
from transformer_ablation.runs.loading import SavedRun


class Seen(NamedTuple):
    """What a file holds: lines, and the ids of those that are not blank."""

    lines: int
    lengths: np.ndarray


def input_file(given: str | None, out: Path | None) -> Path | None:
    """The file that --input names, or None; ``out`` is that of --out.

    Raises:
      UsageError: if there is none, or both are the same.
    """
    if given is None:
        return None
    path = Path(given)
    if not given.strip() or not path.exists() or path.is_dir():
        folder = given.strip() and path.is_dir()
        what = "is a folder" if folder else "there is no such file"
        raise UsageError(f"--input={given}: {what}; name a file of lines")
    if out is not None and out.exists() and out.samefile(path):
        raise UsageError(f"--out={out}: is the file of --input; name another")
    return path


def lines_of(path: Path | None) -> Iterator[bytes]:
    r"""The lines of a file, or of stdin, each with its ``\n``.

    Raises:
      CorpusError: if it cannot be read, or is a damaged .gz.
    """
    if path is None:
        yield from sys.stdin.buffer
    else:
        with open_bytes(path) as file:
            yield from file


def look_through(path: Path, run: SavedRun) -> Seen | None:
    """Refuses what could not be translated later on; None for what is read once only.

    Raises:
      LineError: for a line that is not UTF-8 or too long; it names file and line.
      CorpusError: as ``lines_of``.
    """
    if not path.is_file():
        return None
    seen, lines = Seen(0, np.zeros(0, np.int64)), lines_of(path)
    try:
        while some := list(itertools.islice(lines, LINES_AT_ONCE)):
            lengths = _lengths(list(decoded(some, seen.lines + 1)), seen.lines + 1, run)
            seen = Seen(seen.lines + len(some), np.append(seen.lengths, lengths))
    except LineError as error:
        raise LineError(f"{path}: {error}") from None
    return seen


def _lengths(texts: list[str], first: int, run: SavedRun) -> list[int]:
    longest, extra = longest_source(run.config), run.config.decode.extra_length
    written = [i for i, text in enumerate(texts) if text.strip()]
    encoded = run.vocabulary.encode_all([texts[i] for i in written])
    for i, ids in zip(written, encoded, strict=True):
        check_length(longest, extra, first + i, len(ids) + 1)
    return [len(ids) + 1 for ids in encoded]
