"""Linear maps, with the backward pass that multiplies fastest and sums in float32."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

# What rematerialisation knows the result of a linear map by.
RESULT = "linear"


@jax.custom_vjp
def product(x: Any, kernel_IO: Any) -> Any:
    """``x`` [..., I] times a kernel: [..., O], in the type of ``x``."""
    return x @ kernel_IO.astype(x.dtype)


def _forward(x: Any, kernel_IO: Any) -> tuple[Any, tuple[Any, Any]]:
    return product(x, kernel_IO), (x, kernel_IO)


def _backward(kept: tuple[Any, Any], gradient: Any) -> tuple[Any, Any]:
    """Of the kernel's gradient it is the narrower side that is transposed.

    JAX's own gradient transposes the incoming one, which XLA on a CPU then fuses
    with what made it, into loops that read across the rows. The kernel's gradient
    has the type of the kernel: as a sum over all tokens it is not rounded to less.
    """
    x, kernel_IO = kept
    x_NI = x.reshape(-1, x.shape[-1])
    gradient_NO = gradient.reshape(-1, gradient.shape[-1])
    if x_NI.shape[1] <= gradient_NO.shape[1]:
        kernel_gradient_IO = product_as(kernel_IO.dtype, x_NI.T, gradient_NO)
    else:
        kernel_gradient_IO = product_as(kernel_IO.dtype, gradient_NO.T, x_NI).T
    x_gradient_NI = gradient_NO @ kernel_IO.astype(x.dtype).T
    return x_gradient_NI.reshape(x.shape), kernel_gradient_IO


def product_as(dtype: Any, a: Any, b: Any) -> Any:
    """The product of two matrices, summed and given in a type."""
    return jnp.matmul(a, b, preferred_element_type=dtype)


product.defvjp(_forward, _backward)


@jax.custom_vjp
def biased(x: Any, bias_O: Any) -> Any:
    """``x`` [..., O] and a bias, in the type of ``x``; its gradient in its own."""
    return x + bias_O.astype(x.dtype).reshape((1,) * (x.ndim - 1) + (-1,))


def _biased_forward(x: Any, bias_O: Any) -> tuple[Any, Any]:
    # A type is no array, so an empty one carries it.
    return biased(x, bias_O), jnp.empty(0, bias_O.dtype)


def _biased_backward(like: Any, gradient: Any) -> tuple[Any, Any]:
    tokens = tuple(range(gradient.ndim - 1))
    return gradient, gradient.astype(like.dtype).sum(axis=tokens)


biased.defvjp(_biased_forward, _biased_backward)


class Linear(nn.Module):
    """A linear map in the type ``dtype``: [..., features].

    Its parameters, ``kernel`` (Glorot uniform) and ``bias``, are those of flax's
    ``Dense`` and start as they do.
    """

    features: int
    dtype: str
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: Any) -> Any:
        shape = (x.shape[-1], self.features)
        kernel_IO = self.param("kernel", nn.initializers.xavier_uniform(), shape)
        x = product(x.astype(self.dtype), kernel_IO)
        if self.use_bias:
            zeros = nn.initializers.zeros_init()
            x = biased(x, self.param("bias", zeros, shape[1:]))
        return checkpoint_name(x, RESULT)
