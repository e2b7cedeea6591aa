"""Banded attention is masked attention at a cost that grows with the row alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    EOS,
    PAD,
    parameter_shapes,
    random_parameters,
    small_module,
)
from transformer_ablation.model import band_costs
from transformer_ablation.model.accounting import forward_flops
from transformer_ablation.model.attention import MultiHeadAttention
from transformer_ablation.model.banded import Band
from transformer_ablation.model.dropout import Noise
from transformer_ablation.model.memory import kept_values
from transformer_ablation.model.packed import places


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window, length", [(1, 37), (4, 50), (33, 64), (200, 40)])
def test_each_pair_that_may_meet_meets_once(window, length, causal):
    """Numbers of positions go the way of keys: a block's mask names the pairs."""
    real_BL = np.random.default_rng(0).random((2, length)) < 0.8
    band = Band(jnp.asarray(real_BL), None, window, causal)
    number_BL = jnp.broadcast_to(jnp.arange(length), (2, length))
    queries_CI, keys_CJ = band.queries(number_BL), band.keys(number_BL)
    mask_C1IJ = np.asarray(band.mask())
    assert mask_C1IJ.shape == (len(keys_CJ), 1, queries_CI.shape[1], keys_CJ.shape[1])
    found = np.zeros((2, length, length), int)
    blocks = len(keys_CJ) // 2
    last = (blocks - 1) * band.extent.block
    for c, _, i, j in np.argwhere(mask_C1IJ):
        if c % blocks < blocks - 1 or last + i < length:  # behind the row: cut off
            found[c // blocks, queries_CI[c, i], keys_CJ[c, j]] += 1
    left, right = window // 2, 0 if causal else (window - 1) // 2
    expected = np.zeros_like(found)
    for b, query, key in np.ndindex(*found.shape):
        near = query - left <= key <= query + right
        expected[b, query, key] = near and real_BL[b, key]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(band.whole()[:, 0], expected.astype(bool))


def test_cost_does_not_grow_with_the_row():
    """16 queries of a block see 20 to the left, 19 to the right, and their own 20."""
    assert band_costs.extent(4096, 40, causal=False) == (20, 20, 19)
    assert band_costs.extent(4096, 40, causal=True) == (20, 20, 0)
    assert band_costs.extent(4096, 3, causal=False) == (16, 1, 1)
    # As much as the row has: then one block, as it is.
    assert band_costs.extent(59, 40, causal=False) == (59, 0, 0)
    assert band_costs.extent(60, 40, causal=False) == (20, 20, 19)
    config = small_module(attention_implementation="banded", attention_window=40).config
    assert band_costs.seen(config, 4096.0, causal=False) == 59
    assert band_costs.seen(config, 30.5, causal=False) == 30.5
    assert band_costs.seen(small_module().config, 4096.0, causal=False) == 4096


def test_operations_are_of_what_is_seen():
    """40 and 50 positions of a window of 4: 16 + 2 + 1 keys, and 16 + 2 causal ones.

    Weights are kept of both stacks, and those of a decoder layer are at hand besides.
    """
    own, banded = (
        small_module(attention_implementation=name, attention_window=4).config
        for name in ("own", "banded")
    )
    saved = forward_flops(own, 23, 80, 100, 40, 50) - forward_flops(
        banded, 23, 80, 100, 40, 50
    )
    pairs = 80 * (40 - 19) + 100 * (50 - 18)
    assert saved == 2 * pairs * 2 * (7 + 5)
    kept = kept_values(own, 40) - kept_values(banded, 40)
    assert kept == 2 * ((40 - 19) + 2 * (40 - 18))


def sentences(rng, rows, length, packed):
    """Ids, padded; packed rows hold sequences of a few pieces each."""
    ids_BL = rng.integers(5, 23, (rows, length))
    for row in ids_BL:
        used = rng.integers(length // 2, length + 1)
        row[used:] = PAD
        row[used - 1] = EOS
    if packed:
        ids_BL[(rng.random(ids_BL.shape) < 0.15) & (ids_BL != PAD)] = EOS
    return jnp.asarray(ids_BL, jnp.int32)


# Whether rows are packed, and fields.
CASES = {
    "paper": (False, {"attention_window": 5}),
    "dot": (
        True,
        {
            "attention_window": 8,
            "compatibility": "dot",
            "norm": "pre",
            "rematerialize": "layers",
        },
    ),
    "additive": (True, {"attention_window": 20, "compatibility": "additive"}),
    "far": (False, {"attention_window": 300, "projection_biases": True}),
}


# Cases whose parts others have.
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("additive", "far")]


@pytest.mark.parametrize("case", ["paper", "dot", *OTHERS])
def test_model_with_banded_attention_is_the_same_model(case):
    """Outputs and gradients; 45 and 50 positions are no multiple of a block."""
    packed, fields = CASES[case]
    rng = np.random.default_rng(1)
    source, target = (sentences(rng, 3, n, packed) for n in (45, 50))
    modules = [
        small_module(attention_implementation=name, **fields)
        for name in ("own", "banded")
    ]
    params = random_parameters(modules[0], seed=3)
    noise = Noise(dropout_rate=0.2, words=np.array([3, 5], np.uint32))
    weight_TV = jnp.asarray(rng.standard_normal((1, 50, 23)), jnp.float32)

    def value(module, params):
        logits = module.apply({"params": params}, source, target, noise, packed=packed)
        logits = jnp.where((target != PAD)[..., None], logits, 0.0)
        return (logits * weight_TV).sum(), logits

    (ours, logits), (theirs, their_logits) = (
        jax.jit(jax.grad(functools.partial(value, module), has_aux=True))(params)
        for module in modules
    )
    np.testing.assert_allclose(their_logits, logits, rtol=1e-4, atol=1e-4)
    flat = jax.tree_util.tree_leaves_with_path(theirs)
    for (path, leaf), expected in zip(flat, jax.tree.leaves(ours), strict=True):
        # Sums of hundreds of terms in another order; a bias of all keys moves no
        # weight, so its gradient is rounding alone.
        atol = max(1e-4 * np.abs(expected).max(), 1e-5)
        np.testing.assert_allclose(leaf, expected, atol=atol, err_msg=str(path))


def test_query_that_sees_nothing_gets_zeros_and_no_gradient():
    config = small_module(attention_window=3).config
    attention = MultiHeadAttention(config)
    x_BLD = jnp.asarray(
        np.random.default_rng(2).standard_normal((1, 40, 12)), "float32"
    )
    real_BL = jnp.arange(40)[None] < 20
    band = Band(real_BL, None, 3, False)
    params = jax.jit(attention.init)(jax.random.key(0), x_BLD, x_BLD, band)["params"]

    def last(x_BLD):
        return attention.apply({"params": params}, x_BLD, x_BLD, band)[0, 25].sum()

    assert last(x_BLD) == 0
    np.testing.assert_array_equal(jax.grad(last)(x_BLD), 0)


def test_sequences_of_a_packed_row_do_not_meet_in_a_block():
    """The second block has positions 16 to 31 and sees from 14; 19 ends a sequence."""
    ids_BL = jnp.asarray([([7] * 9 + [EOS]) * 6])
    band = Band(ids_BL != PAD, places(ids_BL, EOS), 4, False)
    mask_IJ = np.asarray(band.mask())[1, 0]
    assert (np.flatnonzero(mask_IJ[3]) + 14).tolist() == [17, 18, 19]
    assert (np.flatnonzero(mask_IJ[4]) + 14).tolist() == [20, 21]


def test_weights_are_there_for_whoever_asks():
    module = small_module(attention_window=3, attention_implementation="banded")
    params = random_parameters(module, seed=3)
    ids = sentences(np.random.default_rng(4), 2, 40, False)
    _, sown = module.apply({"params": params}, ids, ids, mutable=["attention"])
    (weights_NBHLM,) = sown["attention"]["encoder"]["self_attention"]["weights"]
    assert weights_NBHLM.shape == (1, 2, 2, 40, 40)


def test_no_array_is_as_large_as_all_pairs():
    """Of 1,000 positions, none of 10^6 numbers or more: not even a mask."""
    module = small_module(attention_window=3, attention_implementation="banded")
    ids = jax.ShapeDtypeStruct((1, 1000), jnp.int32)
    params = parameter_shapes(module)
    jaxpr = jax.make_jaxpr(
        lambda p, ids: module.apply({"params": p}, ids, method="encode")
    )(params, ids)

    def sizes(jaxpr):
        for eqn in jaxpr.eqns:
            yield from (v.aval.size for v in eqn.outvars)
            for inner in jax.tree.leaves(
                list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
            ):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from sizes(inner)

    assert max(sizes(jaxpr.jaxpr)) < 10**6


def test_dropout_of_weights_is_of_the_row_and_not_of_the_device():
    """Rows 2 and 3 alone, as rows 2 and 3 of four: the same masks."""
    config = small_module(attention_window=5).config
    attention = MultiHeadAttention(config)
    x_BLD = jnp.asarray(
        np.random.default_rng(5).standard_normal((4, 45, 12)), "float32"
    )
    params = jax.jit(attention.init)(
        jax.random.key(0), x_BLD, x_BLD, jnp.ones((1, 1, 1, 1), bool)
    )

    def run(x_BLD, first):
        band = Band(jnp.ones(x_BLD.shape[:2], bool), None, 5, False)
        words = np.array([3, 5], np.uint32)
        noise = Noise(attention_rate=0.5, first_row=first, words=words)
        return attention.apply(params, x_BLD, x_BLD, band, noise)

    run = jax.jit(run)
    np.testing.assert_allclose(run(x_BLD, 0)[2:], run(x_BLD[2:], 2), atol=1e-5)
    assert not np.allclose(run(x_BLD, 0)[2:], run(x_BLD[2:], 0), atol=1e-2)
