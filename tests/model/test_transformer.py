"""The whole model: equal to plain numpy, causal, and blind to padding."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    BOS,
    EOS,
    PAD,
    VOCABULARY,
    NumpyTransformer,
    parameter_shapes,
    random_parameters,
    random_sentences,
    small_module,
)
from transformer_ablation.model.transformer import Transformer

# Every value of every field, and every pair of (norm, positions), (norm, tying),
# (window, depth) and (compatibility, norm) at least once; a case costs a compilation.
CASES = {
    "paper": {"num_layers": 3},
    "pre_learned_dot_3": {
        "norm": "pre",
        "positions": "learned",
        "tied_embeddings": "decoder",
        "compatibility": "dot",
        "attention_window": 3,
        "scale_embeddings": False,
        "scale_logits": True,
    },
    "pre_none_additive_2": {
        "num_layers": 3,
        "decoder_layers": 1,
        "norm": "pre",
        "positions": "none",
        "tied_embeddings": "none",
        "compatibility": "additive",
        "attention_window": 2,
        "projection_biases": True,
    },
    "post_learned_additive_3": {
        "num_layers": 3,
        "positions": "learned",
        "tied_embeddings": "none",
        "compatibility": "additive",
        "attention_window": 3,
    },
    "post_none_dot_2": {
        "decoder_layers": 3,
        "positions": "none",
        "tied_embeddings": "decoder",
        "compatibility": "dot",
        "attention_window": 2,
    },
    "pre_halves_4": {
        "norm": "pre",
        "sinusoids": "halves",
        "attention_window": 4,
        "scale_embeddings": False,
    },
    "post_halves_biases": {
        "sinusoids": "halves",
        "projection_biases": True,
        "layer_norm_epsilon": 0.1,
    },
}
SOURCE_LENGTHS, TARGET_LENGTHS = (6, 4, 1, 3), (5, 8, 2, 1)
SOURCE = random_sentences((4, 6), SOURCE_LENGTHS, seed=1)
TARGET = random_sentences((4, 8), TARGET_LENGTHS, seed=2)


@functools.lru_cache
def compiled(module):
    """``(params, source, target) -> (logits, sown weights)``, compiled."""

    @jax.jit
    def run(params, source_BS, target_BT):
        logits_BTV, sown = module.apply(
            {"params": params}, source_BS, target_BT, mutable=["attention"]
        )
        return logits_BTV, sown["attention"]

    return run


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A model of CASES, compiled, with what it says of SOURCE and TARGET."""
    module = small_module(**CASES[request.param])
    run, params = compiled(module), random_parameters(module, seed=3)
    logits_BTV, sown = jax.tree.map(np.asarray, run(params, SOURCE, TARGET))
    return types.SimpleNamespace(
        model=module.config, params=params, run=run, logits_BTV=logits_BTV, sown=sown
    )


def assert_close(actual, expected):
    """Equal to 1e-5 of the largest: float32 sums of some dozens of terms."""
    highest = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * highest)


def test_logits_equal_those_of_numpy_without_padding(case):
    assert case.logits_BTV.shape == (4, 8, VOCABULARY)
    for b in range(4):
        source = SOURCE[b, : SOURCE_LENGTHS[b]]
        target = TARGET[b, : TARGET_LENGTHS[b]]
        expected_TV = NumpyTransformer(case.model, case.params).logits(source, target)
        assert_close(case.logits_BTV[b, : len(target)], expected_TV)


def test_sown_weights_equal_those_of_numpy_and_hide_padding(case):
    """One array a stack and kind: [N, B, H, L, M], exactly 0 where numpy is."""
    lengths = {"encoder": SOURCE_LENGTHS, "decoder": TARGET_LENGTHS}
    for b in range(4):
        numpy_model = NumpyTransformer(case.model, case.params)
        numpy_model.logits(
            SOURCE[b, : SOURCE_LENGTHS[b]], TARGET[b, : TARGET_LENGTHS[b]]
        )
        found = set()
        for (stack, kind, n, h), expected_LM in numpy_model.weights.items():
            (weights_NBHLM,) = case.sown[stack][kind]["weights"]
            rows_LM = weights_NBHLM[n, b, h, : lengths[stack][b]]
            assert_close(rows_LM[:, : expected_LM.shape[1]], expected_LM)
            seen_LM = np.zeros(rows_LM.shape, bool)
            seen_LM[:, : expected_LM.shape[1]] = expected_LM > 0
            np.testing.assert_array_equal(rows_LM > 0, seen_LM)
            np.testing.assert_allclose(rows_LM.sum(axis=1), 1, rtol=1e-6)
            found.add((stack, kind, n, h))
        model = case.model
        layers = model.num_layers + 2 * (model.decoder_layers or model.num_layers)
        assert len(found) == layers * 2


def others(tokens):
    """For each id another one, and never PAD or BOS."""
    return (tokens - 4) % (VOCABULARY - 5) + 5


def test_logits_ignore_the_token_they_predict_and_later_ones(case):
    for first in range(8):
        changed = TARGET.copy()
        changed[:, first:] = others(TARGET[:, first:])
        logits_BTV = np.asarray(case.run(case.params, SOURCE, changed)[0])
        same_BTV = logits_BTV == case.logits_BTV
        assert same_BTV[:, : first + 1].all()
        if first < 7:
            assert not same_BTV[:, first + 1].all(axis=-1).any()


def test_logits_ignore_tokens_left_of_the_window(case):
    """Each layer carries a token floor(r / 2) places to the right, no further."""
    window = case.model.attention_window
    layers = case.model.decoder_layers or case.model.num_layers
    reach = 7 if window is None else layers * (window // 2)
    full = random_sentences((4, 8), [8] * 4, seed=4)
    changed = full.copy()
    changed[:, 0] = others(full[:, 0])
    before_BTV = np.asarray(case.run(case.params, SOURCE, full)[0])
    after_BTV = np.asarray(case.run(case.params, SOURCE, changed)[0])
    same_T = (before_BTV == after_BTV).all(axis=(0, 2))
    # The token is the decoder's input at place 1.
    assert same_T.tolist() == [not 1 <= t <= 1 + reach for t in range(8)]


def test_embedding_of_padding_changes_no_logit_of_a_real_piece(case):
    """Exact: a hidden place has weight 0, whatever stands there."""
    params = dict(case.params)
    for name in params:
        if name.endswith("_embedding"):
            params[name] = params[name].copy()
            params[name][PAD] += 7
    logits_BTV = np.asarray(case.run(params, SOURCE, TARGET)[0])
    pieces = np.arange(VOCABULARY) != PAD
    real_BT = np.arange(8)[None] < np.array(TARGET_LENGTHS)[:, None]
    same_BTV = logits_BTV == case.logits_BTV
    assert same_BTV[real_BT][:, pieces].all()
    assert not same_BTV[real_BT][:, PAD].any()


def test_more_padding_changes_nothing():
    module = small_module(**CASES["pre_learned_dot_3"])
    run, params = compiled(module), random_parameters(module, seed=3)
    few_BTV = np.asarray(run(params, SOURCE, TARGET)[0])
    source_BS = np.pad(SOURCE, ((0, 0), (0, 3)), constant_values=PAD)
    target_BT = np.pad(TARGET, ((0, 0), (0, 2)), constant_values=PAD)
    many_BTV = np.asarray(run(params, source_BS, target_BT)[0])
    for b in range(4):
        real = slice(TARGET_LENGTHS[b])
        assert_close(many_BTV[b, real], few_BTV[b, real])


@pytest.fixture(scope="module")
def gradients():
    """Gradients of something of logits [b, b]: row b has its own tokens.

    So d / d(embedding of row b's token p) is that of the logits at place b with
    respect to the target's place p. A row of padding follows, asked for all places.
    """
    module = Transformer(
        small_module(num_layers=2, tied_embeddings="none", attention_window=4).config,
        vocabulary_size=43,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
    )
    target = np.full((7, 6), PAD, np.int32)
    target[:6] = np.arange(5, 41).reshape(6, 6)
    source = np.full((7, 5), PAD, np.int32)
    source[:6] = [5, 6, 7, 41, 42]
    asked_BT = np.concatenate([np.eye(6), np.ones((1, 6))]).astype(np.float32)

    def quantity(params):
        logits_BTV, sown = module.apply(
            {"params": params}, source, target, mutable=["attention"]
        )
        total = (jnp.sin(logits_BTV) * asked_BT[:, :, None]).sum()
        return total, (logits_BTV, sown["attention"])

    params = random_parameters(module)
    found, (logits_BTV, sown) = jax.jit(jax.grad(quantity, has_aux=True))(params)
    found, sown = jax.tree.map(np.asarray, (found, sown))
    return types.SimpleNamespace(
        target=target, found=found, logits_BTV=logits_BTV, sown=sown
    )


def test_gradient_at_later_tokens_is_exactly_zero(gradients):
    """Two layers of r = 4 reach four places back and no place ahead."""
    size_V = np.abs(gradients.found["target_embedding"]).max(axis=1)
    for t in range(6):
        # Inputs t-4 to t are the targets t-5 to t-1 (and BOS before the first).
        seen = [t - 5 <= place < t for place in range(6)]
        size_T = size_V[gradients.target[t]]
        assert (size_T > 1e-6).tolist() == seen
        assert (size_T != 0).tolist() == seen


def test_row_of_padding_has_finite_logits_and_gradients(gradients):
    assert np.isfinite(gradients.logits_BTV).all()
    for leaf in jax.tree.leaves(gradients.found):
        assert np.isfinite(leaf).all() and np.abs(leaf).max() > 0


def test_row_of_padding_attends_to_nothing(gradients):
    """The decoder's first input is BOS even there: it alone is seen."""
    (encoder_NBHLM,) = gradients.sown["encoder"]["self_attention"]["weights"]
    (cross_NBHLM,) = gradients.sown["decoder"]["cross_attention"]["weights"]
    (own_NBHLM,) = gradients.sown["decoder"]["self_attention"]["weights"]
    assert (encoder_NBHLM[:, 6] == 0).all()
    assert (cross_NBHLM[:, 6] == 0).all()
    # Within r = 4, two places back; farther away there is nothing to see.
    assert (own_NBHLM[:, 6, :, :3, 0] == 1).all()
    assert (own_NBHLM[:, 6, :, 3:] == 0).all()
    assert (own_NBHLM[:, 6, :, :, 1:] == 0).all()
    np.testing.assert_allclose(cross_NBHLM[:, :6].sum(axis=-1), 1, rtol=1e-6)


def test_bfloat16_computes_what_float32_does_and_keeps_float32_ends():
    module = small_module(dtype="bfloat16")
    assert {leaf.dtype for leaf in jax.tree.leaves(parameter_shapes(module))} == {
        jnp.dtype("float32")
    }
    params = random_parameters(module, seed=3)
    logits_BTV, _ = compiled(module)(params, SOURCE, TARGET)
    assert logits_BTV.dtype == jnp.float32
    numpy_model = NumpyTransformer(module.config, params)
    expected_TV = numpy_model.logits(SOURCE[0, :6], TARGET[0, :5])
    error_TV = np.abs(np.asarray(logits_BTV)[0, :5] - expected_TV)
    # bfloat16 keeps 8 bits: 0.4 % a rounding, some dozens of roundings in a row.
    assert 1e-4 < error_TV.max() / np.abs(expected_TV).max() < 0.05
