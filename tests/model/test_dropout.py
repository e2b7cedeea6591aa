"""Dropout: its masks as random numbers, and the places of the model it falls on."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    Kept,
    NumpyTransformer,
    random_parameters,
    random_sentences,
    small_module,
)
from transformer_ablation.model.dropout import Noise, dropout, random_bits
from transformer_ablation.model.layers import DecoderContext


def words_of(key):
    """The two words that the training step makes of a key."""
    return jax.random.bits(key, (2,), jnp.uint32)


KEY = words_of(jax.random.key(11))
SHAPE = (32, 48, 64)  # 98,304 elements
X = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32) + 5
# Chi-square of one degree of freedom beyond 25 is an event of five sigma: 6e-7, so
# chance fails none of some hundred checks. Keys are fixed; a failure is a fault.
FIVE_SIGMA = 25


def kept(key, rate=0.5, shape=SHAPE, first_row=0):
    """The mask as booleans."""
    return np.asarray(dropout(jnp.ones(shape), rate, key, first_row)) != 0


def dependence(a, b):
    """Chi-square of the two-by-two table of two masks."""
    table = np.array([[(u & v).sum() for v in (b, ~b)] for u in (a, ~a)])
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    return ((table - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_rate_zero_returns_the_input_bit_for_bit(dtype):
    x = jnp.asarray(X, dtype)
    found = jax.jit(dropout)(x, 0.0, KEY)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_half_precision_rounds_numbers_and_not_the_scale(rate):
    """Errors of 2**-9 at most cancel; 1 / 0.9 as a bfloat16 is 0.16% too small."""
    x = jnp.asarray(X, jnp.bfloat16)
    found = np.asarray(dropout(x, rate, KEY), np.float64)
    mask = found != 0
    ratio = found[mask].sum() / np.asarray(x, np.float64)[mask].sum()
    assert ratio * (1 - rate) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_share_and_scale_of_what_is_kept(rate):
    found = np.asarray(dropout(jnp.asarray(X), rate, KEY))
    mask = found != 0
    np.testing.assert_allclose(found[mask], X[mask] / (1 - rate), rtol=3e-7)
    five_sigma = 5 * (rate * (1 - rate) / X.size) ** 0.5
    assert abs(mask.mean() - (1 - rate)) < five_sigma


def test_gradient_passes_where_the_value_did():
    g = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32) + 5

    @jax.jit
    def both(x, rate):
        y, pull = jax.vjp(lambda x: dropout(x, rate, KEY, 3), x)
        return y, pull(jnp.asarray(g))[0]

    y, gradient = (np.asarray(a) for a in both(X, np.float32(0.3)))
    np.testing.assert_array_equal(y != 0, kept(KEY, 0.3, first_row=3))
    np.testing.assert_array_equal(gradient != 0, y != 0)
    np.testing.assert_allclose(gradient[y != 0], g[y != 0] / 0.7, rtol=3e-7)


@pytest.mark.parametrize("parts", [(32,), (1, 31), (8, 8, 8, 8), (5, 20, 7)])
def test_mask_of_a_row_does_not_depend_on_how_rows_are_split(parts):
    first, found = 0, []
    for rows in parts:
        found.append(dropout(X[first : first + rows], 0.3, KEY, jnp.int32(first)))
        first += rows
    np.testing.assert_array_equal(np.concatenate(found), dropout(X, 0.3, KEY))


def test_higher_rate_drops_what_a_lower_one_does_and_more():
    masks = [kept(KEY, rate) for rate in (0.0, 0.1, 0.3, 0.30001, 0.9)]
    for lower, higher in zip(masks, masks[1:], strict=False):
        assert (higher <= lower).all()
    assert masks[1].sum() > masks[2].sum() > masks[4].sum() > 0


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("distance", [1, 2, 3, 16])
def test_elements_side_by_side_are_independent(rate, axis, distance):
    mask = np.moveaxis(kept(KEY, rate), axis, 0)
    assert dependence(mask[distance:], mask[:-distance]) < FIVE_SIGMA


@pytest.mark.parametrize("other", range(1, 9))
def test_keys_side_by_side_are_independent(other):
    """Also against the neighbours' masks moved by a few places."""
    folded = words_of(jax.random.fold_in(jax.random.key(11), other))
    mask = kept(words_of(jax.random.key(0))).ravel()
    for key in (words_of(jax.random.key(other)), folded):
        beside = kept(key).ravel()
        for moved in (0, 1, other):
            shifted = np.roll(beside, moved)
            assert dependence(mask, shifted) < FIVE_SIGMA
    assert dependence(kept(KEY), kept(folded)) < FIVE_SIGMA


def test_keys_are_not_windows_of_one_sequence():
    """The counter starts at a key's first word; the second has to count as well."""
    keys = words_of(jax.random.key(0)), words_of(jax.random.key(1))
    starts = [key[0] for key in keys]
    words = random_bits(keys[0], 0, (5000, 1))
    aligned = random_bits(keys[1], starts[0] - starts[1], (5000, 1))
    tops = [np.asarray(bits) >> 31 == 1 for bits in (words, aligned)]
    assert dependence(*tops) < FIVE_SIGMA


def test_dependence_tells_a_copy_from_chance():
    """The measure itself: a copy of every 33rd element is found."""
    mask, other = kept(KEY), kept(words_of(jax.random.key(1)))
    copied = other.copy()
    copied.reshape(-1)[::33] = mask.reshape(-1)[::33]
    assert dependence(mask, mask) == pytest.approx(mask.size)
    assert dependence(mask, copied) > FIVE_SIGMA > dependence(mask, other)


def test_bits_are_balanced_and_pairwise_independent():
    words = np.asarray(random_bits(KEY, 0, SHAPE)).ravel()
    bits = (words[:, None] >> np.arange(32, dtype=np.uint32)) & 1 == 1
    ones = bits.sum(axis=0)
    # A count of n fair bits has variance n / 4.
    assert ((ones - words.size / 2) ** 2 / (words.size / 4)).max() < FIVE_SIGMA
    top = bits[:, 31]
    for bit in range(31):
        assert dependence(top, bits[:, bit]) < FIVE_SIGMA
    buckets = np.bincount(words >> 24, minlength=256)
    chi_square = ((buckets - words.size / 256) ** 2 / (words.size / 256)).sum()
    # 255 degrees of freedom: mean 255, standard deviation 22.6.
    assert 255 - 5 * 22.6 < chi_square < 255 + 5 * 22.6


SOURCE = random_sentences((4, 6), (6, 4, 2, 5), seed=1)
TARGET = random_sentences((4, 8), (8, 5, 3, 7), seed=2)
ALMOST_ONE = np.float32(1 - 2**-24)  # drops everything but 6e-8 of it


@pytest.fixture(scope="module", params=["post", "pre"])
def noisy(request):
    """A model with every place of dropout in it and all rates as arguments."""
    module = small_module(num_layers=2, norm=request.param)
    params = random_parameters(module)

    @jax.jit
    def run(source_BS, target_BT, sums, weights, hidden, first_row=0):
        noise = Noise(sums, weights, hidden, first_row, KEY)
        return module.apply({"params": params}, source_BS, target_BT, noise)

    return types.SimpleNamespace(module=module, params=params, run=run)


@pytest.mark.parametrize(
    "place, gates", [("sums", (0, 1, 1)), ("weights", (1, 0, 1)), ("hidden", (1, 1, 0))]
)
def test_each_rate_acts_on_its_place_and_no_other(noisy, place, gates):
    """At a rate of almost 1 the model is numpy's with zeros in that place."""
    rates = [np.float32(0) if gate else ALMOST_ONE for gate in gates]
    logits_BTV = np.asarray(noisy.run(SOURCE, TARGET, *rates))
    model = NumpyTransformer(noisy.module.config, noisy.params, Kept(**{place: 0}))
    expected_TV = model.logits(SOURCE[0], TARGET[0])
    highest = np.abs(expected_TV).max()
    np.testing.assert_allclose(logits_BTV[0], expected_TV, atol=1e-5 * highest)


def test_rates_of_zero_leave_the_model_as_it_is(noisy):
    logits_BTV = noisy.run(SOURCE, TARGET, *np.zeros(3, np.float32))
    model = NumpyTransformer(noisy.module.config, noisy.params)
    expected_TV = model.logits(SOURCE[0], TARGET[0])
    highest = np.abs(expected_TV).max()
    np.testing.assert_allclose(logits_BTV[0], expected_TV, atol=1e-5 * highest)


def test_noise_of_a_row_goes_with_its_number_in_the_whole_batch(noisy):
    """Rows 2 and 3 as the first rows of another device's part get the same noise."""
    rates = np.array([0.1, 0.2, 0.3], np.float32)
    for rate_of in np.eye(3, dtype=np.float32) * rates:
        whole_BTV = np.asarray(noisy.run(SOURCE, TARGET, *rate_of))
        order = [2, 3, 0, 1]
        part_BTV = np.asarray(noisy.run(SOURCE[order], TARGET[order], *rate_of, 2))
        atol = 1e-5 * np.abs(whole_BTV).max()  # a product's rows may be summed apart
        np.testing.assert_allclose(part_BTV[:2], whole_BTV[2:], atol=atol)
        for b in range(2):
            assert np.abs(part_BTV[2 + b] - whole_BTV[b]).max() > 1000 * atol


def dropped_shapes(module, params, noise):
    """Shapes on which dropout is called, once for each layer of the two scans."""
    variables = {"params": params}
    traced = jax.make_jaxpr(lambda: module.apply(variables, SOURCE, TARGET, noise))()
    return sorted(_masked_shapes(traced.jaxpr))


def _masked_shapes(jaxpr, times=1):
    """Results of custom gradients in which bits are shifted: dropout alone draws any.

    nn.scan also traces its body for what depends on no input, and leaves calls
    without any input behind.
    """
    for equation in jaxpr.eqns:
        inner = list(_inner(equation))
        if equation.primitive.name.startswith("custom_vjp_call") and equation.invars:
            shifts = any("shift_right" in str(each) for each in inner)
            yield from [equation.outvars[0].aval.shape] * (times * shifts)
        for each in inner:
            yield from _masked_shapes(each, times * equation.params.get("length", 1))


def _inner(equation):
    """The programs that an equation holds."""
    values = equation.params.values()
    return (value.jaxpr for value in values if hasattr(value, "jaxpr"))


def test_dropout_falls_on_the_places_asked_for_and_no_other():
    """B=4, S=6, T=8, H=2, three layers of two and three sub-layers each."""
    module = small_module(num_layers=3)
    shapes = functools.partial(dropped_shapes, module, random_parameters(module))
    sums = [(4, 6, 12)] * (1 + 3 * 2) + [(4, 8, 12)] * (1 + 3 * 3)
    weights = [(4, 2, 6, 6), (4, 2, 8, 8), (4, 2, 8, 6)] * 3
    hidden = [(4, 6, 20), (4, 8, 20)] * 3
    assert shapes(None) == shapes(Noise(words=KEY)) == []
    assert shapes(Noise(dropout_rate=0.1, words=KEY)) == sorted(sums)
    assert shapes(Noise(attention_rate=0.1, words=KEY)) == sorted(weights)
    assert shapes(Noise(activation_rate=0.1, words=KEY)) == sorted(hidden)
    everywhere = shapes(Noise(0.1, 0.1, 0.1, words=KEY))
    assert everywhere == sorted(sums + weights + hidden)


def test_no_two_sub_layers_or_layers_share_a_mask():
    """Six sub-layers that put out 1, 2, 4 ... 32 everywhere, their masks at rate 0.5:
    half the pre-norm sum is a number whose binary digits are the masks.
    """
    module = small_module(num_layers=2, norm="pre")
    params = jax.tree.map(np.zeros_like, random_parameters(module))
    decoder = params["decoder"]
    for i, kind in enumerate(("self_attention", "cross_attention", "feed_forward")):
        puts_out = np.array([1, 8], np.float32) * 2**i  # by layer
        decoder[f"{kind}_residual"]["norm"]["bias"] += 1  # gain 0: always one
        if kind == "feed_forward":
            decoder[kind]["outer"]["bias"] += puts_out[:, None]
        else:
            decoder[kind]["value"]["kernel"] += np.float32(1 / 12)
            decoder[kind]["output"]["kernel"] += puts_out[:, None, None] / 10
    zeros_BTD = jnp.zeros((32, 8, 12))
    seen = jnp.ones((32, 1, 8, 8), bool)
    context = DecoderContext(
        zeros_BTD + 1, seen, seen, Noise(dropout_rate=0.5, words=KEY)
    )
    sum_BTD, _ = module.apply(
        {"params": params},
        method=lambda model: model.decoder(zeros_BTD, jnp.arange(2), context),
    )
    number_BTD = np.asarray(sum_BTD) / 2
    whole_BTD = number_BTD.round().astype(int)
    np.testing.assert_allclose(number_BTD, whole_BTD, atol=1e-4)
    masks = [(whole_BTD >> digit) & 1 == 1 for digit in range(6)]
    for i in range(6):
        assert 0.4 < masks[i].mean() < 0.6
        for j in range(i):
            assert dependence(masks[i], masks[j]) < FIVE_SIGMA
