"""The ceiling: how fast this machine multiplies matrices of a model's own sizes."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from transformer_ablation import parallel
from transformer_ablation.benchmark.timing import Clock, repeat, timed
from transformer_ablation.config import ModelConfig
from transformer_ablation.model.recurrent_costs import GATES

# Products of more tokens are no faster, and their results fill the memory.
MAX_TOKENS = 4096
# A call shorter than this would measure how long it takes to start one.
CALL_SECONDS = 0.02


class Product(NamedTuple):
    """[tokens, inner] times [inner, outer]; ``name`` says which of the model's."""

    name: str
    tokens: int
    inner: int
    outer: int

    @property
    def flops(self) -> int:
        """Multiplications and additions of one product."""
        return 2 * self.tokens * self.inner * self.outer


class Measured(NamedTuple):
    """A product at its best: operations a second, on so many devices."""

    product: Product
    devices: int
    flops_per_second: float


def model_products(
    model: ModelConfig, vocabulary_size: int, tokens: int
) -> list[Product]:
    """The layers' larger products and the logits, of ``tokens`` positions."""
    count = parallel.device_count()
    tokens = max(count, min(tokens, MAX_TOKENS) // count * count)
    size = model.d_model
    sizes = {
        "transformer": {
            "tokens x d_model x h*d_k": (size, model.num_heads * model.d_k),
            "tokens x d_model x d_ff": (size, model.d_ff),
        },
        "recurrent": {
            "tokens x d_model x gates": (size, GATES[model.recurrent_cell] * size)
        },
        "convolutional": {
            "tokens x k*d_model x 2*d_model": (model.kernel_width * size, 2 * size)
        },
    }[model.architecture]
    sizes["tokens x d_model x vocabulary"] = (size, vocabulary_size)
    return [Product(name, tokens, *each) for name, each in sizes.items()]


def measure(
    product: Product, dtype: str, seconds: float, clock: Clock = time.perf_counter
) -> Measured:
    """The best of several timings, on one device and with the tokens over all.

    A call goes forth and back, [tokens, inner] to [tokens, outer] to [tokens,
    inner], as often as it takes to outweigh its start.
    """
    found = []
    for devices in sorted({1, parallel.device_count()}):
        with parallel.at_most(devices):
            call = _call(product, dtype, devices)
            rate = 2 * product.flops / best_seconds(call, seconds / 2, clock)
        found.append(Measured(product, devices, rate))
    return max(found, key=lambda each: each.flops_per_second)


def best_seconds(call: Callable[[int], None], seconds: float, clock: Clock) -> float:
    """The least time of one round of ``call(rounds)``.

    The first call, which compiles, does not count; rounds are doubled until a call
    takes ``CALL_SECONDS``.
    """
    call(1)
    rounds = 1
    while timed(partial(call, rounds), clock) < CALL_SECONDS:
        rounds *= 2
    return min(repeat(partial(call, rounds), seconds, clock=clock)) / rounds


def _call(product: Product, dtype: str, devices: int) -> Callable[[int], None]:
    """``call(rounds)``: forth and back on all devices; returns when it is done."""
    random = np.random.default_rng(0)
    rows = product.tokens // devices
    x_GTD = random.standard_normal((devices, rows, product.inner), np.float32)
    # Orthogonal, so that no number grows or vanishes, however often they are used.
    long, short = sorted((product.inner, product.outer), reverse=True)
    forth, _ = np.linalg.qr(random.standard_normal((long, short), np.float32))
    forth = forth if product.inner == long else forth.T
    x_GTD = np.asarray(jnp.asarray(x_GTD, dtype))
    matrices = parallel.replicate(
        (jnp.asarray(forth, dtype), jnp.asarray(forth.T, dtype))
    )

    def forth_and_back(state: Any, x_TD: Any, matrices: Any, rounds: Any) -> Any:
        def body(_: Any, x_TD: Any) -> Any:
            return (x_TD @ matrices[0]) @ matrices[1]

        x_TD = lax.fori_loop(0, rounds, body, x_TD)
        # The loop's result has to be used, or it is not computed.
        return state, parallel.sum_over_devices(x_TD[0, 0])

    mapped = parallel.map_update(forth_and_back)

    state = parallel.replicate(np.zeros(()))

    def call(rounds: int) -> None:
        nonlocal state
        state, corner = mapped(state, x_GTD, matrices, rounds)
        jax.block_until_ready((state, corner))

    return call
