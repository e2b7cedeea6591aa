"""Do sinusoids help with sentences longer than any in training?

Section 3.5 chose sines and cosines over learned vectors, with nearly the same BLEU (row
E), because they "may allow the model to extrapolate to sequence lengths longer than
the ones encountered during training". Here all rows train on short pairs alone, a third
of the scale's longest, and are scored on the whole validation set; ``compare`` gives
BLEU by length. At ``grammar`` sentences have at most 15 pieces in training, so those of
16 words (punctuation counts) are longer:

    python -m experiments.compare --workdir=W --rows=base,learned --length_buckets=10,16

4 rows, 4 minutes of two cores at ``grammar`` by ``plan``, one seed: without positions
-9.9 BLEU, no other difference beyond chance; on longer sentences all of them lose, by
11 BLEU with sinusoids, 15 with learned vectors; at ``multi30k_small`` by 6 and 8. More
in docs/questions.md.
"""

import ml_collections

from configs import table3
from transformer_ablation.sweep.rows import BASE, Row

TITLE = "Positions, trained on short sentences"
SHARE = 3


def get_config(scale: str = "grammar") -> ml_collections.ConfigDict:
    """The base model of a scale, without the longer pairs in training."""
    config = table3.get_config(scale)
    config.data.max_train_length = config.data.max_train_length // SHARE
    return config


def get_rows() -> list[Row]:
    """Sines and cosines in turn (base), in halves, learned vectors, nothing."""
    return [
        BASE,
        Row(
            "halves",
            "sinusoidal",
            "all sines, then all cosines",
            lambda base: {"model.sinusoids": "halves"},
        ),
        Row(
            "learned",
            "learned",
            "learned positions",
            lambda base: {"model.positions": "learned"},
        ),
        Row("none", "none", "no positions", lambda base: {"model.positions": "none"}),
    ]
