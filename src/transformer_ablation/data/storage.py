"""Files of the cache: each appears whole or not at all.

A folder is prepared beside its place and renamed into it under a lock, so a
killed process leaves nothing that looks finished and two processes at once
prepare it once.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FORMAT = 1  # of everything in the cache; raised whenever its layout changes
CONTENTS = "contents.json"  # of a published folder: its facts and its files


def publish(
    folder: Path, fill: Callable[[Path], dict], *, digests: bool = False
) -> dict:
    """The facts of a folder, which ``fill(temporary)`` makes where it is not intact.

    Args:
      folder: where it shall stand.
      fill: writes the files below the path it is given; returns facts for JSON.
      digests: whether SHA-256 of every file is kept and checked, or its size only.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock(folder):
        facts = read(folder)
        if facts is not None:
            return facts
        _remove_leftovers(folder)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_prefix(folder)))
        try:
            temporary.chmod(0o755)
            facts = fill(temporary)
            files = {
                str(path.relative_to(temporary)): _stamp(path, digests)
                for path in sorted(temporary.rglob("*"))
                if path.is_file()
            }
            write_json(temporary / CONTENTS, {"facts": facts, "files": files})
            os.rename(temporary, folder)
        except BaseException as error:
            full = _disk_full(folder, error)
            shutil.rmtree(temporary, ignore_errors=True)
            if full:
                raise full from error
            raise
    return read_json(folder / CONTENTS)["facts"]


def place(cache: Path | str, kind: str, name: str) -> Path:
    """Where something of a kind stands in the cache."""
    return Path(cache) / f"format{FORMAT}" / kind / name


def read(folder: Path) -> dict | None:
    """The facts of a published folder; None if it is missing or damaged."""
    try:
        contents = read_json(folder / CONTENTS)
        for name, stamp in contents["files"].items():
            if _stamp(folder / name, "sha256" in stamp) != stamp:
                return None
        return contents["facts"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read_json(path: Path) -> Any:
    """What a UTF-8 JSON file holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically."""
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def content_key(value: Any) -> str:
    """SHA-256 of a JSON value, in hexadecimal; the order of keys does not matter."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _stamp(path: Path, digest: bool) -> dict:
    stamp: dict[str, Any] = {"bytes": path.stat().st_size}
    if digest:
        with path.open("rb") as file:
            stamp["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return stamp


def _disk_full(folder: Path, error: BaseException) -> OSError | None:
    """The plain error of a full disk where a library hides it behind its own."""
    if not isinstance(error, Exception):
        return None
    if isinstance(error, OSError) and error.errno and error.filename:
        return None
    if shutil.disk_usage(folder.parent).free > 2**20:
        return None
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def _prefix(folder: Path) -> str:
    return f".{folder.name}."


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Held by one process at a time; given up when the process ends."""
    with (folder.parent / f"{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_leftovers(folder: Path) -> None:
    """Damaged or half-written versions; only the holder of the lock may call."""
    for path in [folder, *folder.parent.glob(_prefix(folder) + "*")]:
        shutil.rmtree(path, ignore_errors=True)
