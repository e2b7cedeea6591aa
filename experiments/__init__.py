"""Command lines: ``python -m experiments.NAME``, from the root of the repository.

The library is found in ``src/`` when it is not installed. While a command loads, Ctrl-C
ends it with one line, and with the exit code of a shell for it.
"""

import importlib.util
import os
import pathlib
import signal
import sys
from typing import Any

INTERRUPTED = 128 + signal.SIGINT

_SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
if importlib.util.find_spec("transformer_ablation") is None:
    sys.path.insert(0, str(_SOURCE))


def _leave(*_: Any) -> None:
    """Nothing has begun; an exception would end in whatever is being imported."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def loaded() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again, if it was one before."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# So it is named while Python looks for what follows -m.
if sys.argv[:1] == ["-m"] and (
    signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _leave)
