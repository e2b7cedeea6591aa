"""Where the arrays of a checkpoint are not those of a model."""

from typing import Any

import jax
import numpy as np


def first_difference(saved: Any, wanted: Any) -> str | None:
    """The first array that has another place, size or type in this model.

    Both are pytrees of arrays or of their shapes; tuples and lists look alike.
    """
    theirs, ours = _described(saved), _described(wanted)
    for path in sorted(theirs.keys() | ours.keys(), key=_parameters_first):
        if theirs.get(path) != ours.get(path):
            return (
                f"{path} is {theirs.get(path, 'absent')} in the checkpoint and "
                f"{ours.get(path, 'absent')} in this model"
            )
    return None


def _parameters_first(path: str) -> tuple[bool, str]:
    """Before the optimizer's moments, which have the same sizes."""
    return not path.startswith("params/"), path


def _described(tree: Any) -> dict[str, str]:
    """``{path: "dtype[shape]"}`` of the leaves."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        "/".join(_key_name(key) for key in path): _leaf_name(leaf)
        for path, leaf in leaves
    }


def _key_name(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _leaf_name(leaf: Any) -> str:
    shape = ",".join(map(str, leaf.shape))
    return f"{np.dtype(leaf.dtype).name}[{shape}]"
