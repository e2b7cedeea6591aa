"""Plain text files with one sentence a line, plain or gzipped, and their faults."""

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path


class CorpusError(ValueError):
    """Data that cannot be used; the message names file, line and remedy."""


class DownloadError(ValueError):
    """A file that could not be fetched; nothing half-fetched is kept."""

    exit_code = 1  # a failure, not a refusal


def find_file(directory: Path, name: str) -> Path | None:
    """``name`` or else ``name.gz`` in a directory, or None."""
    for path in (directory / name, directory / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def read_bytes(path: Path) -> bytes:
    """Content of a file, decompressed if its name ends in ``.gz``.

    Raises:
      CorpusError: if it cannot be read or its compression is damaged.
    """
    try:
        return decompress(path.read_bytes(), path)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror}") from error


def decompress(content: bytes, path: Path) -> bytes:
    """Content of a file, decompressed if its name ends in ``.gz``."""
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: damaged gzip file ({error})") from error


def lines_of(content: bytes, path: Path) -> list[str]:
    r"""Lines of UTF-8 text, which end at ``\n`` and nowhere else.

    A final ``\n`` ends the last line; it does not begin another.

    Raises:
      CorpusError: with file, line and byte of the first that is not UTF-8.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise CorpusError(
            f"{path}: line {line}, byte {column} of the line: "
            f"0x{content[error.start]:02x} is not UTF-8; convert the file to UTF-8"
        ) from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def read_parallel(paths: Mapping[str, Path]) -> dict[str, list[str]]:
    """Lines of one split by language, equally many and at least one.

    Raises:
      CorpusError: naming both files and both counts where they differ.
    """
    lines = {key: lines_of(read_bytes(path), path) for key, path in paths.items()}
    (first, a), (second, b) = lines.items()
    if len(a) != len(b):
        raise CorpusError(
            f"{paths[first]} has {len(a)} lines, but {paths[second]} has {len(b)}; "
            "line n of one must translate line n of the other"
        )
    if not a:
        raise CorpusError(f"{paths[first]} and {paths[second]} are empty")
    return lines
