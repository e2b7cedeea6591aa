"""How far must a position look?

Section 4 proposes attention restricted to a neighbourhood of r positions for long
sequences (a cost of O(r n d), paths of n / r) and leaves it to future work. Here the
self-attention of both stacks looks r positions to either side; attention from target
to source stays whole.
"""

from configs import table3
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Self-attention restricted to a neighbourhood of r positions"

get_config = table3.get_config

RADII = (1, 2, 4, 8, 16)


def get_rows() -> list[Row]:
    """Base sees all positions; the others r to either side."""

    def row(r: int) -> Row:
        return Row(
            f"r{r}", "window", f"r = {r}", lambda base: {"model.attention_window": r}
        )

    return [BASE, *map(row, RADII)]
