"""Norms of a few groups of parameters, of their gradients and of their changes."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Norms(NamedTuple):
    """Euclidean norms of one group in one update.

    ``parameter`` is of the parameters before it, ``gradient`` of their gradient before
    any clipping, and ``update`` of what is taken off them.
    """

    parameter: Any
    gradient: Any
    update: Any


def group_of(name: str) -> str:
    """The group of a parameter by the first part of its path.

    ``embedding`` are all embedding matrices, ``positions`` learned position tables;
    ``encoder`` and ``decoder`` have the norms behind their stacks as well.
    """
    for group in ("embedding", "positions", "encoder", "decoder"):
        if group in name:
            return group
    return name


def square(x: jax.Array) -> jax.Array:
    """The sum of squares, as one product: no array of squares is made."""
    return jnp.vdot(x, x, precision="highest")


def norm(squares: Any) -> jax.Array:
    """The Euclidean norm of everything that the leaves are the sums of squares of."""
    return jnp.sqrt(sum(jax.tree.leaves(squares)))


def norms_by_group(
    params: Any, gradient_squares: Any, directions: Any, learning_rate: Any
) -> dict[str, jax.Array]:
    """``{group: Norms as an array [3]}`` of an update by -rate * direction.

    ``gradient_squares`` has a sum of squares for each parameter.
    """
    names: dict[str, list[str]] = {}
    for name in params:
        names.setdefault(group_of(name), []).append(name)
    trees = (
        jax.tree.map(square, params),
        gradient_squares,
        jax.tree.map(square, directions),
    )
    found = {}
    for group, members in names.items():
        parameter, gradient, direction = (norm([t[n] for n in members]) for t in trees)
        found[group] = jnp.stack([parameter, gradient, learning_rate * direction])
    return found


def read(found: dict[str, jax.Array]) -> dict[str, Norms]:
    """The norms of every group as plain numbers, and those of ``all`` together."""
    arrays = jax.device_get(found)
    groups = {name: Norms(*map(float, array)) for name, array in arrays.items()}
    together = Norms(
        *(math.hypot(*column) for column in zip(*groups.values(), strict=True))
    )
    return {**groups, "all": together}
