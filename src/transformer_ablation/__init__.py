"""Ablation studies of the Transformer of "Attention Is All You Need".

For notebooks and programs: ``load_run(path)``, ``load_sweep(path)`` and ``RunError``,
what they raise. They are imported when asked for: this package alone loads nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer_ablation.runs.errors import RunError
    from transformer_ablation.runs.run import load_run
    from transformer_ablation.runs.sweep import load_sweep

__version__ = "0.1.0"

# Rises in any change that can move a number in a record; tables refuse to mix two.
RESULTS_VERSION = 1

# Name: module that has it.
_OFFERED = {
    "RunError": "transformer_ablation.runs.errors",
    "load_run": "transformer_ablation.runs.run",
    "load_sweep": "transformer_ablation.runs.sweep",
}
__all__ = ["RESULTS_VERSION", "RunError", "load_run", "load_sweep"]


def __getattr__(name: str) -> Any:
    """What is offered, imported at its first use (PEP 562)."""
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_OFFERED[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_OFFERED})
