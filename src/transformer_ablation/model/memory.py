"""Bytes that an update holds on a device, by arithmetic alone: an estimate.

What a compiler frees early is not known here; docs/numbers.md has both beside each
other.
"""

from transformer_ablation.config import Config, ModelConfig
from transformer_ablation.model import convolutional_costs, recurrent_costs
from transformer_ablation.model.accounting import ASSUMED_LENGTH, parameter_counts
from transformer_ablation.model.band_costs import seen

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Parameters, their gradient and Adam's two moments, in single precision.
STATE_BYTES_PER_PARAMETER = 4 * 4
# Logits and their gradient, in single precision, of at most so many at a time: the loss
# takes fewer on a CPU, which is the smaller.
LOGIT_BYTES = 2 * 4
MOST_LOGITS = 2**27


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
    logits = min(positions * data.vocabulary_size, MOST_LOGITS) * LOGIT_BYTES
    return round(
        STATE_BYTES_PER_PARAMETER * state + BYTES[model.dtype] * layers + logits
    )


def kept_values(model: ModelConfig, length: float) -> float:
    """Numbers kept for the backward pass, of a source and a target position together.

    Of an attention: queries, keys, values, weighted sums, and the weights; where its
    scores are additive, the tanh of each pair of a query and a key. Of a
    feed-forward network: its inside, and a byte a number for where it is positive. Of a
    sublayer: its input, and the sum, its normalised value and what became of that. With
    rematerialisation: the input of each layer, and with "cheap" what linear maps put
    out. On top, of one decoder layer, what its backward pass makes.
    """
    heads, d = model.num_heads, model.d_model
    own, past = (seen(model, length, causal) for causal in (False, True))
    attention = heads * (2 * model.d_k + 2 * model.d_v)
    feed_forward = model.d_ff * 5 / 4
    maps = heads * (2 * model.d_k + model.d_v) + d
    pair = 1 + (model.d_k if model.compatibility == "additive" else 0)

    def whole(*keys: float) -> float:
        """Of a layer whose attentions see so many keys each."""
        attentions = len(keys) * attention + heads * sum(keys) * pair
        return attentions + feed_forward + (len(keys) + 1) * 4 * d

    def layer(*keys: float) -> float:
        return {
            "none": whole(*keys),
            "cheap": d + len(keys) * maps + model.d_ff + d,
            "layers": d,
        }[model.rematerialize]

    decoder = layer(past, length)
    layers = model.num_layers * layer(own) + model.layers_of_decoder * decoder
    return layers + whole(past, length)


_KEPT = {
    "transformer": kept_values,
    "recurrent": recurrent_costs.kept_values,
    "convolutional": convolutional_costs.kept_values,
}
