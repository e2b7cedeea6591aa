"""The product of a linear map, with the backward pass that multiplies fastest."""

from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name

# What rematerialisation knows the result of a linear map by.
RESULT = "linear"


@jax.custom_vjp
def product(x: Any, kernel_IO: Any) -> Any:
    """``x`` [..., I] times a kernel: [..., O]."""
    return x @ kernel_IO


def _forward(x: Any, kernel_IO: Any) -> tuple[Any, tuple[Any, Any]]:
    return product(x, kernel_IO), (x, kernel_IO)


def _backward(kept: tuple[Any, Any], gradient: Any) -> tuple[Any, Any]:
    """Of the kernel's gradient it is the narrower side that is transposed.

    JAX's own gradient transposes the incoming one, which XLA on a CPU then fuses
    with what made it, into loops that read across the rows.
    """
    x, kernel_IO = kept
    x_NI = x.reshape(-1, x.shape[-1])
    gradient_NO = gradient.reshape(-1, gradient.shape[-1])
    if x_NI.shape[1] <= gradient_NO.shape[1]:
        kernel_gradient_IO = x_NI.T @ gradient_NO
    else:
        kernel_gradient_IO = (gradient_NO.T @ x_NI).T
    return (gradient_NO @ kernel_IO.T).reshape(x.shape), kernel_gradient_IO


product.defvjp(_forward, _backward)


def dot_general(
    x: Any, kernel_IO: Any, dimension_numbers: Any, precision: Any = None
) -> Any:
    """``product`` as flax's ``Dense`` wants it.

    Raises:
      ValueError: for any other product than that of a linear map.
    """
    if dimension_numbers != (((x.ndim - 1,), (0,)), ((), ())) or precision is not None:
        raise ValueError(f"not the product of a linear map: {dimension_numbers}")
    return checkpoint_name(product(x, kernel_IO), RESULT)
