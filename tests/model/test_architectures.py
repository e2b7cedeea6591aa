"""What holds of every other architecture: equal to numpy, causal, blind to padding."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model import test_packed
from tests.model.numpy_models import VARIANTS, NumpyModel, variant
from tests.model.numpy_transformer import (
    BOS,
    PAD,
    SMALL,
    VOCABULARY,
    parameter_shapes,
    random_parameters,
    random_sentences,
    small_module,
)
from tests.model.test_decoding import (
    BATCH,
    CANDIDATES,
    CHOSEN,
    LENGTH,
    PARENTS,
    SOURCE_LENGTHS,
    histories,
)
from tests.model.test_decoding import SOURCE as FEW
from tests.model.test_transformer import (
    SOURCE,
    TARGET,
    TARGET_LENGTHS,
    assert_close,
    others,
)
from tests.model.test_transformer import SOURCE_LENGTHS as LENGTHS
from transformer_ablation.decode.beam import BeamSettings
from transformer_ablation.evaluate.translation import make_search
from transformer_ablation.model import widths
from transformer_ablation.model.convolution import GatedConvolution
from transformer_ablation.model.dropout import Noise
from transformer_ablation.train.loss import loss_sums


@pytest.fixture(scope="module", params=VARIANTS)
def case(request):
    """A model, compiled, with what it says of SOURCE and TARGET."""
    module = variant(request.param)
    params = random_parameters(module, seed=3)

    @jax.jit
    def run(params, source_BS, target_BT):
        logits_BTV, sown = module.apply(
            {"params": params}, source_BS, target_BT, mutable=["attention"]
        )
        return logits_BTV, sown

    logits_BTV, sown = jax.tree.map(np.asarray, run(params, SOURCE, TARGET))
    return types.SimpleNamespace(
        module=module, params=params, run=run, logits_BTV=logits_BTV, sown=sown
    )


def test_logits_and_weights_are_those_of_numpy_without_padding(case):
    for b in range(4):
        source, target = SOURCE[b, : LENGTHS[b]], TARGET[b, : TARGET_LENGTHS[b]]
        alone = NumpyModel(case.module.config, case.params)
        expected_TV = alone.logits(source, target)
        assert_close(case.logits_BTV[b, : len(target)], expected_TV)
        if not alone.weights:
            assert case.sown == {}
            continue
        sown = case.sown["attention"]["decoder"]["cross_attention"]["weights"]
        (weights_NB1TS,) = sown
        assert weights_NB1TS.shape == (len(alone.weights), 4, 1, 8, 6)
        for n, weights_TS in enumerate(alone.weights):
            found_TS = weights_NB1TS[n, b, 0, : len(target)]
            assert_close(found_TS[:, : len(source)], weights_TS)
            assert (found_TS[:, len(source) :] == 0).all()


def test_logits_ignore_the_token_they_predict_and_later_ones(case):
    for first in (0, 3, 7):
        changed = TARGET.copy()
        changed[:, first:] = others(TARGET[:, first:])
        logits_BTV = np.asarray(case.run(case.params, SOURCE, changed)[0])
        same_BTV = logits_BTV == case.logits_BTV
        assert same_BTV[:, : first + 1].all()
        if first < 7:
            assert not same_BTV[:, first + 1].all(axis=-1).any()


def test_every_source_piece_counts(case):
    """Also through a single state: every place moves every logit of its sentence."""
    for place in range(6):
        changed = SOURCE.copy()
        changed[:, place] = others(SOURCE[:, place])
        held_B = np.array(LENGTHS) > place
        changed[~held_B] = SOURCE[~held_B]
        logits_BTV = np.asarray(case.run(case.params, changed, TARGET)[0])
        same_B = (logits_BTV == case.logits_BTV).all(axis=(1, 2))
        np.testing.assert_array_equal(same_B, ~held_B)


def test_embedding_of_padding_changes_no_logit_of_a_real_piece(case):
    """Exact: padding reaches nothing, whatever stands there."""
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


def started(module, params, candidates=CANDIDATES, fitted=False, source=FEW):
    """The cache of a search of ``LENGTH`` positions."""
    args = (source, candidates, LENGTH, fitted)

    def start(params):
        return module.apply({"params": params}, *args, method="start_cache")

    return jax.jit(start)(params)


def test_cached_steps_say_what_numpy_says_of_each_candidates_history(case):
    """Candidates survive twice, die out and swap; the first step may be of one."""
    module = case.module

    @jax.jit
    def step(params, cache, tokens_BC, position):
        args = (cache, tokens_BC, position)
        return module.apply({"params": params}, *args, method="step")

    numpy_model = NumpyModel(module.config, case.params)
    assert not module.grows
    # Of one candidate in half of the cases, as each is a compilation.
    first_parents = {CANDIDATES: PARENTS[0], 1: np.zeros_like(PARENTS[0])}
    for first in [1] if module.config.num_layers > 1 else [CANDIDATES]:
        cache = started(module, case.params, fitted=first == 1)
        tokens_BC = np.full((BATCH, first), BOS, np.int32)
        for position, now in enumerate(histories()):
            if position == LENGTH:
                break
            if position:
                parents = (
                    first_parents[first] if position == 1 else PARENTS[position - 1]
                )
                cache, tokens_BC = module.follow(cache, parents), CHOSEN[position - 1]
            cache = module.make_room(cache, LENGTH)
            logits_BCV, cache = step(case.params, cache, tokens_BC, np.int32(position))
            for b, c in np.ndindex(tokens_BC.shape):
                target = [*now[b][c][1:], PAD]  # what is predicted is not looked at
                source = FEW[b, : SOURCE_LENGTHS[b]]
                expected_V = numpy_model.logits(source, target)[-1]
                assert_close(np.asarray(logits_BCV)[b, c], expected_V)


@pytest.mark.parametrize(
    "case", ["gru_reversed", "lstm_attention_2", "dilated_3"], indirect=True
)
def test_a_fitting_width_changes_nothing(case, monkeypatch):
    monkeypatch.setattr(widths, "NARROWEST", 4)
    source = random_sentences((3, 12), (5, 0, 2), seed=5)
    found, expected = (
        started(case.module, case.params, 1, fitted, source) for fitted in (True, False)
    )
    for ours, theirs in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
    ):
        if ours.shape[:2] == (3, 12):  # of the memory; nothing is made behind the width
            assert (np.asarray(ours)[:, 8:] == 0).all()
            ours, theirs = np.asarray(ours)[0, :5], np.asarray(theirs)[0, :5]
        elif ours.shape[:1] == (3,):
            ours, theirs = np.asarray(ours)[::2], np.asarray(theirs)[::2]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_sequences_that_share_a_row_are_each_as_numpy_has_it_alone(case):
    def run(params):
        args = (test_packed.SOURCE, test_packed.TARGET)
        return case.module.apply({"params": params}, *args, packed=True)

    logits_BTV = np.asarray(jax.jit(run)(case.params))
    assert np.isfinite(logits_BTV).all()
    alone = NumpyModel(case.module.config, case.params)
    for row, held in enumerate(test_packed.pairs()):
        start = 0
        for source, target in held:
            found_TV = logits_BTV[row, start : start + len(target)]
            assert_close(found_TV, alone.logits(source, target))
            start += len(target)


@pytest.mark.parametrize(
    "case", ["lstm_2", "gru_attention", "dilated_3"], indirect=True
)
def test_gradient_of_packed_rows_is_that_of_rows_of_one(case):
    """Of every parameter; and each has one."""
    alone = [pair for held in test_packed.pairs() for pair in held]
    source, target = np.full((2, len(alone), 8), PAD, np.int32)
    for i, (source_ids, target_ids) in enumerate(alone):
        source[i, : len(source_ids)] = source_ids
        target[i, : len(target_ids)] = target_ids

    def loss(params, source_BS, target_BT, packed):
        variables = {"params": params}
        logits_BTV = case.module.apply(variables, source_BS, target_BT, packed=packed)
        return loss_sums(logits_BTV, target_BT, PAD, 0.1, "all_classes").loss

    run = jax.jit(jax.grad(loss), static_argnums=3)
    expected = run(case.params, source, target, False)
    found = run(case.params, test_packed.SOURCE, test_packed.TARGET, True)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = np.abs(b).max()
        assert scale > 0
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize(
    ("name", "sums", "weights"),
    [("lstm_2", 5, 0), ("lstm_attention_2", 5, 0), ("dilated_3", 8, 3)],
)
def test_every_place_of_dropout_has_a_mask_of_its_own(name, sums, weights, monkeypatch):
    """Cells: embeddings, between layers, before the logits. Convolutions: embeddings,
    the input of each; their weights of attention at a rate of their own.
    """
    dropped = []

    def drop(self, x, rate, path):
        dropped.append((rate, path, x.shape))
        return x

    monkeypatch.setattr(Noise, "drop", drop)
    module = variant(name)
    for rates in (Noise(0.1, 0.2, None), Noise(0.1, None, None), Noise(), None):
        jax.eval_shape(
            lambda params, rates=rates: module.apply(params, SOURCE, TARGET, rates),
            {"params": parameter_shapes(module)},
        )
    of_weights = [path for rate, path, _ in dropped if rate == 0.2]
    of_sums = [path for rate, path, _ in dropped if rate == 0.1]
    assert len(of_weights) == weights and len(of_sums) == 2 * sums
    assert len({*of_weights, *of_sums}) == weights + sums
    assert {shape[0] for *_, shape in dropped} == {4}  # masks are by row


@pytest.mark.parametrize(
    ("width", "dilation", "causal"),
    [(1, 1, True), (3, 1, True), (3, 2, False), (4, 1, False), (5, 3, False)],
)
def test_convolution_of_any_width_is_that_of_numpy(width, dilation, causal):
    """Also where the kernel is wider than the row; of even width, more to the left."""
    x_BLD = np.random.default_rng(width).standard_normal((2, 7, 4)).astype(np.float32)
    layer = GatedConvolution(4, width, dilation, causal, "float32")
    params = layer.init(jax.random.key(0), x_BLD)["params"]
    first = 1 - width if causal else -(width // 2)
    part = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    found = np.asarray(layer.apply({"params": params}, x_BLD))
    for b in range(2):
        expected = NumpyModel(SMALL, {}).convolution(part, x_BLD[b], first, dilation)
        assert_close(found[b], expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_half_precision_is_of_layers_alone_also_in_a_search(name):
    """Logits and gradients are float32; the loop's state keeps its types."""
    module = small_module(**{**VARIANTS[name], "dtype": "bfloat16"})
    params = parameter_shapes(module)

    def factors(params):
        noise = Noise(0.1, words=jnp.zeros(2, jnp.uint32))
        x_BTD, _ = module.apply(
            {"params": params}, SOURCE, TARGET, noise, True, method="factors"
        )
        assert x_BTD.dtype == jnp.bfloat16
        return x_BTD.astype(jnp.float32).sum()

    gradient = jax.eval_shape(jax.grad(factors), params)
    assert {x.dtype for x in jax.tree.leaves(gradient)} == {np.dtype(np.float32)}
    for fitted in (True, False):
        search = make_search(module, BeamSettings(3, 0.6, 20), fitted=fitted)
        cap_B = np.full(len(SOURCE), 20, np.int32)
        found = jax.eval_shape(search, params, (SOURCE, cap_B))
        assert found.tokens.shape == (4, 1, 20)
