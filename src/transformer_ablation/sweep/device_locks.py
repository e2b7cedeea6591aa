"""Which devices the launchers of this machine use, so that two do not take the same."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any


class DeviceLocks(contextlib.AbstractContextManager):
    """Devices that this launcher holds until it ends, by a lock on a file each.

    The files lie in a folder of this user and machine. Where none can be made, every
    device counts as free. ``busy`` are those taken though another launcher has them.
    """

    def __init__(self, folder: Path | None = None):
        user = os.getuid()
        self._folder = folder or (
            Path(tempfile.gettempdir()) / f"transformer_ablation-{user}-devices"
        )
        self._files: list[IO[str]] = []
        self.busy: list[str] = []

    def take(self, kind: str, names: Sequence[str], needed: int) -> list[str]:
        """``needed`` of the names, in their order; free ones, as far as there are."""
        taken: list[str] = []
        for name in names:
            if len(taken) < needed and self._lock(kind, name):
                taken.append(name)
        others = [name for name in names if name not in taken]
        self.busy = others[: needed - len(taken)]
        chosen = {*taken, *self.busy}
        return [name for name in names if name in chosen]

    def _lock(self, kind: str, name: str) -> bool:
        file = None
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            path = self._folder / f"{kind}-{name.replace(os.sep, '_')}"
            file = open(path, "w")  # noqa: SIM115
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert file is not None
            file.close()
            return False
        except OSError:
            if file is not None:
                file.close()
            return True
        self._files.append(file)
        return True

    def __exit__(self, *_: Any) -> None:
        for file in self._files:
            file.close()
        self._files = []
