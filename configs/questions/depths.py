"""Is depth worth more in the encoder or in the decoder?

Section 3.1 gives both stacks N layers, and rows (C) change both together. Here a
third of one stack's layers is given to the other, and one stack alone is doubled or
made a single layer.

7 rows, 7 minutes of two cores at ``grammar`` by ``plan``, one seed: more encoder layers
lose (-56 BLEU with twice as many), a single one gains 3.4: so short a training bears no
depth with the norm after the sum. More in docs/questions.md.
"""

from configs import table3
from transformer_ablation.config import Config, ConfigError
from transformer_ablation.sweep.rows import BASE, Row, fraction

TITLE = "Depth of the encoder and of the decoder, apart"

get_config = table3.get_config


def get_rows() -> list[Row]:
    """Base has N layers in either stack."""

    def row(name: str, group: str, label: str, encoder: float, decoder: float) -> Row:
        """Shares of N; 0 is one layer."""

        def changes(base: Config) -> dict[str, object]:
            if base.model.decoder_layers is not None:
                raise ConfigError(
                    f"model.decoder_layers: {base.model.decoder_layers}; this sweep "
                    "sets both depths from model.num_layers: leave it None"
                )

            def layers(share: float) -> int:
                parts = round(3 * share), 3
                return fraction(base, "model.num_layers", *parts) if share else 1

            return {
                "model.num_layers": layers(encoder),
                "model.decoder_layers": layers(decoder),
            }

        return Row(name, group, label, changes)

    return [
        BASE,
        row("encoder_4_3", "shape", "four thirds of N and two thirds", 4 / 3, 2 / 3),
        row("decoder_4_3", "shape", "two thirds of N and four thirds", 2 / 3, 4 / 3),
        row("deep_encoder", "one stack", "an encoder of 2 N", 2, 1),
        row("deep_decoder", "one stack", "a decoder of 2 N", 1, 2),
        row("flat_encoder", "one stack", "an encoder of one layer", 0, 1),
        row("flat_decoder", "one stack", "a decoder of one layer", 1, 0),
    ]
