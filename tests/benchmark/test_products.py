"""Operations of the ceiling's products by hand; their rate from a fake clock."""

import dataclasses

import jax
import pytest

from tests.benchmark.test_timing import FakeClock
from transformer_ablation import parallel
from transformer_ablation.benchmark import products
from transformer_ablation.benchmark.products import Product
from transformer_ablation.config import of_architecture, replace


def test_products_have_the_sizes_of_the_model(base_config):
    found = products.model_products(base_config.model, 37_000, tokens=1003)
    sizes = [(p.tokens, p.inner, p.outer) for p in found]
    # Tokens divide over the four devices of the tests.
    assert sizes == [(1000, 512, 512), (1000, 512, 2048), (1000, 512, 37_000)]


def test_projections_are_as_wide_as_all_keys(base_config):
    model = dataclasses.replace(base_config.model, num_heads=3, d_k=7)
    assert products.model_products(model, 50, 8)[0].outer == 21


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        ({"model.recurrent_cell": "gru"}, [(512, 3 * 512), (512, 50)]),
        ({"model.kernel_width": 5}, [(5 * 512, 2 * 512), (512, 50)]),
    ],
)
def test_other_architectures_have_products_of_their_own(base_config, fields, sizes):
    name = "recurrent" if "model.recurrent_cell" in fields else "convolutional"
    config = replace(base_config, {**of_architecture(name), **fields})
    found = products.model_products(config.model, 50, 8)
    assert [(p.inner, p.outer) for p in found] == sizes


def test_many_tokens_are_cut_and_one_is_enough(base_config):
    tokens = [
        products.model_products(base_config.model, 50, n)[0].tokens for n in (1, 99_999)
    ]
    assert tokens == [4, products.MAX_TOKENS]


def test_product_has_two_operations_a_term():
    assert Product("p", 3, 5, 7).flops == 2 * 3 * 5 * 7


def test_best_of_several_calls_counts_and_starting_does_not():
    """A round takes a millisecond, now and then two; so a call has 32 of them."""
    clock, rounds = FakeClock(), []

    def call(count):
        rounds.append(count)
        clock.now += count * (0.002 if len(rounds) % 2 else 0.001)

    assert products.best_seconds(call, 1.0, clock) == pytest.approx(0.001)
    assert rounds[0] == 1  # compiles
    assert rounds[-1] * 0.002 >= products.CALL_SECONDS


def test_rate_is_operations_over_the_best_time(monkeypatch):
    seconds = {1: 0.5, parallel.device_count(): 0.25}
    monkeypatch.setattr(products, "_call", lambda product, dtype, devices: devices)
    monkeypatch.setattr(products, "best_seconds", lambda call, *_: seconds[call])
    product = Product("p", 8, 5, 7)
    # Forth and back are two products of 560 operations.
    found = products.measure(product, "float32", 1.0)
    assert found == products.Measured(product, parallel.device_count(), 1120 / 0.25)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_are_really_made(dtype, monkeypatch):
    """As often as asked for: on all devices, of numbers that stay finite."""
    corners = []
    real = parallel.sum_over_devices

    def watched(x):
        jax.debug.callback(lambda v: corners.append(float(v)), x)
        return real(x)

    monkeypatch.setattr(parallel, "sum_over_devices", watched)
    call = products._call(Product("p", 16, 12, 20), dtype, 4)
    call(50)
    jax.effects_barrier()
    assert len(corners) == 4 and len(set(corners)) > 1
    assert all(1e-3 < abs(x) < 10 for x in corners)
