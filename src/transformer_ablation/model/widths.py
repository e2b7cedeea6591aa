"""Sources encoded in one of a few widths: no work for padding that all have."""

from functools import partial
from typing import Any

import flax.linen as nn
import jax.numpy as jnp

NARROWEST = 16


def widths(width: int) -> tuple[int, ...]:
    """Up to ``width``, each half as large again as the one before, in eights."""
    found, narrower = [], NARROWEST
    while 5 * narrower <= 4 * width:
        found.append(narrower)
        narrower = -(-narrower * 3 // 2 // 8) * 8
    return (*found, width)


def longer(x, axis: int, added: int):
    """``x`` with so many zeros behind it along an axis."""
    return jnp.pad(x, [(0, added if i == axis else 0) for i in range(x.ndim)])


def in_fitting_width(start: Any, model: Any, source_BS, pad_id: int, fitted: bool):
    """``start(model, source_BS, used=width)`` of the least width with all tokens.

    The result has one shape for any width; every width is compiled. Without
    ``fitted`` the only one is that of ``source_BS``.
    """
    width = source_BS.shape[1]
    offered = widths(width) if fitted else (width,)
    places_S = jnp.where((source_BS != pad_id).any(axis=0), jnp.arange(width), 0)
    return nn.switch(
        jnp.searchsorted(jnp.asarray(offered), places_S.max() + 1),
        [partial(start, used=used) for used in offered],
        model,
        source_BS,
    )
