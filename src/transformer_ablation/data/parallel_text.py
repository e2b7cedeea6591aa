"""Text files with one sentence a line, plain or gzipped, read line by line.

Memory does not grow with a file, and every fault names file and line.
"""

import codecs
import contextlib
import gzip
import hashlib
import io
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_BLOCK_BYTES = 2**20


class CorpusError(ValueError):
    """Data that cannot be used; the message names file, line and remedy."""


class DownloadError(ValueError):
    """A file that could not be fetched; nothing half-fetched is kept."""

    exit_code = 1  # a failure, not a refusal


def find_files(directory: Path, name: str) -> list[Path]:
    """Those of ``name`` and ``name.gz`` that are in a directory."""
    paths = (directory / name, directory / f"{name}.gz")
    return [path for path in paths if path.is_file()]


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Content of a file, decompressed if its name ends in ``.gz``.

    Raises:
      CorpusError: if it cannot be read or its compression is damaged, also while
        it is being read.
    """
    try:
        with path.open("rb", _BLOCK_BYTES) as file:
            if path.suffix == ".gz":
                yield io.BufferedReader(gzip.GzipFile(fileobj=file), _BLOCK_BYTES)
            else:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(
            f"{path}: damaged gzip file ({error}); copy or compress it again"
        ) from error
    except OSError as error:
        reason = error.strerror or error
        raise CorpusError(f"{path}: cannot be read: {reason}") from error


def content_digest(path: Path) -> str:
    """SHA-256 of a file's content, decompressed if its name ends in ``.gz``.

    Raises:
      CorpusError: as ``open_bytes``.
    """
    digest = hashlib.sha256()
    with open_bytes(path) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def read_lines(path: Path) -> Iterator[str]:
    r"""Lines of a UTF-8 file, which end at ``\n`` and nowhere else.

    A final ``\n`` ends the last line; it does not begin another.

    Raises:
      CorpusError: with file, line and byte of the first that is not UTF-8; also if
        the file begins with a byte order mark, which is not of its first sentence.
    """
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith(codecs.BOM_UTF8):
                raise CorpusError(
                    f"{path}: line 1 begins with a byte order mark (the bytes EF BB "
                    "BF), which would become a part of the first sentence; save the "
                    "file as UTF-8 without it, for example with: tail -c +4"
                )
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise CorpusError(
                    f"{path}: line {number}, byte {error.start + 1} of the line: "
                    f"0x{line[error.start]:02x} is not UTF-8; convert the file to UTF-8"
                ) from error
            yield text.removesuffix("\n")


def read_pairs(first: Path, second: Path) -> Iterator[tuple[str, str]]:
    """Line n of one file with line n of the other; at least one pair.

    Raises:
      CorpusError: naming both files and both counts where they differ.
    """
    sides = read_lines(first), read_lines(second)
    count = 0
    for a, b in itertools.zip_longest(*sides):
        if a is None or b is None:
            longer = count + 1 + sum(1 for _ in sides[a is None])
            counts = (count, longer) if a is None else (longer, count)
            raise unequal(first, second, *counts)
        count += 1
        yield a, b
    if count == 0:
        raise CorpusError(f"{first} and {second} are empty")


def unequal(first: Path, second: Path, of_first: int, of_second: int) -> CorpusError:
    """What to say of two files whose numbers of lines differ."""
    return CorpusError(
        f"{first} has {of_first} line{'s' * (of_first != 1)}, but {second} has "
        f"{of_second}; "
        "line n of one must translate line n of the other"
    )


def read_table(path: Path) -> Iterator[tuple[str, str]]:
    """The two columns of a file with one tab in every line; quotes are text.

    Raises:
      CorpusError: with file, line and number of columns where there are not two.
    """
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) != 2:
            count = f"{len(columns)} column{'s' * (len(columns) != 1)}"
            raise CorpusError(
                f"{path}: line {number} has {count}; every line must have two, with "
                "one tab between them (sentences with tabs need a file a language)"
            )
        yield columns[0], columns[1]
