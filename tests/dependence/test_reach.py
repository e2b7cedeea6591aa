"""Paths between the ends of a sequence, against counting on paper."""

import functools

import jax
import numpy as np
import pytest

from transformer_ablation.config import ConfigError, of_architecture, replace
from transformer_ablation.dependence.reach import depends, layers_to_cross
from transformer_ablation.model.layer_types import (
    convolution,
    drawn,
    of_width,
    whole_layer,
)


@functools.cache
def model(base, architecture="transformer", **fields):
    fields = {f"model.{name}": value for name, value in fields.items()}
    if architecture != "transformer":
        fields = {**of_architecture(architecture), **fields}
    return of_width(replace(base, fields).model, 16)


def test_layers_depend_on_what_they_are_to(base_config):
    """All on all; the past; 2 to the left and 1 to the right; three and 2 apart."""
    n = 11
    ahead = np.arange(n)[None] - np.arange(n)[:, None]
    cases = [
        (whole_layer(model(base_config)), ahead < n),
        (whole_layer(model(base_config, "recurrent")), ahead <= 0),
        (
            whole_layer(model(base_config, attention_window=4)),
            (ahead >= -2) & (ahead <= 1),
        ),
        (
            convolution(model(base_config, "convolutional"), 2),
            np.isin(ahead, [-2, 0, 2]),
        ),
    ]
    for layer, expected in cases:
        np.testing.assert_array_equal(depends(layer, n), expected)


@pytest.mark.parametrize("implementation", ["own", "banded"])
@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # An even window sees r / 2 to the left and r / 2 - 1 to the right, an odd one
        # (r - 1) / 2 to either side: 63 places in ceil(63 / 7) layers, and so on.
        (16, 9),
        (15, 9),
        (8, 21),
        (4, 63),
        (5, 32),
        # Of 2, nothing ever comes from the right: 63 steps from the left.
        (2, 63),
    ],
)
def test_restricted_attention_crosses_in_steps_of_its_shorter_side(
    base_config, implementation, window, expected
):
    restricted = model(
        base_config, attention_window=window, attention_implementation=implementation
    )
    layer = whole_layer(restricted)
    assert layers_to_cross([layer], 64) == expected
    # And no two positions of all are farther apart: powers of the matrix of one layer.
    reach_NN, count = depends(layer, 64), 1
    reached_NN = reach_NN
    wanted_NN = np.ones((64, 64), bool) if window > 2 else np.tri(64, dtype=bool)
    while not reached_NN[wanted_NN].all():
        reached_NN, count = reached_NN @ reach_NN, count + 1
    assert count == expected


def test_layer_that_adds_nothing_ends_no_cycle(base_config):
    """Three places, then three 100 apart, which 9 positions do not have: 2 a cycle."""
    make = functools.partial(
        convolution, model(base_config, "convolutional"), causal=True
    )
    assert layers_to_cross([make(1), make(100)], 9) == 7


def test_convolutions_cross_by_their_width_and_dilation(base_config):
    """Three places back: 26 = 13 * 2. Dilated by 3^l, two digits less than 27: 3."""
    make = functools.partial(
        convolution, model(base_config, "convolutional"), causal=True
    )
    assert layers_to_cross([make(1)], 27) == 13
    assert layers_to_cross([make(3**i) for i in range(4)], 27) == 3
    assert layers_to_cross([make(3**i) for i in range(4)], 28) == 4
    # Steps of 2, 4, 8, 16, 32, then of 2 again: 62 in five layers, 64 in six.
    doubling = [make(2**i) for i in range(5)]
    assert layers_to_cross(doubling, 63) == 5 and layers_to_cross(doubling, 65) == 6
    assert (
        layers_to_cross(
            [convolution(model(base_config, "convolutional", kernel_width=1), 1)], 5
        )
        is None
    )


def test_one_layer_of_attention_or_recurrence_crosses(base_config):
    """Also where an LSTM forgets a quarter at each of 200 steps."""
    assert layers_to_cross([whole_layer(model(base_config))], 40) == 1
    assert layers_to_cross([whole_layer(model(base_config, "recurrent"))], 200) == 1


def test_stack_depends_on_what_its_gradient_says(base_config):
    """Five layers of attention to 3 positions, at once: 5 places to either side."""
    layer = whole_layer(model(base_config, attention_window=3))
    (x,) = drawn(layer.inputs(1, 12))
    parameters = [drawn(layer.parameters, seed) for seed in range(5)]

    @jax.jit
    def gradient(x):
        def last(x):
            for each in parameters:
                x = layer.apply(each, x)
            return x[0, -1].sum()

        return (jax.grad(last)(x) != 0).any(axis=(0, 2))

    assert np.flatnonzero(gradient(x)).tolist() == [6, 7, 8, 9, 10, 11]
    assert layers_to_cross([layer], 6) == 5 and layers_to_cross([layer], 7) == 6


def test_width_that_heads_cannot_share_is_refused(base_config):
    with pytest.raises(ConfigError, match="d = 12 is no multiple of model.num_h"):
        of_width(base_config.model, 12)
