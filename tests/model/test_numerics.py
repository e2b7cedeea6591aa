"""Spread at the start, and finite numbers in half precision."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    EOS,
    PAD,
    VOCABULARY,
    random_parameters,
    random_sentences,
    small_module,
)
from transformer_ablation.model.attention import MultiHeadAttention
from transformer_ablation.model.feed_forward import FeedForward
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.train.loss import loss_sums

WIDE = {"num_layers": 2, "d_model": 64, "d_ff": 256, "num_heads": 4}
V = 1000


def wide_model(**fields):
    """Sizes of width 64 with square projections."""
    fields = {"d_k": 16, "d_v": 16, **fields}
    return dataclasses.replace(small_module(**WIDE).config, **fields)


@functools.cache
def started(**fields):
    """A model of width 64 as it is before training, and what its parts put out."""
    module = Transformer(wide_model(**fields), V, pad_id=0, bos_id=1, eos_id=3)
    generator = np.random.default_rng(0)
    source_BS, target_BT = generator.integers(3, V, (2, 16, 20)).astype(np.int32)

    def run(key):
        params = module.init(key, source_BS, target_BT)["params"]
        logits_BTV = module.apply({"params": params}, source_BS, target_BT)
        return params, logits_BTV

    params, logits_BTV = jax.device_get(jax.jit(run)(jax.random.key(0)))
    return params, logits_BTV, target_BT


def test_embeddings_times_their_scale_have_deviation_one():
    """N(0, 1/d) times sqrt(d) (section 3.4): as large as a layer norm's output."""
    params, *_ = started()
    table_VD = params["shared_embedding"]
    assert table_VD.std() * 64**0.5 == pytest.approx(1, abs=0.02)
    assert abs(table_VD.mean()) * 64**0.5 < 0.02


def test_embeddings_of_deviation_one_need_no_scale_but_their_logits_do():
    """Flax's example: N(0, 1), used as it is, and logits divided by sqrt(d).

    Its inputs and its logits are then as large as the paper's.
    """
    params, logits_BTV, _ = started(
        embedding_stddev=1.0, scale_embeddings=False, scale_logits=True
    )
    assert params["shared_embedding"].std() == pytest.approx(1, abs=0.02)
    assert logits_BTV.std() == pytest.approx(1, abs=0.1)
    _, unscaled_BTV, _ = started(embedding_stddev=1.0, scale_embeddings=False)
    np.testing.assert_allclose(unscaled_BTV, 8 * logits_BTV, rtol=1e-5, atol=1e-4)


def test_kernels_are_glorot_uniform():
    """Within sqrt(6 / (in + out)), of variance 2 / (in + out)."""
    params, *_ = started()
    for layer in (params["encoder"], params["decoder"]):
        sizes = {("feed_forward", "inner"): 320, ("feed_forward", "outer"): 320}
        sizes |= {("self_attention", name): 128 for name in ("query", "value")}
        for (part, name), total in sizes.items():
            kernel = layer[part][name]["kernel"]
            assert np.abs(kernel).max() <= (6 / total) ** 0.5
            assert kernel.var() == pytest.approx(2 / total, rel=0.05)


def test_feed_forward_adds_about_half_of_what_it_is_given():
    """Of inputs of variance 1: 2/(d + d_ff) d = 0.4 inside, half of that behind the
    ReLU, and 2/(d + d_ff) d_ff = 1.6 times that outside: 0.32."""
    x_BLD = np.random.default_rng(1).standard_normal((1, 500, 64), np.float32)
    out_BLD, _ = FeedForward(wide_model()).init_with_output(jax.random.key(0), x_BLD)
    assert out_BLD.var() == pytest.approx(0.32, rel=0.15)


@pytest.mark.parametrize("length, expected", [(1, 1.0), (300, np.e / 300 + 1 / 64)])
def test_attention_adds_less_the_more_it_averages(length, expected):
    """Square kernels keep the variance, 1, of a value. Scores s = u . x are near
    N(0, 1), so squares of M weights add up to E[exp(2 s)] / (M E[exp(s)]^2) = e / M,
    and weights exp(s) move the mean of x by u, of length 1, a d-th of it a feature."""
    generator = np.random.default_rng(1)
    x_BLD = generator.standard_normal((8, 20, 64), np.float32)
    memory_BMD = generator.standard_normal((8, length, 64), np.float32)
    mask_B1LM = np.ones((8, 1, 20, length), bool)
    given = (x_BLD, memory_BMD, mask_B1LM)
    module = MultiHeadAttention(wide_model())
    out_BLD, _ = module.init_with_output(jax.random.key(0), *given)
    assert np.asarray(out_BLD).var() == pytest.approx(expected, rel=0.3)


def test_first_loss_is_that_of_knowing_nothing():
    """Logits of deviation 1 in a tied model cost ln V + 1/2 on average."""
    _, logits_BTV, target_BT = started()
    assert logits_BTV.std() == pytest.approx(1, abs=0.1)
    found = loss_sums(logits_BTV, target_BT, 0, 0.0, "all_classes")
    assert found.nll / found.tokens == pytest.approx(np.log(V) + 0.5, abs=0.1)


HALVES = {
    "padding_and_causal": {"num_layers": 2},
    "window_pre": {"norm": "pre", "attention_window": 3},
    "additive": {"compatibility": "additive", "attention_window": 2},
}


def laid_out(counts, length, seed):
    """int32 [3, length]: in each row sequences of so many ids, then padding."""
    rows_BL = np.full((len(counts), length), PAD, np.int32)
    for row, held in zip(rows_BL, counts, strict=True):
        ids = [[*random_sentences((1, n), (n,), seed + n)[0, 1:], EOS] for n in held]
        row[: sum(held)] = [i for part in ids for i in part]
    return rows_BL


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("case", HALVES)
def test_half_precision_is_finite_forward_and_backward(dtype, case, packed):
    """With a row of nothing but padding; where all are, loss and gradient are zero.

    Packed, a row holds three pairs, of which one source is longer than the window.
    """
    module = small_module(dtype=dtype, **HALVES[case])
    params = random_parameters(module, seed=1)
    sources, targets = ([6], [2], []), ([5], [1], [])
    if packed:
        sources, targets = ([5, 1, 2], [2], []), ([1, 2, 2], [1], [])
    source_BS = laid_out(sources, 9, seed=2)
    target_BT = laid_out(targets, 7, seed=3)

    def loss(params, target_BT):
        logits_BTV = module.apply(
            {"params": params}, source_BS, target_BT, packed=packed
        )
        found = loss_sums(logits_BTV, target_BT, PAD, 0.1, "all_classes")
        return found.loss, (found, logits_BTV)

    whole = jax.jit(jax.value_and_grad(loss, has_aux=True))
    (value, (sums, logits_BTV)), gradients = whole(params, target_BT)
    assert logits_BTV.dtype == jnp.float32 and logits_BTV.shape[-1] == VOCABULARY
    assert sums.tokens == 6 and np.isfinite(value)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradients):
        assert np.isfinite(leaf).all(), path
    (value, (sums, _)), gradients = whole(params, np.full_like(target_BT, PAD))
    assert value == 0 and sums.tokens == 0
    assert not any(np.abs(leaf).max() for leaf in jax.tree.leaves(gradients))
