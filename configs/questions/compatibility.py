"""Which function should say how well a query and a key fit?

Section 3.2.1: additive attention and dot products "perform similarly" at small d_k,
and unscaled dot products fall behind at large d_k, "we suspect" because the softmax
saturates; section 4 on row (B) says that a better function "may be beneficial". Here
each of the three functions has keys of a quarter, of base's and of four times its
size; d_v stays, so nothing else changes.

9 rows, 10 minutes of two cores at ``grammar`` by ``plan``, one seed: the unscaled
product loses at every d_k, most at the largest (-27, -44, -56 BLEU); additive scores
are no better than scaled products. At ``multi30k_small``, a quarter of an hour a row,
the unscaled product of base's size loses 25.0 BLEU. More in docs/questions.md.
"""

from configs import table3
from transformer_ablation.sweep.rows import BASE, Row, fraction

TITLE = "Compatibility functions and the size of keys"

get_config = table3.get_config

SIZES = {"quarter": (1, 4), "same": (1, 1), "fourfold": (4, 1)}
FUNCTIONS = ("scaled_dot", "dot", "additive")


def get_rows() -> list[Row]:
    """Base, then every other pair of a function and a size of keys."""

    def row(function: str, size: str) -> Row:
        return Row(
            f"{function}_{size}",
            function,
            f"{function}, {size} keys",
            lambda base: {
                "model.compatibility": function,
                "model.d_k": fraction(base, "model.d_k", *SIZES[size]),
            },
        )

    rows = [row(function, size) for function in FUNCTIONS for size in SIZES]
    return [BASE, *(r for r in rows if r.name != "scaled_dot_same")]
