"""What ``experiments.complexity`` will need: time and memory, before it starts."""

import math
from collections.abc import Sequence
from typing import Any

from experiments.command import UsageError
from experiments.complexity_flags import Asked
from experiments.complexity_layers import WHOLE, Measured
from experiments.pace import span
from transformer_ablation.benchmark.complexity import (
    LEAST_ROUNDS,
    MOST_ROUNDS,
    Budget,
    Size,
)
from transformer_ablation.model.band_costs import seen

# Operations a second of one core, seconds of a start, of a program that is compiled,
# and of the paths of one length: less and more than two busy cores have shown.
RATE, START, COMPILE, PATHS = 8e9, 10.0, 1.0, 12.0
GIB = 2**30


def estimate(
    asked: Asked, lines: Sequence[Measured], budget: Budget, batch: int
) -> str:
    """What is measured and how long it takes at most, where nothing else runs."""
    sizes = [size for of in asked.axes.values() for size in of]
    seconds = START + PATHS * len(asked.path_n)
    for line in lines:
        for size in sizes:
            call = min(budget.most, batch * operations(line, size) / RATE)
            most = min(budget.seconds + call, MOST_ROUNDS * call)
            seconds += COMPILE + call + max(LEAST_ROUNDS * call, most)
    return (
        f"{len(lines)} layers at {len(sizes)} sizes, paths at {len(asked.path_n)} "
        f"lengths: {span(seconds)} at most on free cores"
    )


def operations(line: Measured, size: Size) -> float:
    """Of the products of one sequence, by hand: docs/complexity.md has the formulas."""
    model, (n, d) = line.model, size
    if model.architecture == "recurrent":
        return 16.0 * n * d * d
    if model.architecture == "convolutional":
        return 4.0 * model.kernel_width * n * d * d
    projections = 8.0 * n * d * d if line.part == WHOLE else 0.0
    return 4.0 * n * seen(model, n, causal=False) * d + projections


def check_memory(
    asked: Asked, lines: Sequence[Measured], batch: int, memory: float
) -> None:
    """Refuses layers whose parameters and inputs do not fit into ``memory`` bytes.

    Raises:
      UsageError: naming the row, the size and the flags that make it.
    """
    for axis, sizes in asked.axes.items():
        largest, fixed = sizes[-1], {"n": "fixed_d", "d": "fixed_n"}[axis]
        for line in lines:
            layer = line.layer(largest.d)
            needed = _bytes((layer.parameters, layer.inputs(batch, largest.n)))
            if needed > memory:
                raise UsageError(
                    f"--{axis}, --{fixed}, --batch: at n = {largest.n:,}, d = "
                    f"{largest.d:,} and {batch:,} sequences, parameters and inputs of "
                    f"row {line.row} take {needed / GIB:,.1f} GiB; half of this "
                    f"machine's memory, {memory / GIB:,.1f} GiB, may be used"
                )


def _bytes(shapes: Any) -> int:
    import jax

    leaves = jax.tree.leaves(shapes)
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
