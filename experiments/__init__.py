"""Command lines: ``python -m experiments.NAME``, from the root of the repository.

The library is found in ``src/`` when it is not installed.
"""

import importlib.util
import pathlib
import sys

_SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
if importlib.util.find_spec("transformer_ablation") is None:
    sys.path.insert(0, str(_SOURCE))
