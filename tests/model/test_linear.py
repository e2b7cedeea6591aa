"""The product of a linear map and its gradient, against numpy and JAX's own."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_ablation.model.linear import Linear, biased, product

generator = np.random.default_rng(2)


def draw(*shape):
    return generator.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("inner, outer", [(3, 7), (7, 3), (4, 4)])
@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5)])
def test_product_and_gradient_are_those_of_numpy(shape, inner, outer):
    """dx = g k^T and dk = x^T g, whichever side is the wider one."""
    x, kernel_IO, gradient = (
        draw(*shape, inner),
        draw(inner, outer),
        draw(*shape, outer),
    )
    found, pull = jax.vjp(product, jnp.asarray(x), jnp.asarray(kernel_IO))
    np.testing.assert_allclose(found, x @ kernel_IO, rtol=1e-5, atol=1e-5)
    x_gradient, kernel_gradient = pull(jnp.asarray(gradient))
    np.testing.assert_allclose(x_gradient, gradient @ kernel_IO.T, rtol=1e-5, atol=1e-5)
    expected_IO = x.reshape(-1, inner).T @ gradient.reshape(-1, outer)
    np.testing.assert_allclose(kernel_gradient, expected_IO, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_gradients_are_rounded_once(dtype):
    """And are of the type of JAX's own, whose sums may be of half precision too."""
    x, kernel_IO = jnp.asarray(draw(2, 5, 3), dtype), jnp.asarray(draw(3, 7), dtype)

    def gradient(multiply):
        return jax.grad(lambda x, k: multiply(x, k).sum(), (0, 1))(x, kernel_IO)

    exact_x, exact_IO = np.asarray(x, np.float64), np.asarray(kernel_IO, np.float64)
    exact = (  # of a sum of outputs: those of the other factor
        np.broadcast_to(exact_IO.sum(1), x.shape),
        np.broadcast_to(exact_x.sum((0, 1))[:, None], kernel_IO.shape),
    )
    found = zip(gradient(product), gradient(jnp.matmul), exact, strict=True)
    for ours, theirs, expected in found:
        assert ours.dtype == theirs.dtype == jnp.dtype(dtype)
        np.testing.assert_allclose(np.asarray(ours, np.float64), expected, rtol=2**-8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_over_tokens_are_of_float32_in_half_precision(dtype):
    """3,000 gradients of 1 + 2^-6: half precision would stop at 256 (or at 2,048)."""
    x = jnp.ones((3, 1000, 2), dtype)
    gradient = jnp.full((3, 1000, 5), 1 + 2**-6, dtype)
    for call, parameters in ((product, jnp.ones((2, 5))), (biased, jnp.ones(5))):
        given = x if call is product else gradient
        _, pull = jax.vjp(call, given, parameters)
        _, found = pull(gradient)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, 3000 * (1 + 2**-6), rtol=1e-6)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_linear_map_is_flax_s_dense(dtype, use_bias):
    x = jnp.asarray(draw(2, 5, 3))
    ours = Linear(7, dtype, use_bias=use_bias)
    init = nn.initializers.xavier_uniform()
    theirs = nn.Dense(7, use_bias, dtype=jnp.dtype(dtype), kernel_init=init)
    params, expected = (
        ours.init(jax.random.key(1), x),
        theirs.init(jax.random.key(1), x),
    )
    jax.tree.map(np.testing.assert_array_equal, params, expected)
    if use_bias:
        params["params"]["bias"] = jnp.asarray(draw(7))
    found = ours.apply(params, x)
    assert found.dtype == jnp.dtype(dtype)
    np.testing.assert_array_equal(found, theirs.apply(params, x))
