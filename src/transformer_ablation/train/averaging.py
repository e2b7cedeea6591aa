"""The mean of several checkpoints' parameters (section 6.1)."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np


def average(trees: Sequence[Any]) -> Any:
    """The element-wise mean of pytrees of equal shape, summed in float64.

    Raises:
      ValueError: if there is none.
    """
    if not trees:
        raise ValueError("there is no checkpoint to average")

    def mean(*leaves: Any) -> np.ndarray:
        total = np.sum([np.asarray(x, np.float64) for x in leaves], axis=0)
        return (total / len(leaves)).astype(np.asarray(leaves[0]).dtype)

    return jax.tree.map(mean, *trees)
