"""Gradients with distance: on matrices known by hand, and on models' own promises."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import EOS, PAD, random_parameters, small_module
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.dependence.gradients import (
    Sample,
    curves,
    joined,
    norms,
    own_rows,
    places,
)

RECURRENT = dict(
    architecture="recurrent", d_ff=1, num_heads=1, d_k=1, d_v=1, positions="none"
)
CONVOLUTIONAL = dict(architecture="convolutional", d_ff=1, num_heads=1, d_k=1, d_v=1)


def linear_recurrence(matrix_DD):
    """h_t = W h_{t-1} + x_t over the source, then over the target's inputs."""

    def hidden(source_BSD, target_BTD):
        # The output at t has read the target's pieces before t, as a decoder has.
        begin_B1D = jnp.zeros_like(target_BTD[:, :1])
        x_BLD = jnp.concatenate([source_BSD, begin_B1D, target_BTD[:, :-1]], axis=1)

        def step(h_BD, x_BD):
            h_BD = h_BD @ matrix_DD.T + x_BD
            return h_BD, h_BD

        first_BD = jnp.zeros_like(x_BLD[:, 0])
        _, h_LBD = jax.lax.scan(step, first_BD, jnp.swapaxes(x_BLD, 0, 1))
        return jnp.swapaxes(h_LBD, 0, 1)[:, source_BSD.shape[1] :]

    return hidden


def test_linear_recurrence_decays_as_powers_of_its_matrix():
    """|W^k| / sqrt(d) of Frobenius, k steps apart; a probe is off by 1 / sqrt(d P)."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((6, 6)) / 4
    x = [jnp.asarray(rng.standard_normal((2, n, 6)), jnp.float32) for n in (5, 7)]
    hidden = linear_recurrence(jnp.asarray(matrix, jnp.float32))
    places_QB = jnp.array([[3, 6], [6, 6]])
    found = jax.jit(functools.partial(norms, hidden, probes=4000))(
        *x, places_QB, jax.random.key(1)
    )
    size = [
        np.linalg.norm(np.linalg.matrix_power(matrix, k)) / 6**0.5 for k in range(12)
    ]
    for (q, b), t in np.ndenumerate(np.asarray(places_QB)):
        # Piece i of the target is the input at i + 1.
        target = [size[t - i - 1] if i < t else 0.0 for i in range(7)]
        source = [size[5 - 1 - j + t + 1] for j in range(5)]
        np.testing.assert_allclose(found.target[q, b], target, rtol=0.05)
        np.testing.assert_allclose(found.source[q, b], source, rtol=0.05)


def test_places_are_spread_and_end_at_the_last():
    assert places(np.array([9, 2, 1]), 4).tolist() == [
        [2, 1, 0],
        [4, 1, 0],
        [6, 1, 0],
        [8, 1, 0],
    ]


def ids(rows, length, seed):
    rng = np.random.default_rng(seed)
    found = rng.integers(5, 23, (rows, length)).astype(np.int32)
    found[:, -1] = EOS
    found[0, 5:], found[0, 4] = PAD, EOS
    return found


MODELS = {
    "transformer": {},
    "apart": {
        "tied_embeddings": "none",
        "scale_embeddings": False,
        "positions": "learned",
    },
    "recurrent": RECURRENT,
    "attentive": {**RECURRENT, "recurrent_attention": "additive"},
    "convolutional": CONVOLUTIONAL,
}


@pytest.mark.parametrize("name", MODELS)
def test_model_of_own_rows_is_the_model(name):
    """The same hidden states; and nothing of the future, or of padding."""
    module = small_module(**MODELS[name])
    params = random_parameters(module, seed=2)
    source_BS, target_BT = ids(2, 7, 0), ids(2, 9, 1)

    @jax.jit
    def run(params):
        memory = module.apply({"params": params}, source_BS, method="encode")
        given = {"params": params}, memory, source_BS, target_BT
        expected = module.apply(*given, method="decode")
        hidden, *embedded = own_rows(module, params, source_BS, target_BT)
        places_QB = jnp.array([[2, 3]])
        found = norms(hidden, *embedded, places_QB, jax.random.key(0), 2)
        return expected, hidden(*embedded), found

    expected, hidden, found = run(params)
    np.testing.assert_allclose(hidden, expected, rtol=1e-4, atol=1e-5)
    for b, t in enumerate((2, 3)):
        assert (found.target[0, b, :t] > 0).all()
        np.testing.assert_array_equal(found.target[0, b, t:], 0)
    assert (found.source[0, 0, :5] > 0).all() and (found.source[0, 1] > 0).all()
    np.testing.assert_array_equal(found.source[0, 0, 5:], 0)


def split(*pairs):
    sides = zip(*pairs, strict=True)
    return TokenizedSplit(*(Ragged.of([np.array(x) for x in side]) for side in sides))


def test_one_layer_sees_nothing_beyond_its_window():
    """A window of 4, causal: two positions before its own, so k of 0, 1 and 2."""
    module = small_module(attention_window=4)
    params = random_parameters(module, seed=2)
    sentence = [*range(5, 15), EOS]
    found = curves(module, params, split((sentence, sentence)), Sample(1, 3, 2), seed=0)
    assert [p.k for p in found.target] == list(range(10))
    assert all(p.norm > 0 for p in found.target[:3])
    assert [p.norm for p in found.target[3:]] == [0.0] * 7
    # Positions 4, 7 and 10 are asked: 4, 7 and 10 pieces before them.
    assert [p.count for p in found.target] == [3] * 4 + [2] * 3 + [1] * 3
    # Every source piece at each of them: 11 distances from t.
    assert [(p.k, p.count) for p in found.source] == [
        (k, sum(t <= k < t + 11 for t in (4, 7, 10))) for k in range(4, 21)
    ]
    assert all(p.norm > 0 for p in found.source)


def test_curve_is_the_mean_over_sentences_whatever_their_batches():
    """But for the probes, which are other ones: so of many."""
    module = small_module(num_layers=1, positions="none")
    params = random_parameters(module, seed=2)
    pairs = [([6, 7, EOS], [8, 9, EOS]), ([9, EOS], [5, EOS]), ([7, 8, EOS], [6, EOS])]
    one, all_ = (
        curves(module, params, split(*pairs), Sample(rows, 2, 600), seed=0)
        for rows in (1, 4)
    )
    assert [p.k for p in one.target] == [p.k for p in all_.target] == [0, 1]
    assert [p.count for p in one.target] == [p.count for p in all_.target] == [4, 1]
    for side in ("target", "source"):
        values = [[p.norm for p in getattr(each, side)] for each in (one, all_)]
        np.testing.assert_allclose(*values, rtol=0.05)


def test_joined_sentences_end_once():
    pairs = [([5, EOS], [6, 7, EOS]), ([8, 9, EOS], [EOS]), ([5, EOS], [5, EOS])]
    found = joined(split(*pairs), 2)
    assert [x.tolist() for x in (found.source[0], found.target[0])] == [
        [5, 8, 9, EOS],
        [6, 7, EOS],
    ]
    assert len(found) == 1 and len(joined(split(*pairs), 1)) == 3
