"""Which Transformer? The paper's text, and the two codes its authors released.

A preset sets what these three disagree on and nothing else, so it can be laid over
any config at any scale:

    python -m experiments.sweep --config=configs/table3.py:grammar \
        --preset=tensor2tensor_later --workdir=runs/later
    python -m experiments.plan --compare_presets=paper,tensor2tensor_later

Two numbers are multiples of the config's own, so that a small scale stays small:
warm-up and the scale of the learning rate.

Left out on purpose, because neither is in the paper: the first code adds a trained
vector of the target language to every encoder position, and multiplies the loss of
the English-German problem by 1.4, which Adam cancels but for its epsilon.

Source: github.com/tensorflow/tensor2tensor, commits named at each preset.
"""

from collections.abc import Callable
from typing import Any

from transformer_ablation.config import ConfigError, unknown_name

Preset = Callable[[Any], dict[str, Any]]


def paper(base: Any) -> dict[str, Any]:
    """The text of the paper (sections 3 to 6); the default of every config."""
    return {
        "model.norm": "post",
        "model.sinusoids": "interleaved",
        "model.projection_biases": False,
        "model.layer_norm_epsilon": 1e-6,
        "model.scale_embeddings": True,
        "model.embedding_stddev": None,
        "model.scale_logits": False,
        "model.tied_embeddings": "all",
        "regularization.attention_dropout_rate": 0.0,
        "regularization.activation_dropout_rate": 0.0,
        "regularization.label_smoothing_convention": "all_classes",
        "regularization.label_smoothing_entropy": "kept",
        "optimizer.beta1": 0.9,
        "optimizer.beta2": 0.98,
        "optimizer.epsilon": 1e-9,
        "optimizer.warmup_steps": base.optimizer.warmup_steps,
        "optimizer.learning_rate_scale": base.optimizer.learning_rate_scale,
        "decode.length_penalty": "wu2016",
    }


def tensor2tensor_2017_06(base: Any) -> dict[str, Any]:
    """The first release (3d9c62f2, June 2017).

    Sinusoids as concatenated halves over d/2 - 1, biases in the projections,
    smoothing mass on the wrong classes only, and its entropy taken off the loss.
    """
    return {
        **paper(base),
        "model.sinusoids": "halves",
        "model.projection_biases": True,
        "regularization.label_smoothing_convention": "other_classes",
        "regularization.label_smoothing_entropy": "subtracted",
    }


def tensor2tensor_later(base: Any) -> dict[str, Any]:
    """The base model since 2018 (norm f5c9b17e, dropout d5bdfcc8, beta2 8dad16ee).

    Norm in front of each sub-layer, dropout of 0.1 also on attention weights and
    activations, beta2 0.997, twice the warm-up and twice the rate, no biases in
    the projections.
    """
    return {
        **tensor2tensor_2017_06(base),
        "model.norm": "pre",
        "model.projection_biases": False,
        "regularization.attention_dropout_rate": 0.1,
        "regularization.activation_dropout_rate": 0.1,
        "optimizer.beta2": 0.997,
        "optimizer.warmup_steps": 2 * base.optimizer.warmup_steps,
        "optimizer.learning_rate_scale": 2 * base.optimizer.learning_rate_scale,
    }


PRESETS: dict[str, Preset] = {
    preset.__name__: preset
    for preset in (paper, tensor2tensor_2017_06, tensor2tensor_later)
}


def get_preset(name: str) -> Preset:
    """The preset of a name.

    Raises:
      ConfigError: for an unknown one, with the nearest name.
    """
    if name not in PRESETS:
        raise ConfigError(unknown_name("preset", name, PRESETS))
    return PRESETS[name]
