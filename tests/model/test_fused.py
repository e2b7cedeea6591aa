"""Attention by JAX's function: what our own products give, and their gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    PAD,
    random_parameters,
    small_module,
)
from tests.model.test_packed import SOURCE, TARGET
from tests.model.test_transformer import assert_close, compiled
from transformer_ablation.model import attention
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.fused import fused_attention
from transformer_ablation.train.loss import loss_sums

B, L, M, H = 2, 3, 5, 4
generator = np.random.default_rng(0)
# The second sentence's last query sees nothing.
MASKS = {
    "some": np.array(
        [
            [[[1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]]],
            [[[0, 1, 0, 0, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]]],
        ],
        bool,
    ),
    "of_the_memory": np.array([[[[1, 1, 1, 0, 0]]], [[[0, 0, 0, 0, 0]]]], bool),
}


def inputs(d_k, d_v):
    """Queries, keys, values, and a gradient of the result."""
    shapes = ((B, L, H, d_k), (B, M, H, d_k), (B, M, H, d_v), (B, L, H, d_v))
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


def by_numpy(q_BLHK, k_BMHK, v_BMHU, mask_B1LM, scale):
    """Section 3.2.1 in float64; zeros for a query that sees nothing."""
    scores_BHLM = np.einsum("BLHK,BMHK->BHLM", q_BLHK, k_BMHK, dtype=np.float64)
    weights_BHLM = np.exp(scale * scores_BHLM) * mask_B1LM
    total_BHL1 = weights_BHLM.sum(-1, keepdims=True)
    weights_BHLM /= np.where(total_BHL1 == 0, 1, total_BHL1)
    return np.einsum("BHLM,BMHU->BLHU", weights_BHLM, v_BMHU)


def own(q_BLHK, k_BMHK, v_BMHU, mask_B1LM, scale):
    """The parts of ``MultiHeadAttention`` in its own layout."""
    k_BHKM, v_BHMU = jnp.moveaxis(k_BMHK, 1, 3), jnp.moveaxis(v_BMHU, 1, 2)
    scores_BHLM = scale * attention.dot_scores(q_BLHK, k_BHKM)
    weights_BHLM = attention.attention_weights(scores_BHLM, mask_B1LM)
    return attention.weighted_sum(weights_BHLM, v_BHMU)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("d_k", "d_v"), [(7, 7), (7, 11), (11, 7)])
def test_fused_attention_is_that_of_numpy_with_our_gradients(d_k, d_v, mask):
    *qkv, cotangent_BLHU = inputs(d_k, d_v)
    mask_B1LM = MASKS[mask]
    fused = functools.partial(
        fused_attention, mask_B1LM=mask_B1LM, scale=0.3, implementation="xla"
    )
    found_BLHU, pull = jax.vjp(jax.jit(fused), *qkv)
    assert_close(found_BLHU, by_numpy(*qkv, mask_B1LM, 0.3))
    assert not np.any(np.asarray(found_BLHU)[1, -1])
    _, expected = jax.vjp(lambda *x: own(*x, mask_B1LM, 0.3), *qkv)
    for ours, theirs in zip(
        expected(cotangent_BLHU), pull(cotangent_BLHU), strict=True
    ):
        assert_close(theirs, ours)
    # What sees nothing has a gradient of zero, not NaN.
    assert not np.any(np.asarray(pull(cotangent_BLHU)[0])[1, -1])


CASES = {
    "paper": {},
    "window_dot": {"attention_window": 3, "compatibility": "dot"},
    "pre_biases": {"norm": "pre", "projection_biases": True},
}


@pytest.mark.parametrize(
    ("case", "packed"),
    [
        ("paper", False),
        ("window_dot", False),
        ("pre_biases", True),
        pytest.param("paper", True, marks=pytest.mark.slow),
        pytest.param("window_dot", True, marks=pytest.mark.slow),
        pytest.param("pre_biases", False, marks=pytest.mark.slow),
    ],
)
def test_model_with_fused_attention_is_the_same_model(case, packed):
    """Loss, logits and gradients, also of a row of padding; with dropout."""
    fields = {"num_layers": 2, **CASES[case]}
    modules = [
        small_module(**fields, attention_implementation=name) for name in ("own", "xla")
    ]
    params = random_parameters(modules[0], seed=3)
    words = np.array([3, 5], np.uint32)
    noise = Noise(dropout_rate=0.2, activation_rate=0.1, words=words)

    def loss(module, params):
        logits_BTV = module.apply(
            {"params": params}, SOURCE, TARGET, noise, packed=packed
        )
        found = loss_sums(logits_BTV, TARGET, PAD, 0.1, "all_classes")
        return found.loss, logits_BTV

    (ours, logits), (theirs, their_logits) = (
        jax.jit(jax.grad(functools.partial(loss, module), has_aux=True))(params)
        for module in modules
    )
    assert_close(their_logits, logits)
    flat = jax.tree_util.tree_leaves_with_path(theirs)
    for (path, leaf), expected in zip(flat, jax.tree.leaves(ours), strict=True):
        highest = np.abs(expected).max()
        # Sums of some thousand terms in another order; a bias of all keys moves no
        # weight, so its gradient is rounding alone.
        atol = max(1e-4 * highest, 1e-6)
        np.testing.assert_allclose(leaf, expected, atol=atol, err_msg=path)


def test_weights_are_there_for_whoever_asks():
    module = small_module(num_layers=2, attention_implementation="xla")
    params = random_parameters(module, seed=3)
    logits_BTV, sown = compiled(module)(params, SOURCE[:, :6], TARGET[:, :6])
    alone = jax.jit(module.apply)({"params": params}, SOURCE[:, :6], TARGET[:, :6])
    assert_close(logits_BTV, alone)
    (weights_NBHLM,) = sown["encoder"]["self_attention"]["weights"]
    assert weights_NBHLM.shape == (2, 4, 2, 6, 6)


def test_half_precision_is_near_single(dtype="bfloat16"):
    """Inputs rounded to 2^-9 of themselves, weights too: 2% of the largest."""
    *qkv, _ = inputs(8, 8)
    low = [x.astype(jnp.dtype(dtype)) for x in qkv]
    found_BLHU = fused_attention(*low, MASKS["some"], 0.3, "xla")
    assert found_BLHU.dtype == dtype
    expected_BLHU = by_numpy(*qkv, MASKS["some"], 0.3)
    highest = np.abs(expected_BLHU).max()
    np.testing.assert_allclose(
        found_BLHU.astype(np.float32), expected_BLHU, atol=0.02 * highest
    )
