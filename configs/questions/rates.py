"""Which learning rate does each architecture want?

The schedule of section 5.3 and its size were found for the Transformer. A comparison of
architectures that gives all of them its rate is in its favour, so before
``configs/table2.py`` is read, each of its rows is trained here with half to eight times
base's rate. Choose by the validation set; Table 2 is of the test set.

30 rows, 21 minutes of two cores at ``grammar`` by ``plan``, one seed: twice the rate is
best, four times for the LSTM with attention. At ``multi30k_small`` twice base's loses
3.6 BLEU. More in docs/questions.md.
"""

from configs import table2, table3
from transformer_ablation.config import Config
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Learning rate of each architecture"

get_config = table3.get_config

FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)


def get_rows() -> list[Row]:
    """The architectures of Table 2, each at five rates; base has its own."""

    def rated(name: str, label: str, changes: table2.Changes, factor: float) -> Row:
        def changed(base: Config) -> dict[str, object]:
            scale = base.optimizer.learning_rate_scale
            return {**changes(base), table2.RATE: factor * scale}

        label = f"{label}, {factor:g} times the rate"
        return Row(f"{name}_x{factor:g}", name, label, changed)

    kinds = {"transformer": ("Transformer", BASE.changes), **table2.ARCHITECTURES}
    rows = [
        rated(name, *kind, factor) for name, kind in kinds.items() for factor in FACTORS
    ]
    return [BASE, *(row for row in rows if row.name != "transformer_x1")]
