"""The loop over time: its gradients against JAX's own, and where it begins anew."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_models import variant
from tests.model.numpy_transformer import PAD, random_parameters
from tests.model.test_packed import SOURCE, TARGET
from transformer_ablation.model import recurrence
from transformer_ablation.model.recurrence import Begin, RecurrentLayer
from transformer_ablation.train.loss import loss_sums

RANDOM = np.random.default_rng(4)
BATCH, LENGTH, INPUTS, UNITS = 3, 5, 7, 4


def draw(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


X_BLI = draw(BATCH, LENGTH, INPUTS)
KEEP_BL = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool)


def drawn(layer):
    """Parameters of a layer, none of them zero or one."""
    shapes = jax.eval_shape(layer.init, jax.random.key(0), X_BLI, Begin())
    return jax.tree.map(lambda leaf: 0.5 * draw(*leaf.shape), shapes)


@pytest.mark.parametrize("name", ["gru_reversed", "lstm_attention_2"])
def test_gradients_are_those_of_jaxs_own_loop(name, monkeypatch):
    """Of a whole model in packed rows: kernels, states, memory and embeddings."""
    module = variant(name)
    params = random_parameters(module, seed=8)

    def gradient():
        def loss(params):
            logits_BTV = module.apply({"params": params}, SOURCE, TARGET, packed=True)
            return loss_sums(logits_BTV, TARGET, PAD, 0.1, "all_classes").loss

        return jax.jit(jax.grad(loss))(params)

    found = gradient()
    monkeypatch.setattr(recurrence, "run", lambda *args: recurrence._run(*args)[0])
    expected = gradient()
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * np.abs(b).max())


@pytest.mark.parametrize("kind", recurrence.CELLS)
def test_states_begin_anew_where_they_are_not_kept(kind):
    """Each stretch is what it is alone, from the state that is given for its place."""
    layer = RecurrentLayer(kind, INPUTS, UNITS, "float32")
    params = drawn(layer)
    count = recurrence.CELLS[kind].states
    first = tuple(draw(BATCH, LENGTH, UNITS) for _ in range(count))
    found = layer.apply(params, X_BLI, Begin(KEEP_BL, first))
    stretches = [(0, 0, 2), (0, 2, 5), (1, 4, 5)]
    for row, start, end in stretches:
        state = tuple(x[row : row + 1, start : start + 1] for x in first)
        if start == 0 and KEEP_BL[row, 0]:
            state = None  # a row that is kept from its start begins from zeros
        x_BLI = X_BLI[row : row + 1, start:end]
        alone = layer.apply(params, x_BLI, Begin(first=state))
        for ours, theirs in zip(found, alone, strict=True):
            np.testing.assert_allclose(
                ours[row, start:end], theirs[0], rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("kind", recurrence.CELLS)
def test_steps_are_the_loop(kind):
    """Of three candidates, each with inputs of its own; state in float32."""
    layer = RecurrentLayer(kind, INPUTS, UNITS, "bfloat16")
    params = drawn(layer)
    loop = layer.apply(params, X_BLI, Begin())
    state = layer.apply(params, 1, BATCH, method="zeros")
    for place in range(LENGTH):
        x_BCI = jnp.asarray(X_BLI[None, :, place])
        state = layer.apply(params, x_BCI, state, method="step")
        for ours, theirs in zip(state, loop, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(
                np.float32(ours[0]), np.float32(theirs[:, place]), rtol=2e-2, atol=1e-2
            )
    assert state[0].dtype == jnp.bfloat16
    assert all(x.dtype == jnp.float32 for x in state[1:])


def test_forget_gate_starts_open_and_other_biases_at_nothing():
    layer = RecurrentLayer("lstm", INPUTS, UNITS, "float32")
    params = layer.init(jax.random.key(3), X_BLI, Begin())["params"]
    assert params["bias"].reshape(4, UNITS).tolist() == [
        [0.0] * UNITS,
        [1.0] * UNITS,
        [0.0] * UNITS,
        [0.0] * UNITS,
    ]
    # Each gate's own square of the recurrent kernel is orthogonal.
    squares = params["recurrent_kernel"].reshape(UNITS, 4, UNITS)
    for gate in range(4):
        square = np.asarray(squares[:, gate])
        np.testing.assert_allclose(square @ square.T, np.eye(UNITS), atol=1e-5)
