"""A folder for figures, and what drawing them needs."""

import importlib.util
import tempfile
from pathlib import Path

from experiments.command import UsageError


def need_matplotlib(what: str) -> None:
    """Refuses a flag or command that matplotlib is missing for.

    Raises:
      UsageError: if it is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            f"{what} needs matplotlib, which is not installed: pip install -r "
            "requirements.txt"
        )


def writable_folder(given: str | Path, flag: str) -> Path:
    """The folder that a flag names, made if needed and tried, before the work.

    Raises:
      UsageError: if no file can be written there.
    """
    path = Path(given)
    try:
        if not str(given).strip():
            raise OSError(None, "no name is given")
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(
            f"--{flag}={given}: cannot write there ({why}); name a folder with "
            f"--{flag}, which is made if it is missing"
        ) from None
    return path
