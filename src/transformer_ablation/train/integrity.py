"""SHA-256 of every file of a folder, in a manifest that is written last.

A folder without a manifest is one whose writer was stopped before the end. One flipped
bit in an array is restored in silence by every format there is: the manifest finds it.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

MANIFEST = "sha256.json"
_SHOWN = 3
# What a network file system keeps of a file that was deleted while open.
_IGNORED = ".nfs"


def seal(folder: Path) -> None:
    """Writes the manifest, as the last file and in one step.

    The files must be complete: nothing may write to them any more.

    Raises:
      OSError: if it cannot be written; the folder then stays without one.
    """
    listed = {
        name: {"size": path.stat().st_size, "sha256": _digest(path)}
        for name, path in sorted(_files(folder).items())
    }
    temporary = folder / f".{MANIFEST}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            json.dump({"files": listed}, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / MANIFEST)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush(folder)


def is_sealed(folder: Path) -> bool:
    """Whether there is a manifest; it is not read."""
    return (folder / MANIFEST).is_file()


def faults(folder: Path) -> list[str]:
    """What differs from the manifest, file by file; empty where all is as written.

    All files are read.
    """
    try:
        listed = _listed(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{MANIFEST} cannot be read"]
    found = _files(folder)
    problems = [f"{name} is missing" for name in listed if name not in found]
    problems += [f"{name} is not one of its files" for name in found.keys() - listed]
    for name, (size, digest) in listed.items():
        if name in found:
            problems += _fault(name, found[name], size, digest)
    return sorted(problems)


def as_text(problems: list[str]) -> str:
    """The first few faults, and how many more there are."""
    more = len(problems) - _SHOWN
    text = "; ".join(problems[:_SHOWN])
    return text + (f"; and {more} more" if more > 0 else "")


def _listed(folder: Path) -> dict[str, tuple[int, str]]:
    """``{name: (size, digest)}`` of the manifest."""
    content: Any = json.loads((folder / MANIFEST).read_bytes())
    return {
        name: (int(entry["size"]), str(entry["sha256"]))
        for name, entry in content["files"].items()
    }


def _fault(name: str, path: Path, size: int, digest: str) -> list[str]:
    try:
        now = path.stat().st_size
        if now != size:
            return [f"{name} has {now:,} bytes instead of {size:,}"]
        if _digest(path) != digest:
            return [f"{name} has other bytes than were written"]
    except OSError as error:
        return [f"{name} cannot be read ({error.strerror})"]
    return []


def _files(folder: Path) -> dict[str, Path]:
    """Every file below the folder but the manifest, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if not path.is_dir()
        and path != folder / MANIFEST
        and not path.name.startswith(_IGNORED)
    }


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(folder: Path) -> None:
    """Puts the new name on disk as well, where the file system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
