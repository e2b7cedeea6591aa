"""How far must a position look?

Section 4 proposes attention restricted to a neighbourhood of r positions for long
sequences (a cost of O(r n d), paths of n / r) and leaves it to future work. Here the
self-attention of both stacks sees a neighbourhood of r positions around its own, the
decoder's the half of it that has been; attention from target to source stays whole.

6 rows, 6 minutes of two cores at ``grammar`` by ``plan``, one seed: r = 1 loses 11.3
BLEU, three positions and more do as well as all. More in docs/questions.md.
"""

from configs import table3
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Self-attention restricted to a neighbourhood of r positions"

get_config = table3.get_config

SIZES = (1, 3, 5, 9, 17)


def get_rows() -> list[Row]:
    """Base sees all positions; with r = 1 each sees itself alone."""

    def row(r: int) -> Row:
        return Row(
            f"r{r}", "window", f"r = {r}", lambda base: {"model.attention_window": r}
        )

    return [BASE, *map(row, SIZES)]
