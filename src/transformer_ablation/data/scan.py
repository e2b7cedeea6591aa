"""What a text file holds, found by reading it once and remembered.

A file that has not changed since is not read again: millions of lines take seconds.
"""

import contextlib
import hashlib
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from transformer_ablation.data import storage
from transformer_ablation.data.parallel_text import (
    CorpusError,
    read_lines,
    read_table,
    unequal,
)

_CHUNK_LINES = 4096
# A file changed this short a time ago may change again without a sign of it.
_SETTLED_NS = 2 * 10**9


class Scan(NamedTuple):
    """Facts of a file.

    Attributes:
      sha256: of its lines, each with its end.
      lines: how many it has.
      filled: how many have more than white space, in each column.
    """

    sha256: str
    lines: int
    filled: tuple[int, ...]


def scan(path: Path, columns: int, notes: Path) -> Scan:
    """What a file of one or two columns holds; remembered in the folder ``notes``.

    Raises:
      CorpusError: if it cannot be read as such, with file and line.
    """
    stamp = stamp_of(path)
    key = storage.content_key([str(path.resolve()), columns])
    note = notes / f"{key[:32]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = storage.read_sealed(note)
        if kept["stamp"] == stamp:
            return Scan(kept["sha256"], kept["lines"], tuple(kept["filled"]))
    settled = time.time_ns() - max(stamp["mtime_ns"], stamp["ctime_ns"]) > _SETTLED_NS
    found = _read(path, columns)
    if settled and stamp_of(path) == stamp:
        # Only a saving of time: a cache that cannot be written fails elsewhere.
        with contextlib.suppress(OSError):
            notes.mkdir(parents=True, exist_ok=True)
            storage.write_sealed(note, {"stamp": stamp, **found._asdict()})
    return found


def scan_split(split: str, paths: Sequence[Path], notes: Path) -> list[Scan]:
    """What the files of a split hold: one a language, or one of two columns.

    Raises:
      CorpusError: if they cannot be read as such, or have no line, no sentence, or
        unequal numbers of lines.
    """
    columns = 1 if len(paths) == 2 else 2
    found = [scan(path, columns, notes) for path in paths]
    for path, each in zip(paths, found, strict=True):
        if each.lines == 0:
            raise CorpusError(f"{path}: is empty; it must hold a sentence a line")
    if found[0].lines != found[-1].lines:
        raise unequal(paths[0], paths[-1], found[0].lines, found[-1].lines)
    for path, each in zip(paths, found, strict=True):
        if 0 in each.filled:
            column = "" if columns == 1 else f" in column {each.filled.index(0) + 1}"
            raise CorpusError(
                f"{path}: split {split!r} has no sentence: all of its {each.lines} "
                f"lines are blank{column}"
            )
    return found


def stamp_of(path: Path) -> dict[str, int]:
    """What is different after any change of a file."""
    try:
        found = path.stat()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror}") from error
    return {
        "bytes": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "ctime_ns": found.st_ctime_ns,
    }


def _read(path: Path, columns: int) -> Scan:
    digest = hashlib.sha256()
    lines, filled = 0, [0] * columns
    rows = _rows(path, columns)
    while chunk := list(itertools.islice(rows, _CHUNK_LINES)):
        lines += len(chunk)
        digest.update("".join("\t".join(row) + "\n" for row in chunk).encode())
        for i, column in enumerate(zip(*chunk, strict=True)):
            filled[i] += sum(1 for text in column if text.strip())
    return Scan(digest.hexdigest(), lines, tuple(filled))


def _rows(path: Path, columns: int) -> Iterator[tuple[str, ...]]:
    return read_table(path) if columns == 2 else ((line,) for line in read_lines(path))
