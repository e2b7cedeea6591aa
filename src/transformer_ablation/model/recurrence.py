"""Recurrent cells, and loops of them over time (Hochreiter and Schmidhuber 1997).

With x_t the input and h_{t-1} the state, all products of x made before the loop:

LSTM (Gers et al. 2000; no peepholes), state (h, c):
    i, f, o = sigmoid(W x_t + U h_{t-1} + b), g = tanh(W x_t + U h_{t-1} + b)
    c_t = f c_{t-1} + i g,  h_t = o tanh(c_t)
GRU (Cho et al. 2014, with the reset gate behind the product, as cuDNN has it):
    r, z = sigmoid(W x_t + U h_{t-1} + b)
    n = tanh(W x_t + b + r (U h_{t-1} + b'))
    h_t = (1 - z) n + z h_{t-1}

Gates stand side by side in this order, each as wide as the state.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from transformer_ablation.model import linear
from transformer_ablation.model.recurrent_costs import GATES

# How many steps of time a loop's body holds.
UNROLL = 1

# (h,) of a GRU, (h, c) of an LSTM: each [..., U].
State = tuple[Any, ...]
# (name of a product, its input or None) -> what was made before the loop, plus it.
Multiply = Callable[[str, Any], Any]


class Products(NamedTuple):
    """The products of a step: ``kernels`` [I, O], and of each a ``slot``.

    A slot [..., O] is what is added to the product; one without a kernel stands
    alone. In a loop it has a leading axis of time.
    """

    kernels: dict[str, Any]
    slots: dict[str, Any]


def lstm(multiply: Multiply, state: State, context: Any) -> State:
    """The next state; ``context`` is further input made inside the loop, or None."""
    h, c = state
    sums = multiply("gates", h if context is None else _joined(h, context))
    i, f, g, o = jnp.split(sums.astype(jnp.float32), 4, axis=-1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
    return (nn.sigmoid(o) * jnp.tanh(c)).astype(h.dtype), c


def gru(multiply: Multiply, state: State, context: Any) -> State:
    """The next state, as ``lstm``."""
    (h,) = state
    x_r, x_z, x_n = jnp.split(multiply("input", context).astype(jnp.float32), 3, -1)
    h_r, h_z, h_n = jnp.split(multiply("hidden", h).astype(jnp.float32), 3, -1)
    r, z = nn.sigmoid(x_r + h_r), nn.sigmoid(x_z + h_z)
    n = jnp.tanh(x_n + r * h_n)
    return (((1 - z) * n + z * h).astype(h.dtype),)


def _joined(*parts: Any) -> Any:
    return jnp.concatenate(parts, axis=-1)


class Cell(NamedTuple):
    """A kind of cell: its step, and the arrays of its state."""

    advance: Callable[[Multiply, State, Any], State]
    states: int


CELLS = {"lstm": Cell(lstm, 2), "gru": Cell(gru, 1)}


def multiplier(products: Products, inputs: dict[str, Any] | None = None) -> Multiply:
    """Products of one step; what they are taken of is kept in ``inputs``."""

    def multiply(name: str, x: Any) -> Any:
        slot = products.slots[name]
        if name not in products.kernels:
            return slot
        if inputs is not None:
            inputs[name] = x
        return slot + x @ products.kernels[name].astype(x.dtype)

    return multiply


class Fixed(NamedTuple):
    """Masks of a step: whether to keep the state, and what may be attended to."""

    keep: Any = None
    mask: Any = None


class Given(NamedTuple):
    """What a step is given besides its state and its products; each part, or None.

    ``moving`` is the state to begin from where it is not kept, ``shared`` what is
    the same at every time, and ``mask`` so too. In a loop ``moving`` and ``fixed``
    have a leading axis of time. Masks have no gradient.
    """

    moving: State | None = None
    shared: Any = None
    fixed: Fixed | None = None
    mask: Any = None


# (multiply, state, given) -> (state, what is kept of this step)
Step = Callable[[Multiply, State, Given], tuple[State, Any]]


def _run(step: Step, reverse: bool, products: Products, state: State, given: Given):
    kernels = products.kernels

    def body(state, now):
        slots, moving, fixed = now
        inputs: dict[str, Any] = {}
        multiply = multiplier(Products(kernels, slots), inputs)
        here = given._replace(moving=moving, fixed=fixed)
        state, kept = step(multiply, state, here)
        return state, (kept, inputs)

    over = products.slots, given.moving, given.fixed
    return lax.scan(body, state, over, reverse=reverse, unroll=UNROLL)[1]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def run(step: Step, reverse: bool, products: Products, state: State, given: Given):
    """``step`` at every time; what it keeps, with a leading axis of time.

    The gradient of a kernel is one product over all times, where JAX's own would add
    one up at every step. A slot's gradient is that of its product, so it is there.
    """
    return _run(step, reverse, products, state, given)[0]


def _forward(step: Step, reverse: bool, products: Products, state: State, given: Given):
    def differentiable(slots, state, moving, shared):
        return _run(
            step,
            reverse,
            products._replace(slots=slots),
            state,
            given._replace(moving=moving, shared=shared),
        )

    kept, backward, inputs = jax.vjp(
        differentiable,
        products.slots,
        state,
        given.moving,
        given.shared,
        has_aux=True,
    )
    return kept, (backward, inputs, products.kernels)


def _backward(step: Step, reverse: bool, saved: Any, gradient: Any):
    backward, inputs, kernels = saved
    slots, state, moving, shared = backward(gradient)
    of_kernels = {
        name: linear.product_as(
            kernel.dtype,
            inputs[name].reshape(-1, kernel.shape[0]).T,
            slots[name].reshape(-1, kernel.shape[1]),
        )
        for name, kernel in kernels.items()
    }
    return Products(of_kernels, slots), state, Given(moving, shared)


run.defvjp(_forward, _backward)


def begun(state: State, given: Given) -> State:
    """The state that a step goes on from.

    Where ``given.fixed`` says not to keep it, that is ``given.moving``, or zeros.
    """
    if given.fixed is None or given.fixed.keep is None:
        return state
    first = given.moving or tuple(map(jnp.zeros_like, state))
    keep = given.fixed.keep
    return tuple(jnp.where(keep, x, y) for x, y in zip(state, first, strict=True))


def _plain(kind: str, multiply: Multiply, state: State, given: Given):
    state = CELLS[kind].advance(multiply, begun(state, given), None)
    return state, state


def by_gate(initializer: Any, gates: int) -> Any:
    """An initialiser of [I, gates * U] that draws each gate's [I, U] by itself."""

    def draw(key, shape, dtype=jnp.float32):
        keys = jax.random.split(key, gates)
        part = (shape[0], shape[1] // gates)
        return _joined(*(initializer(k, part, dtype) for k in keys))

    return draw


class RecurrentLayer(nn.Module):
    """``units`` cells of a kind, over a sequence or one position at a time.

    ``context`` is the width of input that is made inside the loop, 0 for none. The
    forget gate's bias starts at 1 (Jozefowicz et al. 2015), other biases at 0.
    """

    kind: str
    inputs: int
    units: int
    dtype: str
    context: int = 0

    def setup(self):
        gates, wide = self._gates, self._gates * self.units
        glorot = by_gate(nn.initializers.xavier_uniform(), gates)
        orthogonal = by_gate(nn.initializers.orthogonal(), gates)
        self.input_kernel = self.param("input_kernel", glorot, (self.inputs, wide))
        shape = (self.units, wide)
        self.recurrent_kernel = self.param("recurrent_kernel", orthogonal, shape)
        if self.context:
            shape = (self.context, wide)
            self.context_kernel = self.param("context_kernel", glorot, shape)
        self.bias = self.param("bias", self._first_bias, (wide,))
        if self.kind == "gru":
            zeros = nn.initializers.zeros_init()
            self.hidden_bias = self.param("hidden_bias", zeros, (self.units,))

    @property
    def _gates(self) -> int:
        return GATES[self.kind]

    def _first_bias(self, key, shape):
        forget = (self.kind == "lstm") * jnp.array([0.0, 1.0, 0.0, 0.0])[: self._gates]
        return jnp.repeat(forget, self.units)

    def products(self, x: Any) -> Products:
        """What the cell multiplies in a step, of inputs [..., I]."""
        x = linear.product(x.astype(self.dtype), self.input_kernel)
        x = linear.biased(x, self.bias)
        if self.kind == "lstm":
            kernel = self.recurrent_kernel
            if self.context:
                kernel = jnp.concatenate([kernel, self.context_kernel], axis=0)
            return Products({"gates": kernel}, {"gates": x})
        kernels = {"hidden": self.recurrent_kernel}
        if self.context:
            kernels["input"] = self.context_kernel
        bias = jnp.pad(self.hidden_bias, (2 * self.units, 0)).astype(self.dtype)
        bias = jnp.broadcast_to(bias.reshape((1,) * (x.ndim - 1) + (-1,)), x.shape)
        return Products(kernels, {"input": x, "hidden": bias})

    def zeros(self, *shape: int) -> State:
        """The state before anything is read: [..., U]."""
        h = jnp.zeros((*shape, self.units), self.dtype)
        return (h, jnp.zeros(h.shape))[: CELLS[self.kind].states]

    def __call__(self, x_BLI, begin: "Begin", reverse: bool = False) -> State:
        """The states after every position: each [B, L, U]; from the right, if asked."""
        step = functools.partial(_plain, self.kind)
        products = self.products(in_loop(x_BLI))
        return self.loop(step, products, begin, Given(), reverse)

    def loop(
        self,
        step: Step,
        products: Products,
        begin: "Begin",
        given: Given,
        reverse: bool = False,
    ) -> Any:
        """What ``step`` keeps at every position: trees of [B, L, ...]."""
        fixed, state, moving = given.fixed or Fixed(), begin.first, None
        if begin.keep_BL is not None:
            fixed = fixed._replace(keep=in_loop(begin.keep_BL[..., None]))
            state, moving = None, state and tuple(map(in_loop, state))
        batch = next(iter(products.slots.values())).shape[1]
        state = self.zeros(batch, 1) if state is None else state
        given = given._replace(moving=moving, fixed=fixed)
        kept = run(step, reverse, products, state, given)
        return jax.tree.map(lambda x: jnp.swapaxes(x[:, :, 0], 0, 1), kept)

    def step(self, x_BCI, state: State) -> State:
        """The next state of every candidate: each [B, C, U]."""
        multiply = multiplier(self.products(x_BCI))
        return _plain(self.kind, multiply, state, Given())[0]


class Begin(NamedTuple):
    """Where a layer begins anew, and from which state.

    Where not ``keep_BL``, a position goes on from ``first`` (each [B, L, U]), or from
    zeros. Without ``keep_BL`` a row is one sequence, which begins from ``first`` (each
    [B, 1, U]), or from zeros.
    """

    keep_BL: Any = None
    first: State | None = None


def in_loop(x_BLI: Any) -> Any:
    """[B, L, ...] as a loop over positions has it: [L, B, 1, ...]."""
    return jnp.swapaxes(x_BLI, 0, 1)[:, :, None]
