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
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FORMAT = 1  # of everything in the cache; raised whenever its layout changes
CONTENTS = "contents.json"  # of a published folder: its facts and its files
VERIFIED = "verified.json"  # beside it: state of the files whose digests were right
_SEAL = "seal"
# Times of files are coarse: one changed so lately may be changed again unseen.
_SETTLED_SECONDS = 2.0
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


class CacheError(ValueError):
    """A cache that cannot be written to."""

    exit_code = 1  # a failure, not a refusal


def publish(
    folder: Path, fill: Callable[[Path], dict], *, digests: bool = False
) -> dict:
    """The facts of a folder, which ``fill(temporary)`` makes where it is not intact.

    Args:
      folder: where it shall stand.
      fill: writes the files below the path it is given; returns facts for JSON.
      digests: whether SHA-256 of every file is kept and checked, or its size only.

    Raises:
      CacheError: if the cache cannot be written to.
      OSError: ENOSPC, with the folder's name, if its disk is full.
    """
    with writing(folder), lock(folder):
        facts = read(folder)
        if facts is not None:
            return facts
        _remove_leftovers(folder)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_prefix(folder)))
        try:
            with writing(folder):  # a disk is no longer full after what follows
                temporary.chmod(0o755)
                _finish(temporary, fill(temporary), digests)
                os.rename(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return read_json(folder / CONTENTS)["facts"]


def _finish(folder: Path, facts: dict, digests: bool) -> None:
    """Writes beside the files of a folder what they are."""
    now = time.time()
    files: dict[str, dict[str, Any]] = {}
    states: dict[str, list] = {}
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in paths:
        name, status = str(path.relative_to(folder)), path.stat()
        files[name] = {"bytes": status.st_size}
        if digests:
            digest = files[name]["sha256"] = _digest(path)
            if status.st_ctime < now - _SETTLED_SECONDS:
                states[name] = _state(digest, status)
    if digests:
        _flush(paths)  # else a power cut can leave zeros in verified files
    if states:
        write_json(folder / VERIFIED, states)
    write_sealed(folder / CONTENTS, {"facts": facts, "files": files})


def place(cache: Path | str, kind: str, name: str) -> Path:
    """Where something of a kind stands in the cache."""
    return Path(cache) / f"format{FORMAT}" / kind / name


def read(folder: Path) -> dict | None:
    """The facts of a published folder; None if it is missing or damaged.

    Digests are computed once: later, files in the same state are taken to be right.
    """
    try:
        contents = read_sealed(folder / CONTENTS)
        return contents["facts"] if _intact(folder, contents["files"]) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _intact(folder: Path, files: dict[str, dict]) -> bool:
    """Whether the files are those that were published."""
    now, known = time.time(), _verified(folder)
    found = {}
    for name, stamp in files.items():
        path = folder / name
        status = path.stat()
        if status.st_size != stamp["bytes"]:
            return False
        if "sha256" not in stamp:
            continue
        state = _state(stamp["sha256"], status)
        if known.get(name) != state and _digest(path) != stamp["sha256"]:
            return False
        if status.st_ctime < now - _SETTLED_SECONDS:
            found[name] = state
    if found != known:
        with contextlib.suppress(OSError):  # a cache that cannot be written to
            write_json(folder / VERIFIED, found)
    return True


def _state(sha256: str, status: os.stat_result) -> list:
    """Another after any write: none leaves the time of the last change (ctime)."""
    return [sha256, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]


def _verified(folder: Path) -> dict[str, list]:
    try:
        return dict(read_json(folder / VERIFIED))
    except (OSError, ValueError, TypeError):
        return {}


def read_json(path: Path) -> Any:
    """What a UTF-8 JSON file holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically."""
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    write_bytes(path, text.encode())


def write_sealed(path: Path, value: dict) -> None:
    """Writes a JSON object atomically, with a digest of it."""
    write_json(path, {**value, _SEAL: content_key(value)})


def read_sealed(path: Path) -> dict:
    """What ``write_sealed`` wrote.

    Raises:
      ValueError: if it is damaged.
    """
    value = dict(read_json(path))
    if value.pop(_SEAL, None) != content_key(value):
        raise ValueError(f"{path}: damaged")
    return value


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


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(paths: list[Path]) -> None:
    """Has the system write the files to the disk."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """For what writes a path of the cache: makes its folder and names its faults.

    Raises:
      CacheError: if the cache cannot be written to.
      OSError: ENOSPC, with the path's name, if its disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except Exception as error:
        if _disk_full(path, error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        if isinstance(error, OSError) and error.errno in _REFUSED:
            where = Path(error.filename or path)
            if path.is_relative_to(where) or where.is_relative_to(path.parent):
                raise CacheError(
                    f"{where}: {os.strerror(error.errno).lower()}; this is in the "
                    "cache of prepared data: name a folder that can be written to "
                    "with --cache=DIR or TRANSFORMER_ABLATION_CACHE"
                ) from error
        raise


def _disk_full(path: Path, error: BaseException) -> bool:
    """Whether a full disk is behind an error, though a library may hide it."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    words = os.strerror(errno.ENOSPC)
    if any(getattr(x, "errno", None) in _FULL or words in str(x) for x in causes):
        return True
    if isinstance(error, OSError) and error.errno and error.filename:
        return False
    try:
        return shutil.disk_usage(path.parent).free <= 2**20
    except OSError:
        return False


def _prefix(folder: Path) -> str:
    return f".{folder.name}."


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Held by one process at a time; given up when the process ends."""
    with (path.parent / f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_leftovers(folder: Path) -> None:
    """Damaged or half-written versions; only the holder of the lock may call."""
    for path in [folder, *folder.parent.glob(_prefix(folder) + "*")]:
        shutil.rmtree(path, ignore_errors=True)
