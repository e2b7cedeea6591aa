"""What do tying and scaling the embeddings buy?

Section 3.4 uses one matrix for source, target and output, and multiplies embeddings by
sqrt(d_model); it gives no reason and no comparison for either. A matrix of its own for
the output makes the model larger, which the table's parameters show.

6 rows, 6 minutes of two cores at ``grammar`` by ``plan``, one seed: tying makes no
difference beyond chance, the scale does (-47 BLEU without; -13.9 at
``multi30k_small``). More in docs/questions.md.
"""

from typing import Any

from configs import table3
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Tied and scaled embeddings"

get_config = table3.get_config


def get_rows() -> list[Row]:
    """Base ties all three and scales by sqrt(d_model)."""

    def row(name: str, group: str, label: str, changes: dict[str, Any]) -> Row:
        return Row(name, group, label, lambda base: changes)

    tied, scaled = "model.tied_embeddings", "model.scale_embeddings"
    stddev, logits = "model.embedding_stddev", "model.scale_logits"
    return [
        BASE,
        row("tie_decoder", "tying", "target and output tied", {tied: "decoder"}),
        row("tie_none", "tying", "three matrices", {tied: "none"}),
        row("unscaled", "scale", "embeddings as they are", {scaled: False}),
        row(
            "unscaled_wide",
            "scale",
            "as they are, of standard deviation 1, logits by 1 / sqrt(d_model)",
            {scaled: False, stddev: 1.0, logits: True},
        ),
        row("untied_unscaled", "scale", "neither", {tied: "none", scaled: False}),
    ]
