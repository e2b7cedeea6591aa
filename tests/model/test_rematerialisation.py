"""Computing again what is not kept: the same numbers from less memory."""

import functools

import jax
import numpy as np
import pytest

from tests.model.numpy_transformer import PAD, random_parameters, small_module
from tests.model.test_packed import SOURCE, TARGET
from transformer_ablation.model.dropout import Noise
from transformer_ablation.train.loss import loss_sums

RATES = {"dropout_rate": 0.2, "attention_rate": 0.1, "activation_rate": 0.3}


def loss(module, params, source_BS, target_BT):
    """With every place of dropout, in packed rows."""
    noise = Noise(**RATES, words=np.array([3, 5], np.uint32))
    logits_BTV = module.apply(
        {"params": params}, source_BS, target_BT, noise, packed=True
    )
    return loss_sums(logits_BTV, target_BT, PAD, 0.1, "all_classes").loss


@functools.cache
def gradients(layers, kept):
    """Loss and gradients of a module that keeps so much."""
    module = small_module(num_layers=layers, rematerialize=kept)
    params = random_parameters(module, seed=3)
    function = jax.jit(jax.value_and_grad(functools.partial(loss, module)))
    return jax.device_get(function(params, SOURCE, TARGET))


# Two layers are written out, five are a loop.
@pytest.mark.parametrize(
    ("layers", "kept"),
    [(2, "cheap"), pytest.param(5, "cheap", marks=pytest.mark.slow), (5, "layers")],
)
def test_gradients_are_those_of_everything_kept(layers, kept):
    """The masks of dropout too: they are made again from the same words."""
    value, found = gradients(layers, kept)
    expected_value, expected = gradients(layers, "none")
    np.testing.assert_allclose(value, expected_value, rtol=1e-6)
    flat = jax.tree_util.tree_leaves_with_path(found)
    for (path, leaf), wanted in zip(flat, jax.tree.leaves(expected), strict=True):
        atol = 1e-5 * np.abs(wanted).max()
        np.testing.assert_allclose(leaf, wanted, atol=atol, err_msg=path)


def test_parameters_keep_their_names():
    trees = [
        jax.tree.structure(random_parameters(small_module(rematerialize=kept), seed=3))
        for kept in ("none", "cheap", "layers")
    ]
    assert trees[0] == trees[1] == trees[2]


def test_less_is_kept():
    """Five layers of long rows: what is kept outweighs what one layer needs."""
    module = functools.partial(small_module, num_layers=5)
    params = random_parameters(module(), seed=3)
    rows_BL = np.full((4, 64), PAD + 1, np.int32)
    sizes = []
    for kept in ("none", "cheap", "layers"):
        function = jax.grad(functools.partial(loss, module(rematerialize=kept)))
        compiled = jax.jit(function).lower(params, rows_BL, rows_BL).compile()
        sizes.append(compiled.memory_analysis().temp_size_in_bytes)
    assert sizes[1] < 0.7 * sizes[0] and sizes[2] < 0.7 * sizes[1]
