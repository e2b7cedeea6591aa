"""Label-smoothed cross entropy against targets written out in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from transformer_ablation.train.loss import loss_sums

PAD, ROWS, LENGTH, VOCABULARY = 0, 3, 5, 11
CONVENTIONS = ("all_classes", "other_classes", "other_pieces")
SMOOTHING = 0.3  # far from 0, so that the conventions differ by 1%


def example(seed=0):
    """Logits [3, 5, 11] in float32 and targets with padding in two rows."""
    random = np.random.default_rng(seed)
    logits_BTV = random.normal(size=(ROWS, LENGTH, VOCABULARY)) * 3
    logits_BTV[..., PAD] -= 5  # as a model learns: padding is never the target
    target_BT = random.integers(1, VOCABULARY, (ROWS, LENGTH)).astype(np.int32)
    target_BT[0, 4:] = PAD
    target_BT[2, 1:] = PAD
    return logits_BTV.astype(np.float32), target_BT


def log_softmax(logits_BTV):
    logits_BTV = logits_BTV.astype(np.float64)
    shifted_BTV = logits_BTV - logits_BTV.max(-1, keepdims=True)
    return shifted_BTV - np.log(np.exp(shifted_BTV).sum(-1, keepdims=True))


def written_out(target_BT, smoothing, convention):
    """The smoothed target of every class of every position."""
    onehot_BTV = np.eye(VOCABULARY)[target_BT]
    if convention == "all_classes":
        return (1 - smoothing) * onehot_BTV + smoothing / VOCABULARY
    others_BTV = (1 - onehot_BTV) * smoothing / (VOCABULARY - 1)
    if convention == "other_pieces":
        others_BTV = (1 - onehot_BTV) * smoothing / (VOCABULARY - 2)
        others_BTV[..., PAD] = 0
        others_BTV[target_BT == PAD] *= np.nan  # not a target: nothing is said of it
    return (1 - smoothing) * onehot_BTV + others_BTV


def expected_loss(logits_BTV, target_BT, smoothing, convention):
    wanted_BTV = written_out(target_BT, smoothing, convention)
    real_BTV = wanted_BTV[target_BT != PAD]
    np.testing.assert_allclose(real_BTV.sum(-1), 1, rtol=1e-12)
    loss_BT = -(wanted_BTV * log_softmax(logits_BTV)).sum(-1)
    return loss_BT[target_BT != PAD].sum()


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, SMOOTHING])
def test_loss_is_cross_entropy_with_the_smoothed_target(smoothing, convention):
    logits_BTV, target_BT = example()
    found = loss_sums(jnp.asarray(logits_BTV), target_BT, PAD, smoothing, convention)
    expected = expected_loss(logits_BTV, target_BT, smoothing, convention)
    np.testing.assert_allclose(found.loss, expected, rtol=2e-6)
    assert found.tokens == 4 + 5 + 1


def test_conventions_give_different_losses():
    # Else the test above could not tell them apart.
    given = example()
    losses = sorted(expected_loss(*given, SMOOTHING, c) for c in CONVENTIONS)
    assert min(np.diff(losses)) > 0.005 * losses[0]


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, SMOOTHING])
def test_subtracting_the_entropy_leaves_the_divergence(smoothing, convention):
    """KL(target || model) by its definition, with 0 log 0 = 0; gradients are equal."""
    logits_BTV, target_BT = example()
    real_BT = target_BT != PAD
    wanted = written_out(target_BT, smoothing, convention)[real_BT]
    logs = np.log(wanted, where=wanted > 0, out=np.zeros_like(wanted))
    expected = (wanted * (logs - log_softmax(logits_BTV)[real_BT])).sum()

    def loss(logits_BTV, smoothing, entropy):
        return loss_sums(
            logits_BTV, target_BT, PAD, smoothing, convention, entropy
        ).loss

    given = jnp.asarray(logits_BTV), jnp.float32(smoothing)  # the rate is traced
    run = jax.jit(jax.value_and_grad(loss), static_argnums=2)
    found, gradient = run(*given, "subtracted")
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    np.testing.assert_array_equal(gradient, run(*given, "kept")[1])
    with pytest.raises(ValueError, match="'dropped'"):
        loss(*given, "dropped")


def test_all_classes_is_the_loss_of_optax():
    logits_BTV, target_BT = example(seed=1)
    onehot_BTV = jax.nn.one_hot(target_BT, VOCABULARY)
    smooth_BTV = optax.smooth_labels(onehot_BTV, SMOOTHING)
    loss_BT = optax.softmax_cross_entropy(jnp.asarray(logits_BTV), smooth_BTV)
    found = loss_sums(jnp.asarray(logits_BTV), target_BT, PAD, SMOOTHING, "all_classes")
    expected = np.asarray(loss_BT, np.float64)[target_BT != PAD].sum()
    np.testing.assert_allclose(found.loss, expected, rtol=2e-6)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_nll_is_that_of_the_reference_whatever_the_smoothing(convention):
    logits_BTV, target_BT = example()
    gold_BT = np.take_along_axis(log_softmax(logits_BTV), target_BT[..., None], -1)
    expected = -gold_BT[..., 0][target_BT != PAD].sum()
    for smoothing in (0.0, SMOOTHING):
        found = loss_sums(
            jnp.asarray(logits_BTV), target_BT, PAD, smoothing, convention
        )
        np.testing.assert_allclose(found.nll, expected, rtol=2e-6)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_gradient_is_probability_minus_target_and_zero_at_padding(convention):
    logits_BTV, target_BT = example()
    gradient_BTV = jax.grad(
        lambda x: loss_sums(x, target_BT, PAD, SMOOTHING, convention).loss
    )(jnp.asarray(logits_BTV))
    wanted_BTV = written_out(target_BT, SMOOTHING, convention)
    expected_BTV = np.exp(log_softmax(logits_BTV)) - wanted_BTV
    real_BT = target_BT != PAD
    # Differences of numbers below 1, in float32: an absolute error of a few 2**-24.
    np.testing.assert_allclose(
        gradient_BTV[real_BT], expected_BTV[real_BT], rtol=1e-6, atol=3e-7
    )
    assert not gradient_BTV[~real_BT].any()


def test_sums_do_not_see_the_logits_at_padding():
    logits_BTV, target_BT = example()
    other_BTV = logits_BTV.copy()
    other_BTV[target_BT == PAD] = 77.0
    a, b = (
        loss_sums(jnp.asarray(x), target_BT, PAD, SMOOTHING, "all_classes")
        for x in (logits_BTV, other_BTV)
    )
    assert [float(x) for x in a] == [float(x) for x in b]


def test_batch_of_padding_alone_sums_to_zero():
    logits_BTV, target_BT = example()
    found = loss_sums(
        jnp.asarray(logits_BTV), np.zeros_like(target_BT), PAD, 0.1, "other_classes"
    )
    assert [float(x) for x in found] == [0.0, 0.0, 0.0]


def test_sums_of_rows_add_up():
    """Sums, not means: what makes shards and accumulation steps one update."""
    logits_BTV, target_BT = example()
    whole = loss_sums(jnp.asarray(logits_BTV), target_BT, PAD, 0.1, "all_classes")
    parts = [
        loss_sums(jnp.asarray(logits), target, PAD, 0.1, "all_classes")
        for logits, target in zip(
            np.split(logits_BTV, ROWS), np.split(target_BT, ROWS), strict=True
        )
    ]
    for name in ("loss", "nll", "tokens"):
        total = sum(float(getattr(part, name)) for part in parts)
        np.testing.assert_allclose(getattr(whole, name), total, rtol=2e-6)


def test_low_precision_logits_are_summed_in_float32():
    logits_BTV, target_BT = example()
    low_BTV = jnp.asarray(logits_BTV, jnp.bfloat16)
    found = loss_sums(low_BTV, target_BT, PAD, SMOOTHING, "all_classes")
    rounded_BTV = np.asarray(low_BTV, np.float32)
    expected = expected_loss(rounded_BTV, target_BT, SMOOTHING, "all_classes")
    # bfloat16 sums would be off by 1e-3.
    np.testing.assert_allclose(found.loss, expected, rtol=2e-6)
    assert {x.dtype for x in found} == {jnp.dtype(jnp.float32)}


def test_unknown_convention_is_refused():
    logits_BTV, target_BT = example()
    with pytest.raises(ValueError, match="unknown label smoothing convention 'half'"):
        loss_sums(jnp.asarray(logits_BTV), target_BT, PAD, 0.1, "half")
