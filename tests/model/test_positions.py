"""Positions: the paper's sinusoids, learned tables, and none."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import SMALL, small_module
from transformer_ablation.model.positions import Positions, sinusoidal_table

X_BLD = np.random.default_rng(0).standard_normal((2, 5, 12)).astype(np.float32)
TABLE_LD = np.random.default_rng(1).standard_normal((15, 12)).astype(np.float32)


def positions(kind, **fields):
    """The module on its own, with its variables."""
    module = Positions(dataclasses.replace(SMALL, positions=kind, **fields))
    variables = {"params": {"table": TABLE_LD}} if kind == "learned" else {}
    return module, variables


def test_sinusoids_are_the_papers_by_hand():
    """d_model = 4: angles pos and pos / 100, sine and cosine side by side."""
    expected = [
        [0, 1, 0, 1],
        [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004],
        [0.9092974268, -0.4161468365, 0.0199986667, 0.9998000067],
        [0.1411200081, -0.9899924966, 0.0299955002, 0.9995500337],
    ]
    # float32 keeps 6e-8 of 1.
    np.testing.assert_allclose(sinusoidal_table(4, 4), expected, rtol=0, atol=7e-8)


def test_halves_are_the_first_codes_by_hand():
    """d_model = 6: sines, then cosines, of pos, pos / 100 and pos / 10,000."""
    angles = [2.0, 0.02, 0.0002]
    expected = [*np.sin(angles), *np.cos(angles)]
    row_D = sinusoidal_table(3, 6, "halves")[2]
    np.testing.assert_allclose(row_D, expected, rtol=0, atol=7e-8)


@pytest.mark.parametrize("d_model, i", [(512, 0), (512, 100), (512, 255), (6, 2)])
def test_wavelengths_are_a_geometric_progression_of_10000(d_model, i):
    """Also far out, where an angle computed in float32 is off by 3e-5."""
    table_LD = sinusoidal_table(3001, d_model)
    angle = 3000 / 10_000 ** (2 * i / d_model)
    pair = [np.sin(angle), np.cos(angle)]
    np.testing.assert_allclose(table_LD[3000, 2 * i : 2 * i + 2], pair, atol=7e-8)


def test_a_shift_is_one_rotation_of_every_pair():
    """Section 3.5: PE[pos + k] is a linear function of PE[pos]."""
    table_LD = sinusoidal_table(40, 12).astype(np.float64)
    pairs_LE = table_LD[:, 0::2] + 1j * table_LD[:, 1::2]  # i exp(-i angle)
    rotation_LE = pairs_LE[7:] / pairs_LE[:-7]
    same_LE = np.broadcast_to(rotation_LE[:1], rotation_LE.shape)
    np.testing.assert_allclose(rotation_LE, same_LE, atol=1e-6)
    assert np.abs(np.diff(rotation_LE[0])).min() > 1e-4  # a different one each


def test_sinusoids_are_added_to_every_row():
    module, variables = positions("sinusoidal")
    added = np.asarray(module.apply(variables, X_BLD)) - X_BLD
    for b in range(2):
        np.testing.assert_allclose(added[b, 0], [0, 1] * 6, atol=2e-7)
        np.testing.assert_allclose(added[b, 3, 0], np.sin(3), atol=3e-7)
        np.testing.assert_allclose(added[b, 3, 1], np.cos(3), atol=3e-7)


def test_learned_rows_are_added_in_order():
    module, variables = positions("learned")
    found = module.apply(variables, X_BLD)
    np.testing.assert_array_equal(found, X_BLD + TABLE_LD[None, :5])


def test_none_adds_nothing():
    module, variables = positions("none")
    np.testing.assert_array_equal(module.apply(variables, X_BLD), X_BLD)
    step = module.apply(variables, X_BLD[:, :1], 3, 5, method=module.at)
    np.testing.assert_array_equal(step, X_BLD[:, :1])


@pytest.mark.parametrize("place", [0, 4])
def test_single_position_adds_the_row_of_that_place(place):
    """As cached decoding does, for any number of candidates."""
    module, variables = positions("learned")
    x_B1D = X_BLD[:, :3]
    found = module.apply(variables, x_B1D, jnp.int32(place), 5, method=module.at)
    np.testing.assert_array_equal(found, x_B1D + TABLE_LD[None, place : place + 1])
    module, variables = positions("sinusoidal")
    found = module.apply(variables, x_B1D, jnp.int32(place), 5, method=module.at)
    expected = x_B1D[:, :, 1] + np.float32(np.cos(place))
    np.testing.assert_allclose(found[:, :, 1], expected, rtol=1e-6, atol=1e-7)


def test_table_that_is_too_short_is_refused_with_both_numbers():
    """JAX would repeat the last row in silence."""
    module, variables = positions("learned", max_length=4)
    with pytest.raises(ValueError) as caught:
        module.apply({"params": {"table": TABLE_LD[:4]}}, X_BLD)
    assert str(caught.value) == (
        "a sequence of 5 positions does not fit into model.max_length = 4 learned "
        "positions"
    )
    found = module.apply({"params": {"table": TABLE_LD[:4]}}, X_BLD[:, :4])
    np.testing.assert_array_equal(found, X_BLD[:, :4] + TABLE_LD[None, :4])


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_bfloat16_input_stays_bfloat16(kind):
    module, variables = positions(kind)
    found = module.apply(variables, jnp.asarray(X_BLD, jnp.bfloat16))
    assert found.dtype == jnp.bfloat16


@pytest.mark.parametrize("length", [(16, 8), (6, 16)])
def test_sentence_beyond_the_learned_table_is_refused(length):
    """Of either side, when the model is built or called."""
    module = small_module(positions="learned")
    source_BS = jnp.zeros((2, length[0]), jnp.int32)
    target_BT = jnp.zeros((2, length[1]), jnp.int32)
    with pytest.raises(ValueError, match="a sequence of 16 positions does not fit"):
        jax.eval_shape(module.init, jax.random.key(0), source_BS, target_BT)
    # The longest that fits does fit.
    jax.eval_shape(module.init, jax.random.key(0), source_BS[:, :15], target_BT[:, :15])
