"""Recurrent and convolutional layers are PyTorch's, with the same weights."""

import jax
import numpy as np
import pytest

from transformer_ablation.model.convolution import GatedConvolution
from transformer_ablation.model.recurrence import Begin, RecurrentLayer

pytestmark = pytest.mark.parity
BATCH, LENGTH, INPUTS, UNITS = 3, 7, 5, 6
RANDOM = np.random.default_rng(1)
X_BLI = RANDOM.standard_normal((BATCH, LENGTH, INPUTS)).astype(np.float32)


def drawn(module, *inputs):
    """Random parameters, none of them zero or one."""
    shapes = jax.eval_shape(module.init, jax.random.key(0), *inputs)["params"]
    return jax.tree.map(
        lambda leaf: 0.5 * RANDOM.standard_normal(leaf.shape, np.float32), shapes
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_layer_of_cells(kind, reverse):
    """States of every position, forwards and backwards."""
    torch = pytest.importorskip("torch")
    module = RecurrentLayer(kind, INPUTS, UNITS, "float32")
    params = drawn(module, X_BLI, Begin())
    ours = module.apply({"params": params}, X_BLI, Begin(), reverse)
    made = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind]
    theirs = made(INPUTS, UNITS, batch_first=True)
    hidden = np.zeros_like(params["bias"])
    if kind == "gru":
        hidden[2 * UNITS :] = params["hidden_bias"]
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.tensor(params["input_kernel"].T))
        theirs.weight_hh_l0.copy_(torch.tensor(params["recurrent_kernel"].T))
        theirs.bias_ih_l0.copy_(torch.tensor(params["bias"]))
        theirs.bias_hh_l0.copy_(torch.tensor(hidden))
        turn = slice(None, None, -1 if reverse else 1)
        out_BLU, last = theirs(torch.tensor(X_BLI[:, turn].copy()))
    np.testing.assert_allclose(ours[0], out_BLU.numpy()[:, turn], rtol=1e-5, atol=1e-6)
    end = 0 if reverse else -1
    last = last if kind == "lstm" else (last,)
    for state_BLU, expected in zip(ours, last, strict=True):
        np.testing.assert_allclose(
            state_BLU[:, end], expected.numpy()[0], rtol=1e-5, atol=1e-6
        )


def test_gradient_of_an_lstm():
    """Ours is of one product over all times a kernel; PyTorch's is its own."""
    torch = pytest.importorskip("torch")
    module = RecurrentLayer("lstm", INPUTS, UNITS, "float32")
    params = drawn(module, X_BLI, Begin())
    asked = RANDOM.standard_normal((BATCH, LENGTH, UNITS)).astype(np.float32)

    def loss(params, x_BLI):
        return (module.apply({"params": params}, x_BLI, Begin())[0] * asked).sum()

    ours, ours_x = jax.grad(loss, argnums=(0, 1))(params, X_BLI)
    theirs = torch.nn.LSTM(INPUTS, UNITS, batch_first=True)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.tensor(params["input_kernel"].T))
        theirs.weight_hh_l0.copy_(torch.tensor(params["recurrent_kernel"].T))
        theirs.bias_ih_l0.copy_(torch.tensor(params["bias"]))
        theirs.bias_hh_l0.zero_()
    x = torch.tensor(X_BLI, requires_grad=True)
    (theirs(x)[0] * torch.tensor(asked)).sum().backward()
    pairs = {
        "input_kernel": theirs.weight_ih_l0.grad.numpy().T,
        "recurrent_kernel": theirs.weight_hh_l0.grad.numpy().T,
        "bias": theirs.bias_ih_l0.grad.numpy(),
    }
    for name, expected in pairs.items():
        np.testing.assert_allclose(ours[name], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours_x, x.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("width", "dilation", "causal"), [(3, 1, False), (3, 2, False), (2, 4, True)]
)
def test_gated_convolution(width, dilation, causal):
    """``conv1d`` and ``glu``, padded on the left alone where it is causal."""
    torch = pytest.importorskip("torch")
    module = GatedConvolution(INPUTS, width, dilation, causal, "float32")
    params = drawn(module, X_BLI)
    ours = module.apply({"params": params}, X_BLI)
    reach = (width - 1) * dilation
    sides = (reach, 0) if causal else (reach // 2, reach // 2)
    x_BIL = torch.nn.functional.pad(torch.tensor(X_BLI).transpose(1, 2), sides)
    weight = torch.tensor(params["kernel"].transpose(2, 1, 0).copy())
    y = torch.nn.functional.conv1d(
        x_BIL, weight, torch.tensor(params["bias"]), dilation=dilation
    )
    expected = torch.nn.functional.glu(y, dim=1).transpose(1, 2)
    np.testing.assert_allclose(ours, expected.numpy(), rtol=1e-5, atol=1e-6)
