"""The model of each ``model.architecture``."""

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.convolutional import Convolutional
from transformer_ablation.model.encoder_decoder import EncoderDecoder
from transformer_ablation.model.recurrent import Recurrent
from transformer_ablation.model.transformer import Transformer

ARCHITECTURES: dict[str, type[EncoderDecoder]] = {
    "transformer": Transformer,
    "recurrent": Recurrent,
    "convolutional": Convolutional,
}


def new_model(
    config: ModelConfig, vocabulary_size: int, *, pad_id: int, bos_id: int, eos_id: int
) -> EncoderDecoder:
    """The network of a config, a ``TranslationModel``."""
    of_kind = ARCHITECTURES[config.architecture]
    return of_kind(config, vocabulary_size, pad_id, bos_id, eos_id)
