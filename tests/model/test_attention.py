"""Attention: who sees whom, how well keys fit queries, and the softmax."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_ablation.model.attention import (
    additive_scores,
    attention_weights,
    dot_scores,
    padding_mask,
    scaled_dot_scores,
    weighted_sum,
)
from transformer_ablation.model.neighbourhood import neighbourhood_mask, slot_mask

# Rows are queries, columns keys; 1 where a query sees a key.
NEIGHBOURHOODS = {
    (None, False): ["11111"] * 5,
    (None, True): ["10000", "11000", "11100", "11110", "11111"],
    (1, False): ["10000", "01000", "00100", "00010", "00001"],
    (1, True): ["10000", "01000", "00100", "00010", "00001"],
    (2, False): ["10000", "11000", "01100", "00110", "00011"],
    (2, True): ["10000", "11000", "01100", "00110", "00011"],
    (3, False): ["11000", "11100", "01110", "00111", "00011"],
    (3, True): ["10000", "11000", "01100", "00110", "00011"],
    (4, False): ["11000", "11100", "11110", "01111", "00111"],
    (4, True): ["10000", "11000", "11100", "01110", "00111"],
    (99, False): ["11111"] * 5,
    (99, True): ["10000", "11000", "11100", "11110", "11111"],
}
# B=2, L=3, M=5, H=4; the second sentence's last query sees nothing.
MASK_B1LM = np.array(
    [
        [[[1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]]],
        [[[0, 1, 0, 0, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]]],
    ],
    bool,
)
generator = np.random.default_rng(0)
SCORES_BHLM = generator.standard_normal((2, 4, 3, 5)).astype(np.float32) * 3
Q_BLHK = generator.standard_normal((2, 3, 4, 7)).astype(np.float32)
K_BHKM = generator.standard_normal((2, 4, 7, 5)).astype(np.float32)
V_BHMU = generator.standard_normal((2, 4, 5, 11)).astype(np.float32)
VECTOR_HK = generator.standard_normal((4, 7)).astype(np.float32)


@pytest.mark.parametrize("window, causal", NEIGHBOURHOODS)
def test_neighbourhood_is_the_one_drawn_by_hand(window, causal):
    mask_11LL = np.asarray(neighbourhood_mask(5, window, causal))
    assert mask_11LL.shape == (1, 1, 5, 5)
    rows = ["".join("01"[int(seen)] for seen in row) for row in mask_11LL[0, 0]]
    assert rows == NEIGHBOURHOODS[window, causal]


def test_padding_mask_shows_what_is_not_the_pad_id():
    tokens_BM = jnp.array([[5, 0, 4, 4], [4, 7, 4, 8]])
    mask_B11M = padding_mask(tokens_BM, pad_id=4)
    assert mask_B11M.shape == (2, 1, 1, 4)
    assert mask_B11M[:, 0, 0].tolist() == [[1, 1, 0, 0], [0, 1, 0, 1]]


@pytest.mark.parametrize("window, first", [(None, 0), (1, 3), (2, 2), (3, 2), (4, 1)])
def test_slot_mask_shows_each_candidate_its_own_past(window, first):
    """Slot t * 4 + c, for the places ``first`` to 3 of five at position 3.

    There may be four candidates, and there are two.
    """
    origin = np.random.default_rng(1).integers(0, 4, (3, 2, 5))
    mask_B1CM = np.asarray(slot_mask(jnp.asarray(origin), jnp.int32(3), window, 4))
    expected = np.zeros((3, 1, 2, 20), bool)
    for b, c in np.ndindex(3, 2):
        for t in range(first, 4):
            expected[b, 0, c, t * 4 + origin[b, c, t]] = True
    np.testing.assert_array_equal(mask_B1CM, expected)


def test_weights_are_the_softmax_over_the_visible_places():
    weights_BHLM = np.asarray(attention_weights(SCORES_BHLM, MASK_B1LM))
    for b, h, q in np.ndindex(2, 4, 3):
        seen_M = MASK_B1LM[b, 0, q]
        odds = np.exp(SCORES_BHLM[b, h, q, seen_M].astype(np.float64))
        expected = odds / odds.sum() if seen_M.any() else []
        np.testing.assert_allclose(weights_BHLM[b, h, q, seen_M], expected, rtol=2e-6)
        assert (weights_BHLM[b, h, q, ~seen_M] == 0).all()
    sums_BHL = np.broadcast_to(MASK_B1LM.any(axis=-1), (2, 4, 3))
    np.testing.assert_allclose(weights_BHLM.sum(axis=-1), sums_BHL, rtol=1e-6)


@pytest.mark.parametrize("shift", [-1e4, 1e4])
def test_weights_do_not_move_with_all_scores(shift):
    """A softmax overflows at 1e4 unless the highest score is taken off first."""
    whole = np.round(SCORES_BHLM)  # so that adding the shift rounds nothing
    moved = attention_weights(whole + np.float32(shift), MASK_B1LM)
    np.testing.assert_array_equal(moved, attention_weights(whole, MASK_B1LM))


def test_weights_of_bfloat16_scores_are_float32():
    scores = jnp.asarray(SCORES_BHLM, jnp.bfloat16)
    weights_BHLM = attention_weights(scores, MASK_B1LM)
    assert weights_BHLM.dtype == jnp.float32
    sums_HL = np.asarray(weights_BHLM)[0].sum(axis=-1)
    np.testing.assert_allclose(sums_HL, 1, rtol=1e-6)  # 4e-3 if summed in bfloat16


def test_gradient_of_the_weights_is_the_softmaxs_and_zero_where_hidden():
    """d sum(g w) / ds = w (g - sum(g w)), for an arbitrary g."""
    g_BHLM = np.random.default_rng(2).standard_normal(SCORES_BHLM.shape)
    found = jax.grad(
        lambda s: (attention_weights(s, MASK_B1LM) * g_BHLM.astype(np.float32)).sum()
    )(SCORES_BHLM)
    mask = np.broadcast_to(MASK_B1LM, SCORES_BHLM.shape)
    odds = np.where(mask, np.exp(SCORES_BHLM.astype(np.float64)), 0)
    w = odds / np.maximum(odds.sum(axis=-1, keepdims=True), 1e-300)
    expected = w * (g_BHLM - (g_BHLM * w).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert (np.asarray(found)[~mask] == 0).all()


def test_scores_are_products_over_the_root_of_d_k():
    expected = np.zeros((2, 4, 3, 5))
    for b, h, q, m in np.ndindex(2, 4, 3, 5):
        expected[b, h, q, m] = Q_BLHK[b, q, h].astype(float) @ K_BHKM[b, h, :, m]
    atol = 1e-6 * np.abs(expected).max()
    plain = dot_scores(Q_BLHK, K_BHKM)
    np.testing.assert_allclose(plain, expected, rtol=1e-6, atol=atol)
    scaled = scaled_dot_scores(Q_BLHK, K_BHKM)
    np.testing.assert_allclose(scaled, expected / 7**0.5, rtol=1e-6, atol=atol)


def test_additive_scores_pass_a_tanh_and_each_heads_vector():
    expected = np.zeros((2, 4, 3, 5))
    for b, h, q, m in np.ndindex(2, 4, 3, 5):
        hidden_K = np.tanh(Q_BLHK[b, q, h].astype(float) + K_BHKM[b, h, :, m])
        expected[b, h, q, m] = hidden_K @ VECTOR_HK[h]
    found = additive_scores(jnp.asarray(Q_BLHK), jnp.asarray(K_BHKM), VECTOR_HK)
    # A tanh in float32 errs by a few units in its last place.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=3e-6)


def test_weighted_sum_averages_each_heads_values():
    weights_BHLM = np.random.default_rng(3).random((2, 4, 3, 5)).astype(np.float32)
    expected = np.zeros((2, 3, 4, 11))
    for b, q, h, m in np.ndindex(2, 3, 4, 5):
        expected[b, q, h] += float(weights_BHLM[b, h, q, m]) * V_BHMU[b, h, m]
    found = weighted_sum(jnp.asarray(weights_BHLM), V_BHMU)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_attention_as_a_soft_lookup():
    """A worked example: three keys fit the query equally, one does not at all.

    Keys (1,2,0), (1,2,0), (0,0,2), (1,4,0) of values 18, 20, 22, 19; the query
    (1,0,0) has the products 1, 1, 0, 1. With the third hidden the weights are a third
    each, and the result is (18 + 20 + 19) / 3 = 19.
    """
    k_MK = np.array([[1, 2, 0], [1, 2, 0], [0, 0, 2], [1, 4, 0]], np.float32)
    v_BHMU = np.array([[[[18], [20], [22], [19]]]], np.float32)
    q_BLHK = np.array([[[[1, 0, 0]]]], np.float32)
    scores_BHLM = np.asarray(dot_scores(q_BLHK, k_MK.T[None, None]))
    np.testing.assert_array_equal(scores_BHLM[0, 0, 0], [1, 1, 0, 1])
    hard_BHLM = attention_weights(scores_BHLM, scores_BHLM > 0)
    np.testing.assert_allclose(hard_BHLM[0, 0, 0], [1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-6)
    found = np.asarray(weighted_sum(hard_BHLM, v_BHMU))
    np.testing.assert_allclose(found[0, 0, 0], [19], rtol=1e-6)
    # Softly, with nothing hidden, the third takes 1 part in 1 + 3e.
    soft_BHLM = attention_weights(scores_BHLM, np.ones_like(scores_BHLM, bool))
    assert soft_BHLM[0, 0, 0, 2] == pytest.approx(1 / (1 + 3 * np.e), rel=1e-6)
