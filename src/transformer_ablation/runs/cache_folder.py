"""Where prepared data and compiled programs are kept."""

import os
from pathlib import Path


def cache_folder(named: str | os.PathLike | None = None) -> Path:
    """``named``, else TRANSFORMER_ABLATION_CACHE, else one in the user's home."""
    chosen = named or os.environ.get("TRANSFORMER_ABLATION_CACHE")
    return Path(chosen or "~/.cache/transformer_ablation").expanduser().absolute()
