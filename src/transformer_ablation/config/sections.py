"""The schema of a run: one frozen dataclass a section.

No field has a default here: every default stands once, in ``configs/base.py``.
"""

import dataclasses
import math
from typing import Any

from transformer_ablation.config.rules import choice, flag, integer, real, text


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The network (section 3 of the paper). ``d_k`` and ``d_v`` are per head.

    ``num_layers`` are those of either stack, or of the encoder where the decoder has
    ``decoder_layers``. A field that the architecture does not read stands at its value
    in ``UNREAD``.
    """

    architecture: str = choice("transformer", "recurrent", "convolutional")
    num_layers: int = integer(1)
    decoder_layers: int | None = integer(1, optional=True)
    d_model: int = integer(1)
    d_ff: int = integer(1)
    num_heads: int = integer(1)
    d_k: int = integer(1)
    d_v: int = integer(1)
    positions: str = choice("sinusoidal", "learned", "none")
    sinusoids: str = choice("interleaved", "halves")
    max_length: int = integer(2)
    norm: str = choice("post", "pre")
    layer_norm_epsilon: float = real(0, 1, "()")
    tied_embeddings: str = choice("all", "decoder", "none")
    scale_embeddings: bool = flag()
    embedding_stddev: float | None = real(0, math.inf, "()", optional=True)
    scale_logits: bool = flag()
    compatibility: str = choice("scaled_dot", "dot", "additive")
    attention_window: int | None = integer(1, optional=True)
    projection_biases: bool = flag()
    attention_implementation: str = choice("own", "banded", "xla", "cudnn")
    rematerialize: str = choice("none", "cheap", "layers")
    recurrent_cell: str = choice("lstm", "gru")
    recurrent_attention: str = choice("none", "additive")
    reverse_source: bool = flag()
    kernel_width: int = integer(1)
    kernel_dilation: str = choice("none", "doubling")
    dtype: str = choice("float32", "bfloat16", "float16")

    @property
    def layers_of_decoder(self) -> int:
        """Layers of the decoder's stack; the encoder's are ``num_layers``."""
        return self.num_layers if self.decoder_layers is None else self.decoder_layers


@dataclasses.dataclass(frozen=True)
class RegularizationConfig:
    """Section 5.4. The paper drops residual and embedding sums only."""

    dropout_rate: float = real(0, 1, "[)")
    attention_dropout_rate: float = real(0, 1, "[)")
    activation_dropout_rate: float = real(0, 1, "[)")
    label_smoothing: float = real(0, 1, "[)")
    label_smoothing_convention: str = choice(
        "all_classes", "other_classes", "other_pieces"
    )
    label_smoothing_entropy: str = choice("kept", "subtracted")


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """Section 5.3. ``accumulation_steps`` splits an update, it adds none."""

    warmup_steps: int = integer(1)
    learning_rate_scale: float = real(0, math.inf, "(]")
    beta1: float = real(0, 1, "[)")
    beta2: float = real(0, 1, "[)")
    epsilon: float = real(0, math.inf, "(]")
    clip_norm: float | None = real(0, math.inf, "(]", optional=True)
    accumulation_steps: int = integer(1)


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Corpus, vocabulary and batches (section 5.1).

    ``tokens_per_batch`` counts padded target positions of one update over all
    devices; ``max_train_length`` counts the pieces of one side of a training
    pair, without the end of sentence. ``packed_length`` is the length of rows
    that hold several pairs; None gives each pair a row of its own.
    ``holdout_pairs`` are taken out of the training file for each other split
    that has no file; ``holdout_seed`` decides which. The filters leave training
    pairs out, by their text; docs/data.md says which.
    """

    corpus: str = choice("grammar", "multi30k", "wmt14", "parallel_files")
    directory: str | None = text(optional=True)
    source_language: str = text()
    target_language: str = text()
    train_split: str = text()
    validation_split: str = text()
    test_split: str | None = text(optional=True)
    holdout_pairs: int | None = integer(1, optional=True)
    holdout_seed: int = integer(0, 2**31 - 1)
    vocabulary_size: int = integer(300, 1_000_000)
    max_train_length: int = integer(1)
    filter_duplicates: bool = flag()
    filter_overlap: bool = flag()
    filter_copies: bool = flag()
    filter_max_length_ratio: float | None = real(1, math.inf, "(]", optional=True)
    filter_max_words: int | None = integer(1, optional=True)
    filter_characters: bool = flag()
    length_buckets: int = integer(1, 64)
    packed_length: int | None = integer(1, optional=True)
    tokens_per_batch: int = integer(1)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How long and how often; ``steps`` are updates of the parameters.

    At every evaluation TensorBoard is given translations of ``sample_sentences``
    validation sentences, and with ``attention_images`` pictures of attention.
    """

    steps: int = integer(1)
    seed: int = integer(0, 2**31 - 1)
    evaluate_every_steps: int | None = integer(1, optional=True)
    checkpoint_every_steps: int | None = integer(1, optional=True)
    checkpoint_every_minutes: float | None = real(0, math.inf, "(]", optional=True)
    keep_checkpoints: int = integer(1)
    log_every_steps: int = integer(1)
    sample_sentences: int = integer(0, 64)
    attention_images: bool = flag()

    @property
    def checkpoints_by_steps(self) -> int:
        """How many a whole training saves by its steps, the last among them."""
        every = self.checkpoint_every_steps
        return 1 if every is None else -(-self.steps // every)

    @property
    def checkpoints_by_clock(self) -> bool:
        """Whether time alone decides which checkpoints are kept and averaged.

        Where steps do, those saved by the clock are for a run that is stopped.
        """
        clock = self.checkpoint_every_minutes is not None
        return clock and self.checkpoint_every_steps is None


@dataclasses.dataclass(frozen=True)
class DecodeConfig:
    """Beam search (section 6.1); at most source pieces + ``extra_length`` pieces."""

    beam_size: int = integer(1, 1024)
    length_penalty: str = choice("wu2016", "power")
    length_penalty_alpha: float = real(-math.inf, math.inf)
    extra_length: int = integer(1)
    average_checkpoints: int = integer(1)
    sentences_per_batch: int = integer(1)


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that defines a run."""

    model: ModelConfig
    regularization: RegularizationConfig
    optimizer: OptimizerConfig
    data: DataConfig
    train: TrainConfig
    decode: DecodeConfig


SECTIONS: dict[str, Any] = {
    f.name: f.type for f in dataclasses.fields(Config) if isinstance(f.type, type)
}
FIELDS: dict[str, dataclasses.Field] = {
    f"{name}.{f.name}": f
    for name, section in SECTIONS.items()
    for f in dataclasses.fields(section)
}


def get(config: Config, path: str) -> Any:
    """The value at ``section.field``."""
    section, _, name = path.partition(".")
    return getattr(getattr(config, section), name)
