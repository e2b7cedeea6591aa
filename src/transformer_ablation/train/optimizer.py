"""Adam (section 5.3) by optax; the rate is an argument of the update."""

import optax

from transformer_ablation.config import OptimizerConfig


def adam(config: OptimizerConfig) -> optax.GradientTransformation:
    """Gradients to update directions: clipped if asked, then Adam, bias-corrected.

    The result is to be scaled by minus the learning rate.
    """
    direction = optax.scale_by_adam(config.beta1, config.beta2, config.epsilon)
    if config.clip_norm is None:
        return direction
    return optax.chain(optax.clip_by_global_norm(config.clip_norm), direction)
