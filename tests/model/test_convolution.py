"""The initial kernel of a gated convolution: its deviation by the formula."""

import jax
import numpy as np
import pytest

from transformer_ablation.model.convolution import GatedConvolution


@pytest.mark.parametrize("width", [1, 3, 8])
def test_kernel_begins_as_wide_as_its_fan_in_asks(width):
    """Variance 4 / (k d), of 8,192 k numbers: the deviation is within 3%, of 3.9 sd."""
    module = GatedConvolution(64, width, 1, False, "float32")
    x = np.zeros((1, 2, 64), np.float32)
    params = module.init(jax.random.key(0), x)["params"]
    assert params["kernel"].shape == (width, 64, 128)
    assert np.std(params["kernel"]) == pytest.approx(
        (4 / (width * 64)) ** 0.5, rel=0.03
    )
    assert not params["bias"].any()
