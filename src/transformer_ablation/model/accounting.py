"""Parameters and floating-point operations, by arithmetic alone.

Nothing here imports JAX, so a sweep is planned before a device is touched. The
counts are tested to equal the shapes of the initialised model, row by row.
"""

import dataclasses

from transformer_ablation.config import Config, ModelConfig
from transformer_ablation.model import convolutional_costs, recurrent_costs
from transformer_ablation.model.band_costs import seen

# Embedding rows: those of the text (section 5.1), and those of the authors' first
# code (tensor2tensor 3d9c62f2: vocabulary of 40,960, and 32 target spaces).
ROWS_OF_THE_TEXT = 37_000
ROWS_OF_THE_FIRST_CODE = 40_960 + 32
# Sentence length assumed for the attention term where no data has been read and rows
# hold one sentence each.
ASSUMED_LENGTH = 30
# A backward pass costs two products for every product of the forward pass.
TRAINING_OVER_FORWARD = 3


def attention_parameters(model: ModelConfig) -> int:
    """Projections of one multi-head attention (section 3.2.2), biases if asked for."""
    heads = model.num_heads
    projections = 2 * model.d_model * heads * (model.d_k + model.d_v)
    biases = heads * (2 * model.d_k + model.d_v) + model.d_model
    additive = heads * model.d_k if model.compatibility == "additive" else 0
    return projections + (biases if model.projection_biases else 0) + additive


def feed_forward_parameters(model: ModelConfig) -> int:
    """Both linear maps of one feed-forward network, with biases (eq. 2)."""
    return 2 * model.d_model * model.d_ff + model.d_ff + model.d_model


def parameter_counts(model: ModelConfig, vocabulary_size: int) -> dict[str, int]:
    """Trained numbers by group, and their ``total``."""
    matrices = {"all": 1, "decoder": 2, "none": 3}[model.tied_embeddings]
    learned = 2 * model.max_length if model.positions == "learned" else 0
    counts = {
        "embedding": matrices * vocabulary_size * model.d_model,
        "positions": learned * model.d_model,
        **_LAYERS[model.architecture](model),
    }
    return {**counts, "total": sum(counts.values())}


def _transformer_parameters(model: ModelConfig) -> dict[str, int]:
    encoder, decoder = model.num_layers, model.layers_of_decoder
    # Two layer norms an encoder layer, three a decoder layer, and with the
    # norm in front one more at the end of each stack.
    norms = 2 * encoder + 3 * decoder + (2 if model.norm == "pre" else 0)
    return {
        "attention": (encoder + 2 * decoder) * attention_parameters(model),
        "feed_forward": (encoder + decoder) * feed_forward_parameters(model),
        "layer_norm": norms * 2 * model.d_model,
    }


_LAYERS = {
    "transformer": _transformer_parameters,
    "recurrent": recurrent_costs.parameter_counts,
    "convolutional": convolutional_costs.parameter_counts,
}


def paper_counts(model: ModelConfig) -> dict[str, int]:
    """Trained numbers in all as the paper may have counted them; none of other models.

    ``first_code`` has the first code's embedding rows and its biases in the
    projections: rounded to millions it is every count that Table 3 prints but
    big's 213, which nothing known explains. ``text`` has the 37,000 rows of the
    text, with the same biases, and rounds to none of the printed counts.
    """
    if model.architecture != "transformer":
        return {}
    model = dataclasses.replace(model, projection_biases=True)
    return {
        "first_code": parameter_counts(model, ROWS_OF_THE_FIRST_CODE)["total"],
        "text": parameter_counts(model, ROWS_OF_THE_TEXT)["total"],
    }


def forward_flops(
    model: ModelConfig,
    vocabulary_size: int,
    source_tokens: float,
    target_tokens: float,
    source_length: float,
    target_length: float,
) -> float:
    """Operations of the matrix products of one forward pass.

    ``*_tokens`` are real tokens in all; ``*_length`` is their mean sentence
    length, which only the attention scores and sums depend on.
    """
    logits = 2 * target_tokens * model.d_model * vocabulary_size
    if model.architecture != "transformer":
        layers = {
            "recurrent": recurrent_costs.forward_flops,
            "convolutional": convolutional_costs.forward_flops,
        }[model.architecture]
        pairs = target_tokens * source_length
        return layers(model, source_tokens, target_tokens, pairs) + logits
    heads, d = model.num_heads, model.d_model
    query_output = 2 * d * heads * (model.d_k + model.d_v)
    key_value = query_output
    ffn = 4 * d * model.d_ff
    score = 2 * heads * (model.d_k + model.d_v)
    own, past = (
        seen(model, length, causal)
        for length, causal in ((source_length, False), (target_length, True))
    )
    encoder = source_tokens * (query_output + key_value + ffn + own * score)
    decoder = target_tokens * (
        2 * query_output + key_value + ffn + (past + source_length) * score
    )
    cross = source_tokens * key_value
    layers = model.num_layers * encoder + model.layers_of_decoder * (decoder + cross)
    return layers + logits


def step_flops(
    config: Config,
    source_tokens: float | None = None,
    target_tokens: float | None = None,
    source_length: float | None = None,
    target_length: float | None = None,
) -> int:
    """Training operations of one update, of the full token budget by default.

    Attention is over all of a row: over ``data.packed_length`` positions of either
    side where sentences share rows, else over sentences of ``ASSUMED_LENGTH``.
    """
    budget = config.data.tokens_per_batch
    length = config.data.packed_length or ASSUMED_LENGTH
    forward = forward_flops(
        config.model,
        config.data.vocabulary_size,
        budget if source_tokens is None else source_tokens,
        budget if target_tokens is None else target_tokens,
        length if source_length is None else source_length,
        length if target_length is None else target_length,
    )
    return round(TRAINING_OVER_FORWARD * forward)
