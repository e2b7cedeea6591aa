"""Model and batches of a config."""

from transformer_ablation import parallel
from transformer_ablation.config import Config, ConfigError
from transformer_ablation.data import batches
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.model.architectures import new_model
from transformer_ablation.model.encoder_decoder import EncoderDecoder
from transformer_ablation.vocabulary import BOS, EOS, PAD


def build_model(config: Config, vocabulary_size: int) -> EncoderDecoder:
    """The network of a config.

    Raises:
      ConfigError: if it needs another device than there is.
    """
    platform = parallel.device_description()["platform"]
    if config.model.attention_implementation == "cudnn" and platform != "gpu":
        raise ConfigError(
            "model.attention_implementation: 'cudnn' needs an NVIDIA GPU, and JAX has "
            f"a {platform} here; make it 'own' or 'xla'"
        )
    return new_model(config.model, vocabulary_size, pad_id=PAD, bos_id=BOS, eos_id=EOS)


def train_batches(config: Config, prepared: Prepared) -> batches.TrainBatches:
    """The batches of a config's training, in the order of its seed."""
    return batches.train_batches(config, prepared.train, prepared.plan)
