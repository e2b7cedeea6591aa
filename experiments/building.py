"""Model and batches of a config."""

from transformer_ablation.config import Config
from transformer_ablation.data.batches import TrainBatches
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.vocabulary import BOS, EOS, PAD


def build_model(config: Config, vocabulary_size: int) -> Transformer:
    """The network of a config."""
    return Transformer(
        config.model, vocabulary_size, pad_id=PAD, bos_id=BOS, eos_id=EOS
    )


def train_batches(config: Config, prepared: Prepared) -> TrainBatches:
    """The batches of a config's training, in the order of its seed."""
    return TrainBatches(
        prepared.train,
        tokens_per_batch=config.data.tokens_per_batch,
        length_buckets=config.data.length_buckets,
        packed_length=config.data.packed_length,
        max_train_length=config.data.max_train_length,
        accumulation_steps=config.optimizer.accumulation_steps,
        seed=config.train.seed,
        plan=prepared.plan,
    )
