"""Does it matter which label smoothing it is?

Section 5.4 gives a rate of 0.1 and cites Szegedy et al. (2015), who spread it over all
classes; the first code spread it over the wrong ones, later codes leave padding out. Of
37,000 classes these hardly differ; how much is in the rate. Here all three at 0.1, and
rates besides.

7 rows, 7 minutes of two cores at ``grammar`` by ``plan``, one seed: neither the
convention nor rates up to 0.2 differ beyond chance, 0.4 loses 3.6 BLEU. More in
docs/questions.md.
"""

from configs import table3
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Label smoothing: convention and rate"

get_config = table3.get_config

RATE = "regularization.label_smoothing"
CONVENTION = "regularization.label_smoothing_convention"
RATES = (0.0, 0.05, 0.2, 0.4)


def get_rows() -> list[Row]:
    """Base spreads 0.1 over all classes."""

    def convention(name: str) -> Row:
        return Row(
            name, "convention", name.replace("_", " "), lambda base: {CONVENTION: name}
        )

    def rate(value: float) -> Row:
        return Row(f"ls{value}", "rate", f"rate {value:g}", lambda base: {RATE: value})

    return [
        BASE,
        *map(convention, ("other_classes", "other_pieces")),
        *map(rate, RATES),
    ]
