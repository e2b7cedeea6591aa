"""Are many heads better, or many small keys?

Row (A) of Table 3 (section 6.2) changes the number of heads and their size together, at
a constant cost; row (B) changes d_k alone. Here one head with keys and values of base's
size, of twice it and of all of base's heads together, and half and twice as many heads
of base's size: what is a head worth, what is its size?

6 rows, 6 minutes of two cores at ``grammar`` by ``plan``, one seed: one head as wide as
all loses 1.4 BLEU, which may be chance, one head of the same size 8.1, and twice the
heads gain 4.2: width counts. More in docs/questions.md.
"""

from collections.abc import Callable

from configs import table3
from transformer_ablation.config import Config
from transformer_ablation.sweep.rows import BASE, Row, fraction

TITLE = "Number of heads and their size, apart"

get_config = table3.get_config


def get_rows() -> list[Row]:
    """One head of growing size; then half and twice base's heads of base's size."""

    def one(name: str, label: str, times: Callable[[Config], int]) -> Row:
        def changes(base: Config) -> dict[str, object]:
            sizes = {
                path: fraction(base, path, times(base), 1)
                for path in ("model.d_k", "model.d_v")
            }
            return {"model.num_heads": 1, **sizes}

        return Row(name, "one head", f"one head {label}", changes)

    def many(name: str, numerator: int, denominator: int) -> Row:
        def changes(base: Config) -> dict[str, object]:
            parts = numerator, denominator
            return {"model.num_heads": fraction(base, "model.num_heads", *parts)}

        return Row(name, "heads", f"{name.replace('_', ' ')} of base's size", changes)

    return [
        BASE,
        one("one", "of base's size", lambda base: 1),
        one("one_double", "of twice the size", lambda base: 2),
        one("one_as_all", "as large as all", lambda base: base.model.num_heads),
        many("half_the_heads", 1, 2),
        many("twice_the_heads", 2, 1),
    ]
