"""Loss without all logits at once, against the loss of all logits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_ablation.train.loss import loss_sums
from transformer_ablation.train.projection import projected_sums

PAD, ROWS, LENGTH, SIZE, VOCABULARY = 0, 3, 5, 4, 11
POSITIONS = ROWS * LENGTH
CONVENTIONS = ("all_classes", "other_classes", "other_pieces")


def example(dtype=np.float32):
    """Hidden states [3, 5, 4], a matrix [11, 4] and targets, five of them padding."""
    random = np.random.default_rng(1)
    x_BTD = random.normal(size=(ROWS, LENGTH, SIZE)).astype(np.float32)
    matrix_VD = random.normal(size=(VOCABULARY, SIZE)).astype(np.float32)
    target_BT = random.integers(1, VOCABULARY, (ROWS, LENGTH)).astype(np.int32)
    target_BT[0, 4:] = target_BT[2, 1:] = PAD
    return jnp.asarray(x_BTD, dtype), jnp.asarray(matrix_VD), target_BT


def sums(smoothing=0.3, convention="all_classes", entropy="kept"):
    def of(logits_NV, target_N):
        return loss_sums(logits_NV, target_N, PAD, smoothing, convention, entropy)

    return of


def whole(of, x_BTD, matrix_VD, target_BT):
    """The same with all logits there, and JAX's own gradient."""
    logits_BTV = jnp.einsum("BTD,VD->BTV", x_BTD, matrix_VD)
    return of(logits_BTV, target_BT)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("rows", [1, 2, 4, 7, POSITIONS, 99])
def test_parts_have_the_sums_and_the_gradient_of_the_whole(rows, convention):
    """Parts of 4 or 7 do not divide the 15 positions; 99 is more than there are."""
    x_BTD, matrix_VD, target_BT = example()
    of = sums(convention=convention)

    def in_parts(x_BTD, matrix_VD):
        found = projected_sums(
            of, x_BTD, matrix_VD, target_BT, PAD, logits_at_once=rows * VOCABULARY
        )
        # A cotangent other than 1: the loss may be scaled by whoever uses it.
        return 3.0 * found.loss, found

    def at_once(x_BTD, matrix_VD):
        found = whole(of, x_BTD, matrix_VD, target_BT)
        return 3.0 * found.loss, found

    found = jax.grad(in_parts, (0, 1), has_aux=True)(x_BTD, matrix_VD)
    expected = jax.grad(at_once, (0, 1), has_aux=True)(x_BTD, matrix_VD)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    assert found[1].tokens == POSITIONS - 5
    (x_gradient_BTD, _), _ = found
    assert not np.asarray(x_gradient_BTD)[target_BT == PAD].any()


def test_gradient_is_that_of_differences_of_the_loss():
    """Central differences in float64 of the loss written out in numpy."""
    x_BTD, matrix_VD, target_BT = example()
    smoothing = 0.3

    def loss(matrix_VD):
        logits_NV = np.asarray(x_BTD, np.float64).reshape(-1, SIZE) @ matrix_VD.T
        target_N = target_BT.reshape(-1)
        log_p_NV = logits_NV - np.log(np.exp(logits_NV).sum(-1, keepdims=True))
        wanted_NV = (1 - smoothing) * np.eye(VOCABULARY)[target_N]
        wanted_NV += smoothing / VOCABULARY
        return -(wanted_NV * log_p_NV)[target_N != PAD].sum()

    gradient_VD = jax.grad(
        lambda m: projected_sums(sums(), x_BTD, m, target_BT, PAD, 4 * VOCABULARY).loss
    )(matrix_VD)
    matrix_VD, step = np.asarray(matrix_VD, np.float64), 1e-5
    for place in ((0, 0), (3, 2), (10, 3), (int(target_BT[0, 0]), 1)):
        moved = np.zeros_like(matrix_VD)
        moved[place] = step
        expected = (loss(matrix_VD + moved) - loss(matrix_VD - moved)) / (2 * step)
        np.testing.assert_allclose(gradient_VD[place], expected, rtol=1e-4)


def test_only_the_loss_has_a_gradient():
    x_BTD, matrix_VD, target_BT = example()
    for name in ("nll", "tokens"):
        gradient = jax.grad(
            lambda x, name=name: getattr(
                projected_sums(sums(), x, matrix_VD, target_BT, PAD), name
            )
        )(x_BTD)
        assert not np.asarray(gradient).any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_sums_in_float32(dtype):
    """The matrix keeps its own type, and so does its gradient."""
    x_BTD, matrix_VD, target_BT = example(dtype)
    of = sums()

    def in_parts(x_BTD, matrix_VD):
        found = projected_sums(of, x_BTD, matrix_VD, target_BT, PAD, 4 * VOCABULARY)
        return found.loss

    exact = x_BTD.astype(jnp.float32), matrix_VD.astype(dtype).astype(jnp.float32)
    expected = whole(of, *exact, target_BT).loss
    np.testing.assert_allclose(in_parts(x_BTD, matrix_VD), expected, rtol=1e-5)
    gradients = jax.grad(in_parts, (0, 1))(x_BTD, matrix_VD)
    assert [g.dtype for g in gradients] == [jnp.dtype(dtype), jnp.float32]
    wanted = jax.grad(lambda x, m: whole(of, x, m, target_BT).loss, (0, 1))(*exact)
    for found, right in zip(gradients, wanted, strict=True):
        difference = np.abs(np.asarray(found, np.float32) - np.asarray(right)).max()
        # Two roundings to a type of 8 or 11 bits.
        assert difference < 2 * 2.0**-8 * np.abs(np.asarray(right)).max()
