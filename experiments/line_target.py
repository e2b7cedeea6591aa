"""Where translated lines go: to stdout, or to a file that is written whole."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from experiments.command import UsageError
from experiments.telling import complain


def target(place: Path | None) -> contextlib.AbstractContextManager[BinaryIO]:
    """Where the lines go: to a file, or to stdout."""
    if place is None:
        return contextlib.nullcontext(sys.stdout.buffer)
    return whole_file(place)


def part_of(place: Path) -> Path:
    """Where the lines of a file are until it is complete."""
    return place.with_name(f"{place.name}.part")


def check_part(place: Path | None) -> None:
    """Refuses to write over what an earlier call had finished.

    Raises:
      UsageError: if there is such a file.
    """
    part = part_of(place) if place is not None else None
    if part is not None and part.exists() and part.stat().st_size:
        raise UsageError(
            f"--out={place}: {part} holds the lines that an earlier call had finished "
            "when it was stopped; move it away, or name another --out"
        )


@contextlib.contextmanager
def whole_file(place: Path) -> Iterator[BinaryIO]:
    """A file that takes its place at the end; what is finished before stays beside it.

    A link keeps its place: the file behind it is replaced.
    """
    place = place.resolve() if place.is_symlink() else place
    place.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(place)
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, place)
    except BaseException:
        if part.exists() and part.stat().st_size:
            complain(f"{part}: holds what was finished; {place} is not written")
        else:
            part.unlink(missing_ok=True)
        raise
