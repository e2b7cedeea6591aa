"""The product of a linear map and its gradient, against numpy and JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_ablation.model.linear import dot_general, product

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
def test_half_precision_has_the_gradient_of_jax(dtype):
    x, kernel_IO = jnp.asarray(draw(2, 5, 3), dtype), jnp.asarray(draw(3, 7), dtype)

    def gradient(multiply):
        return jax.grad(lambda x, k: multiply(x, k).sum(), (0, 1))(x, kernel_IO)

    for ours, theirs in zip(gradient(product), gradient(jnp.matmul), strict=True):
        assert ours.dtype == theirs.dtype == jnp.dtype(dtype)
        # One rounding of sums of up to ten numbers.
        np.testing.assert_allclose(
            np.asarray(ours, np.float32), np.asarray(theirs, np.float32), rtol=2**-7
        )


def test_other_products_are_refused():
    x, kernel = jnp.ones((2, 3, 4)), jnp.ones((3, 4))
    with pytest.raises(ValueError, match="not the product of a linear map"):
        dot_general(x, kernel, (((1,), (0,)), ((), ())))
