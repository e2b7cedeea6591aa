"""Averages of checkpoints against plain numpy."""

import numpy as np
import pytest

from transformer_ablation.train.averaging import average


def trees(count):
    """Pytrees of leaves with different shapes and float32 values."""
    random = np.random.default_rng(5)

    def leaf(*shape):
        return random.normal(size=shape).astype(np.float32)

    return [{"kernel": leaf(2, 3), "norm": {"scale": leaf(5)}} for _ in range(count)]


def test_average_is_the_mean_of_every_leaf():
    given = trees(3)
    found = average(given)
    assert found.keys() == {"kernel", "norm"} and found["norm"].keys() == {"scale"}
    for pick in (lambda tree: tree["kernel"], lambda tree: tree["norm"]["scale"]):
        a, b, c = (pick(tree).astype(np.float64) for tree in given)
        np.testing.assert_allclose(pick(found), (a + b + c) / 3, rtol=1e-7)
        assert pick(found).dtype == np.float32


def test_average_is_summed_in_float64():
    # In float32, 1 is lost beside 1e8, and the sum of the three would be 0.
    given = [{"x": np.array([x], np.float32)} for x in (1e8, 1.0, -1e8)]
    np.testing.assert_allclose(average(given)["x"], [1 / 3], rtol=1e-7)


def test_average_of_one_is_that_one():
    (tree,) = trees(1)
    np.testing.assert_array_equal(average([tree])["kernel"], tree["kernel"])


def test_average_leaves_its_inputs_alone():
    given, copies = trees(2), trees(2)
    average(given)
    for tree, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(tree["kernel"], copy["kernel"])


def test_average_of_none_is_refused():
    with pytest.raises(ValueError, match="there is no checkpoint to average"):
        average([])
