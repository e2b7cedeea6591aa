"""One update of the parameters, over all devices and accumulation steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from transformer_ablation import parallel
from transformer_ablation.config import Config
from transformer_ablation.model.dropout import Noise
from transformer_ablation.train import optimizer as optimizers
from transformer_ablation.train.loss import LossSums, loss_sums
from transformer_ablation.train.norms import norm, norms_by_group, square
from transformer_ablation.train.projection import projected_sums
from transformer_ablation.train.schedule import learning_rate

INITIALISE, DROPOUT = 0, 1  # purposes of random numbers


class TrainState(NamedTuple):
    """``step`` is the number of updates done."""

    step: Any
    params: Any
    optimizer: Any


class Rates(NamedTuple):
    """Numbers that are arguments of the compiled update, not constants in it.

    Attention and activation rates are None where the config has 0: those
    places then cost nothing.
    """

    learning_rate: Any
    label_smoothing: Any
    dropout: Any
    attention_dropout: Any
    activation_dropout: Any


class Metrics(NamedTuple):
    """Means over the real target tokens of one update, and their count."""

    loss: Any
    nll: Any
    tokens: Any
    gradient_norm: Any
    norms: Any  # {group: an array that holds a Norms}


def purpose_key(seed: int, purpose: int) -> jax.Array:
    """The key of one use of randomness of a run."""
    return jax.random.fold_in(jax.random.key(seed), purpose)


def initial_state(model: Any, config: Config) -> TrainState:
    """Fresh parameters, a function of the model and ``train.seed``."""
    tokens_11 = jnp.full((1, 1), model.bos_id, jnp.int32)
    key = purpose_key(config.train.seed, INITIALISE)
    params = model.init(key, tokens_11, tokens_11)["params"]
    optimizer = optimizers.adam(config.optimizer)
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))


def create_state(model: Any, config: Config) -> TrainState:
    """``initial_state`` on every device."""
    # Run once: not worth the time of an optimising compiler.
    quick = {"xla_backend_optimization_level": 0}
    make = jax.jit(lambda: initial_state(model, config), compiler_options=quick)
    return parallel.replicate(make())


def state_shapes(model: Any, config: Config) -> TrainState:
    """The shapes and types of a state, without making one."""
    return jax.eval_shape(lambda: initial_state(model, config))


def rates_at(config: Config, step: int) -> Rates:
    """The rates of update ``step``, which counts from 1."""
    regularization = config.regularization
    return Rates(
        learning_rate=learning_rate(
            step,
            config.model.d_model,
            config.optimizer.warmup_steps,
            config.optimizer.learning_rate_scale,
        ),
        label_smoothing=regularization.label_smoothing,
        dropout=regularization.dropout_rate,
        attention_dropout=regularization.attention_dropout_rate or None,
        activation_dropout=regularization.activation_dropout_rate or None,
    )


def make_update(model: Any, config: Config) -> Callable:
    """``update(state, batch, key, rates) -> (state, Metrics)`` over all devices.

    ``batch.source`` and ``batch.target`` are [devices, accumulation steps, rows,
    length]. Loss and gradient are sums over real target tokens of all devices
    and accumulation steps, divided once by the count of those tokens.
    """
    optimizer = optimizers.adam(config.optimizer)
    smoothing = config.regularization
    packed = config.data.packed_length is not None

    def sums(params, source_BS, target_BT, first_row, words, rates):
        noise = Noise(
            rates.dropout,
            rates.attention_dropout,
            rates.activation_dropout,
            first_row,
            words,
        )
        x_BTD, matrix_VD = model.apply(
            {"params": params}, source_BS, target_BT, noise, packed, method="factors"
        )

        def sums_of(logits_NV, target_N):
            return loss_sums(
                logits_NV,
                target_N,
                model.pad_id,
                rates.label_smoothing,
                smoothing.label_smoothing_convention,
                smoothing.label_smoothing_entropy,
            )

        with jax.named_scope("projection_and_loss"):
            found = projected_sums(sums_of, x_BTD, matrix_VD, target_BT, model.pad_id)
        return found.loss, found

    def accumulate(params, batch, words, rates):
        """Gradient and loss sums of this device's accumulation steps."""
        source_ABS, target_ABT = batch
        steps, rows = source_ABS.shape[:2]
        first_row = parallel.device_index() * steps * rows
        gradient = jax.grad(sums, has_aux=True)
        if steps == 1:
            return gradient(
                params, source_ABS[0], target_ABT[0], first_row, words, rates
            )

        def body(carry, part):
            source_BS, target_BT, offset = part
            found = gradient(
                params, source_BS, target_BT, first_row + offset, words, rates
            )
            return jax.tree.map(jnp.add, carry, found), None

        zero = (jax.tree.map(jnp.zeros_like, params), LossSums(0.0, 0.0, 0.0))
        zero = jax.tree.map(jnp.asarray, zero)
        offsets = jnp.arange(steps) * rows
        return lax.scan(body, zero, (source_ABS, target_ABT, offsets))[0]

    def update(state, batch, key, rates):
        key = jax.random.fold_in(key, state.step)
        words = jax.random.bits(key, (2,), jnp.uint32)
        local = accumulate(state.params, batch, words, rates)
        with jax.named_scope("sum_over_devices"):
            gradients, total = parallel.sum_over_devices(local)
        # Only a batch without any real token would divide by less than one.
        count = jnp.maximum(total.tokens, 1.0)
        with jax.named_scope("optimizer"):
            gradients = jax.tree.map(lambda g: g / count, gradients)
            directions, adam = optimizer.update(
                gradients, state.optimizer, state.params
            )
            params = jax.tree.map(
                lambda p, d: p - rates.learning_rate * d, state.params, directions
            )
        squares = jax.tree.map(square, gradients)
        metrics = Metrics(
            loss=total.loss / count,
            nll=total.nll / count,
            tokens=total.tokens,
            gradient_norm=norm(squares),
            norms=norms_by_group(
                state.params, squares, directions, rates.learning_rate
            ),
        )
        return TrainState(state.step + 1, params, adam), metrics

    mapped = parallel.map_update(update)

    def call(state: TrainState, batch: Any, key: Any, rates: Rates) -> Any:
        return mapped(state, (batch.source, batch.target), key, rates)

    return call
