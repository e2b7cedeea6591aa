"""Table 1 of "Attention Is All You Need": the layer types that it compares.

Varies what passes between positions: self-attention of all pairs, restricted to a
neighbourhood of ``NEIGHBOURS`` positions, recurrence, and convolution of width
``WIDTH``, contiguous or with growing dilation. Table 1 is about layers and their costs,
not about training, so it is measured and not swept:

    python -m experiments.complexity --figure=table1.svg

takes a layer of each row's model at sizes of its own (flags), and of the config the
rows, the heads and the type of cell. Minutes on two cores. The rows are whole models
all the same, of one depth and width, and can be trained as any sweep's:

    python -m experiments.sweep --config=configs/table1.py:grammar --workdir=runs/t1

Outcome in the paper: O(n^2 d), O(r n d), O(n d^2) and O(k n d^2) operations a layer;
O(n) sequential operations in a recurrent layer, O(1) in others; and paths of O(1),
O(n/r), O(n), and O(n/k) or O(log_k(n)) between two positions.
"""

from configs import table3
from transformer_ablation.config import of_architecture
from transformer_ablation.sweep.rows import BASE, Row

TITLE = 'Table 1 of "Attention Is All You Need": types of layers'
NEIGHBOURS, WIDTH = 16, 3

get_config = table3.get_config


def get_rows() -> list[Row]:
    """The rows in the paper's order."""
    convolutional = {
        **of_architecture("convolutional"),
        "model.kernel_width": WIDTH,
    }
    return [
        Row("base", "base", "self-attention", BASE.changes),
        Row(
            "recurrent",
            "recurrent",
            "recurrent (LSTM)",
            lambda base: of_architecture("recurrent"),
        ),
        Row(
            "convolutional",
            "convolutional",
            "convolutional",
            lambda base: convolutional,
        ),
        Row(
            "dilated",
            "convolutional",
            "convolutional, dilated",
            lambda base: {**convolutional, "model.kernel_dilation": "doubling"},
        ),
        Row(
            "restricted",
            "restricted",
            "self-attention (restricted)",
            lambda base: {
                "model.attention_window": NEIGHBOURS,
                "model.attention_implementation": "banded",
            },
        ),
    ]
