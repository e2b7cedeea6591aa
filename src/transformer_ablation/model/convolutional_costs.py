"""Parameters, operations and memory of ``convolutional`` models, by arithmetic."""

from transformer_ablation.config import ModelConfig


def parameter_counts(model: ModelConfig) -> dict[str, int]:
    """Trained numbers of all but embeddings and positions, by group."""
    size, layers = model.d_model, model.num_layers
    kernel = model.kernel_width * size * 2 * size + 2 * size
    return {
        "convolution": 2 * layers * kernel,
        "attention": layers * 2 * (size * size + size),
    }


def forward_flops(
    model: ModelConfig, source_tokens: float, target_tokens: float, pairs: float
) -> float:
    """Operations of the matrix products, without those of the logits.

    ``pairs`` are those of a target and a source position of one row.
    """
    square = model.d_model**2
    kernels = (source_tokens + target_tokens) * 2 * model.kernel_width * square
    attention = 2 * target_tokens * square + 2 * pairs * model.d_model
    return 2 * model.num_layers * (kernels + attention)


def kept_values(model: ModelConfig, length: float) -> float:
    """Numbers kept for the backward pass, of a source and a target position together.

    Of a convolution: the places of its kernel side by side, values and gates, and the
    sum; of attention: query, scores and weights, weighted sum and residual sum.
    """
    convolution = model.d_model * (model.kernel_width + 4)
    attention = 4 * model.d_model + 2 * length
    return model.num_layers * (2 * convolution + attention)
