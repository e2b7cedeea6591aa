"""Where should the layer norm stand, and does warm-up depend on it?

The paper normalises after each residual sum (section 3.1), though its first code soon
normalised each sublayer's input instead. Later work (Xiong et al. 2020) finds that the
former needs the warm-up of section 5.3, the more the deeper the model is. Here both,
at base's depth and at twice it, with base's warm-up and a tenth of it.

8 rows, 10 minutes of two cores at ``grammar`` by ``plan``, one seed: after the sum
nothing but base trains; in front of the sublayer all does, and three layers best with
the short warm-up (+7.4 BLEU). At ``multi30k_small``, two rows: in front +1.5, after the
sum with twice the layers -21.1. More in docs/questions.md.
"""

from configs import table3
from transformer_ablation.config import Config
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Layer norm before or after, by depth and warm-up"

get_config = table3.get_config


def get_rows() -> list[Row]:
    """Every combination of norm, depth and warm-up."""

    def row(norm: str, deep: bool, short: bool) -> Row:
        def changes(base: Config) -> dict[str, object]:
            steps = base.optimizer.warmup_steps
            return {
                "model.norm": norm,
                **table3.depth(base, 1 + deep),
                "optimizer.warmup_steps": max(1, steps // 10) if short else steps,
            }

        words = [norm, *["deep"] * deep, *["short"] * short]
        label = ", ".join(
            [
                f"{norm}-norm",
                *["twice the layers"] * deep,
                *["a tenth of the warm-up"] * short,
            ]
        )
        return Row("_".join(words), norm, label, changes)

    rows = [
        row(norm, deep, short)
        for norm in ("post", "pre")
        for deep in (False, True)
        for short in (False, True)
    ]
    return [BASE, *rows[1:]]
