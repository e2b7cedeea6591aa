"""Plain data in files: strict JSON, written whole or not at all."""

import contextlib
import errno
import fcntl
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# Letters of a name that its temporary neighbour keeps: longer ones would pass the limit
# of a file system where the name itself does not.
_SHORT = 40


class RecordError(ValueError):
    """A record or sweep file that cannot be used; names the file and the fault."""


def write_json(path: Path, value: Any) -> None:
    """Writes strict JSON to a temporary neighbour, then takes its place."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 text as ``write_bytes`` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all: the old one stays until the end.

    A link keeps its place: the file behind it is replaced.
    """
    path = path.resolve() if path.is_symlink() else path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:_SHORT]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == os.fspath(temporary):
            # What it was to become is what a reader knows.
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Held by one process at a time, from reading a file until it is written again.

    On a file system without locks, as NFS may be, nothing is held: a run in training is
    kept to one process by its claim, so only two that score one run could meet.
    """
    with path.with_name(f"{path.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise
        yield


def read_json(path: Path) -> dict[str, Any] | None:
    """The strict JSON object of a file, or None where the file is absent.

    Raises:
      RecordError: for anything but one JSON object in UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8")
        value = json.loads(text, parse_constant=_refuse_constant)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise RecordError(
            f"{path}: not valid JSON ({error}); restore it from a copy, or remove it "
            "to run again what it describes"
        ) from None
    if not isinstance(value, dict):
        raise RecordError(f"{path}: must be a JSON object, not {text[:40]!r}")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def finite(value: Any, path: str, lost: list[str]) -> Any:
    """The value in JSON's own types; paths of dropped floats are added to ``lost``."""
    if isinstance(value, Mapping):
        prefix = f"{path}." if path else ""
        return {str(k): finite(v, f"{prefix}{k}", lost) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v, f"{path}[{i}]", lost) for i, v in enumerate(value)]
    if hasattr(value, "item"):  # a number of numpy or of an array library
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        lost.append(path)
        return None
    return os.fspath(value) if isinstance(value, os.PathLike) else value
