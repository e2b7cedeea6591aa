"""The layers that Table 1 compares, each as a map of sequences [B, n, d] of its own.

They are the modules that the models of a config are made of, without what surrounds
them: residual sum, norm and feed-forward network.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from transformer_ablation.config import ConfigError, ModelConfig
from transformer_ablation.model.attention import MultiHeadAttention
from transformer_ablation.model.banded import Band
from transformer_ablation.model.convolution import GatedConvolution
from transformer_ablation.model.convolutional import dilation
from transformer_ablation.model.recurrence import Begin, RecurrentLayer


class Layer(NamedTuple):
    """``apply(parameters, *inputs)``: [B, n, d], or of heads [B, n, H, d / H].

    ``parameters`` and ``inputs(batch, n)`` are shapes and types; ``drawn`` fills them.
    """

    parameters: Any
    inputs: Callable[[int, int], tuple[Any, ...]]
    apply: Callable[..., Any]


def drawn(shapes: Any, seed: int = 0) -> Any:
    """Random arrays: normal, a kernel's as spread as keeps its output; biases are 1.

    By numpy, as nothing has to be compiled for it. A bias of 1 is what the forget gate
    of an LSTM has at the start of training.
    """
    random = np.random.default_rng(seed)

    def draw(shape: Any) -> Any:
        if len(shape.shape) == 1:
            return np.ones(shape.shape, shape.dtype)
        spread = math.prod(shape.shape[:-1]) ** -0.5
        values = spread * random.standard_normal(shape.shape, np.float32)
        return values.astype(shape.dtype)

    return jax.tree.map(draw, shapes)


def of_width(config: ModelConfig, d_model: int) -> ModelConfig:
    """The config at another width, the heads of a Transformer sharing it evenly.

    Raises:
      ConfigError: if they cannot.
    """
    if config.architecture != "transformer":
        return dataclasses.replace(config, d_model=d_model)
    size, left = divmod(d_model, config.num_heads)
    if left or not size:
        raise ConfigError(
            f"d = {d_model} is no multiple of model.num_heads = {config.num_heads}; "
            "choose another d, or --config.model.num_heads"
        )
    return dataclasses.replace(config, d_model=d_model, d_k=size, d_v=size)


def whole_layer(config: ModelConfig, number: int = 0) -> Layer:
    """The layer of an encoder: self-attention, LSTM or GRU, or gated convolution.

    ``number`` is its place in the stack, on which the dilation may depend.
    """
    if config.architecture == "recurrent":
        return _recurrent(config)
    if config.architecture == "convolutional":
        return convolution(config, dilation(config, number))
    module = MultiHeadAttention(config)
    return _layer(
        config,
        lambda key, x: module.init(key, x, x, _visible(config, x)),
        lambda variables, x: module.apply(variables, x, x, _visible(config, x)),
    )


def convolution(config: ModelConfig, apart: int, causal: bool = False) -> Layer:
    """A gated convolution whose places are so far apart, centred or a decoder's."""
    size, width, dtype = config.d_model, config.kernel_width, config.dtype
    module = GatedConvolution(size, width, apart, causal, dtype)
    return _layer(config, module.init, module.apply)


def _recurrent(config: ModelConfig) -> Layer:
    module = RecurrentLayer(
        config.recurrent_cell, config.d_model, config.d_model, config.dtype
    )
    return _layer(
        config,
        lambda key, x: module.init(key, x, Begin()),
        lambda variables, x: module.apply(variables, x, Begin())[0],
    )


def _layer(config: ModelConfig, init: Callable, apply: Callable) -> Layer:
    def inputs(batch: int, n: int) -> tuple[Any, ...]:
        return (jax.ShapeDtypeStruct((batch, n, config.d_model), config.dtype),)

    # Parameters do not depend on the length.
    return Layer(jax.eval_shape(init, jax.random.key(0), *inputs(1, 2)), inputs, apply)


def attention_alone(config: ModelConfig) -> Layer:
    """Self-attention of given queries, keys and values: what Table 1 counts."""
    module = MultiHeadAttention(config)

    def inputs(batch: int, n: int) -> tuple[Any, ...]:
        shape = (batch, n, config.num_heads)
        sizes = (config.d_k, config.d_k, config.d_v)
        of = functools.partial(jax.ShapeDtypeStruct, dtype=config.dtype)
        return tuple(of((*shape, size)) for size in sizes)

    def apply(variables: Any, q_BLHK: Any, k_BLHK: Any, v_BLHU: Any) -> Any:
        visible = _visible(config, q_BLHK)
        if isinstance(visible, Band):
            given, method = (q_BLHK, k_BLHK, v_BLHU), "gather_near"
        else:
            k_BHKL, v_BHLU = jnp.moveaxis(k_BLHK, 1, 3), jnp.moveaxis(v_BLHU, 1, 2)
            given, method = (q_BLHK, k_BHKL, v_BHLU), "gather"
        return module.apply(variables, *given, visible, method=method)

    return Layer(whole_layer(config).parameters, inputs, apply)


def _visible(config: ModelConfig, x_BL: Any) -> Any:
    """A band, or the mask of all pairs, of rows without padding."""
    real_BL = jnp.ones(x_BL.shape[:2], bool)
    band = Band(real_BL, None, config.attention_window, causal=False)
    return band if config.attention_implementation == "banded" else band.whole()
