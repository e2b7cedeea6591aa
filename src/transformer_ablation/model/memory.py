"""Bytes that an update holds on a device, by arithmetic alone: an estimate.

What a compiler frees early is not known here: of six rows of Table 3 at two scales,
XLA allots a CPU 72% to 96% of the estimate.
"""

from transformer_ablation.config import Config, ModelConfig
from transformer_ablation.model import convolutional_costs, recurrent_costs
from transformer_ablation.model.accounting import ASSUMED_LENGTH, parameter_counts
from transformer_ablation.model.band_costs import seen

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Parameters, their gradient and Adam's two moments, in single precision.
STATE_BYTES_PER_PARAMETER = 4 * 4
# Logits and their gradient, in single precision.
LOGIT_BYTES = 2 * 4


def update_memory(config: Config) -> int:
    """Bytes of one update on one device that gets the whole batch of a step.

    n devices hold the state each and an n-th of the rest. Attention is over rows as
    ``accounting.step_flops`` takes them.
    """
    model, data = config.model, config.data
    positions = data.tokens_per_batch / config.optimizer.accumulation_steps
    length = data.packed_length or ASSUMED_LENGTH
    state = parameter_counts(model, data.vocabulary_size)["total"]
    layers = positions * _KEPT[model.architecture](model, length)
    logits = positions * data.vocabulary_size * LOGIT_BYTES
    return round(
        STATE_BYTES_PER_PARAMETER * state + BYTES[model.dtype] * layers + logits
    )


def kept_values(model: ModelConfig, length: float) -> float:
    """Numbers kept for the backward pass, of a source and a target position together.

    Of an attention: queries, keys, values, weighted sums, and the weights before and
    after the softmax. Of a sublayer: its input, its output and the normalised sum.
    """
    heads = model.num_heads
    attention = heads * (2 * model.d_k + 2 * model.d_v)
    weights = length + sum(seen(model, length, causal) for causal in (False, True))
    feed_forward = 2 * model.d_ff
    sublayers = 5 * 3 * model.d_model
    attentions = 3 * attention + 2 * heads * weights
    return model.num_layers * (attentions + 2 * feed_forward + sublayers)


_KEPT = {
    "transformer": kept_values,
    "recurrent": recurrent_costs.kept_values,
    "convolutional": convolutional_costs.kept_values,
}
