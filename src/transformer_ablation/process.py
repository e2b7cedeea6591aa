"""Which process this is, on which cores, and whether another is still there."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BOOT = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = "/proc/self/ns/pid"
DEAD_STATES = ("Z", "X")


def cores() -> set[int]:
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux: those given to this process
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def this_process() -> dict[str, Any]:
    """The machine's name, the process number, and when the process started."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": started(pid)}


def this_machine() -> str | None:
    """What processes with one set of numbers share: a boot and a pid namespace.

    Names of hosts may be equal (``localhost``) or change; None where the system does
    not say.
    """
    try:
        return f"{BOOT.read_text().strip()} {os.readlink(NAMESPACE)}"
    except OSError:
        return None


def started(pid: int) -> str | None:
    """Start of a process in the kernel's own clock; None where that cannot be read."""
    fields = _stat(pid)
    return fields[19] if fields else None


def is_gone(process: Mapping[str, Any]) -> bool:
    """Whether a process of this machine has ended; one not yet reaped has.

    ``process`` is what ``this_process`` gave there; its number may have been given to
    another since.
    """
    pid = process["pid"]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # alive, another user's
    fields = _stat(pid)
    if fields and fields[0] in DEAD_STATES:
        return True
    known = process.get("started")
    return known is not None and known != started(pid)


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name, which may hold spaces."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
