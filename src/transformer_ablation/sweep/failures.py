"""What an exception or a dead process means: disk full, memory full, which signal."""

import errno
import os
import signal
from collections.abc import Iterator


def out_of_space(error: BaseException | None) -> OSError | None:
    """The "no space left" or "quota exceeded" error behind an exception, if any."""
    for each in _chain(error):
        if isinstance(each, OSError) and each.errno in (errno.ENOSPC, errno.EDQUOT):
            return each
        # Libraries with a C++ core pass on the system's words, not its number.
        if os.strerror(errno.ENOSPC) in str(each):
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return None


def out_of_memory(error: BaseException | None) -> bool:
    """Whether memory, of the machine or of a device, did not suffice."""
    return any(
        isinstance(each, MemoryError)
        or (isinstance(each, OSError) and each.errno == errno.ENOMEM)
        or "RESOURCE_EXHAUSTED" in str(each)
        for each in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and those it came from."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def death(code: int) -> str:
    """How a process ended, from its exit code; negative for a signal."""
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", perhaps out of memory: see dmesg" if killed(code) else ""
    return f"its process was killed by {name}{hint}"


def killed(code: int) -> bool:
    """Whether it was SIGKILL, which a machine without memory sends."""
    return code == -signal.SIGKILL
