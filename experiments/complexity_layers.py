"""The layers of a sweep file's rows, and what Table 1 prints of each."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from experiments.command import UsageError
from transformer_ablation.config import ModelConfig
from transformer_ablation.sweep.rows import ExpandedRow

ALONE, WHOLE = "attention", "layer"
WIDTH_OF_A_HEAD = 8


class Printed(NamedTuple):
    """Table 1's cells of a layer; ``bound(n)`` is what is in the O of its path."""

    complexity: str
    sequential: str
    path: str
    bound: Callable[[int], float]


def printed(model: ModelConfig, powers: bool = False) -> Printed:
    """Of the layer of a config; with ``powers`` of a convolution dilated by k^l."""
    k, r = model.kernel_width, model.attention_window
    if model.architecture == "recurrent":
        return Printed("n d^2", "n", "n", float)
    if model.architecture == "convolutional":
        dilated = powers or model.kernel_dilation != "none"
        if dilated and k > 1:
            path: tuple[str, Any] = "log_k n", lambda n: math.log(n, k)
        else:
            path = "n/k", lambda n: n / k
        return Printed("k n d^2", "1", *path)
    if r is not None:
        return Printed("r n d", "1", "n/r", lambda n: n / r)
    return Printed("n^2 d", "1", "1", lambda n: 1.0)


class Measured(NamedTuple):
    """One line of the table; ``layer(d)`` makes what is measured."""

    row: str
    label: str
    part: str
    model: ModelConfig
    layer: Callable[[int], Any]

    @property
    def key(self) -> str:
        """What tells it from every other line."""
        return f"{self.row}/{self.part}"

    @property
    def title(self) -> str:
        """Label and part."""
        transformer = self.model.architecture == "transformer"
        whole = ", with projections" if self.part == WHOLE and transformer else ""
        return self.label + whole


def measured(rows: list[ExpandedRow]) -> Iterator[Measured]:
    """Of each row the layer; of our attention also what Table 1 counts, by itself."""
    from transformer_ablation.model import layer_types

    makers = {ALONE: layer_types.attention_alone, WHOLE: layer_types.whole_layer}
    for item in rows:
        model = item.config.model
        ours = model.attention_implementation in ("own", "banded")
        alone = model.architecture == "transformer" and ours
        for part in (ALONE, WHOLE) if alone else (WHOLE,):

            def layer(d: int, part: str = part, model: ModelConfig = model) -> Any:
                return makers[part](layer_types.of_width(model, d))

            yield Measured(item.row.name, item.row.label, part, model, layer)


def check_widths(widths: set[int], rows: list[ExpandedRow]) -> None:
    """Refuse, by a UsageError, a width that a row's heads cannot share."""
    for item in rows:
        model = item.config.model
        wrong = sorted(d for d in widths if d % model.num_heads)
        if wrong and model.architecture == "transformer":
            raise UsageError(
                f"--d, --fixed_d: row {item.row.name} has model.num_heads = "
                f"{model.num_heads}, of which {wrong[0]} is no multiple; choose other "
                "widths, or --config.model.num_heads"
            )


def stacks(rows: list[ExpandedRow], n: int) -> Iterator[tuple[Any, ...]]:
    """(row, label, what is printed, layers from the input up) of every kind of stack.

    Convolutions are a decoder's, which look back only. Of the contiguous one there is
    also the one dilated by k^l, as Table 1 has it.
    """
    from transformer_ablation.model import convolutional, layer_types

    for item in rows:
        # Any width will do: who depends on whom does not depend on it.
        width = WIDTH_OF_A_HEAD * item.config.model.num_heads
        model = layer_types.of_width(item.config.model, width)
        name, label, known = item.row.name, item.row.label, printed(model)
        if model.architecture != "convolutional":
            yield name, label, known, [layer_types.whole_layer(model)]
            continue
        make = functools.partial(layer_types.convolution, model, causal=True)
        dilated, k = model.kernel_dilation != "none", model.kernel_width
        cycle = range(convolutional.CYCLE if dilated else 1)
        apart = [convolutional.dilation(model, number) for number in cycle]
        yield name, label, known, [make(each) for each in apart]
        if not dilated and k > 1:
            apart = [k**number for number in range(math.ceil(math.log(n, k)) + 1)]
            known = printed(model, powers=True)
            yield name, f"{label}, dilations k^l", known, [make(each) for each in apart]
