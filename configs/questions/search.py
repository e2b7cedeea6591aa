"""What do the beam and the length penalty buy?

Section 6.1 searches with 4 candidates and a penalty of 0.6, "chosen after
experimentation on the development set". Rows differ in decoding alone, so base is
trained once and the others take its checkpoints.

10 rows trained once, a minute of two cores at ``grammar`` by ``plan``, one seed: greedy
search loses 3.1 BLEU, a penalty of 1.5 loses 3.0, all between is the same. At
``multi30k_small`` greedy search loses 1.7, beams of 8 and more up to 1.0. More in
docs/questions.md.
"""

from configs import table3
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Beam size and length penalty"

get_config = table3.get_config

BEAMS = (1, 2, 8, 16, 32)
PENALTIES = (0.0, 0.3, 1.0, 1.5)


def get_rows() -> list[Row]:
    """Base: beam 4, alpha 0.6."""

    def beam(size: int) -> Row:
        label = "greedy" if size == 1 else f"beam {size}"
        return Row(
            f"beam{size}", "beam", label, lambda base: {"decode.beam_size": size}
        )

    def penalty(alpha: float) -> Row:
        changes = {"decode.length_penalty_alpha": alpha}
        return Row(f"alpha{alpha}", "alpha", f"alpha {alpha:g}", lambda base: changes)

    return [BASE, *map(beam, BEAMS), *map(penalty, PENALTIES)]
