"""Attention, layer norm and label smoothing are those of PyTorch."""

import numpy as np
import pytest

from tests.model.numpy_transformer import small_module
from transformer_ablation.model.attention import (
    attention_weights,
    scaled_dot_scores,
    weighted_sum,
)
from transformer_ablation.model.sublayer import layer_norm
from transformer_ablation.train.loss import loss_sums

pytestmark = pytest.mark.parity
RANDOM = np.random.default_rng(0)


def draw(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_attention_with_padding():
    torch = pytest.importorskip("torch")
    q_BLHK, k_BHMK, v_BHMU = draw(2, 5, 3, 8), draw(2, 3, 7, 8), draw(2, 3, 7, 6)
    mask_B1LM = np.ones((2, 1, 5, 7), bool)
    mask_B1LM[1, :, :, 4:] = False
    weights_BHLM = attention_weights(
        scaled_dot_scores(q_BLHK, k_BHMK.swapaxes(2, 3)), mask_B1LM
    )
    ours_BLHU = np.asarray(weighted_sum(weights_BHLM, v_BHMU))
    theirs_BHLU = torch.nn.functional.scaled_dot_product_attention(
        torch.tensor(q_BLHK).transpose(1, 2),
        torch.tensor(k_BHMK),
        torch.tensor(v_BHMU),
        attn_mask=torch.tensor(mask_B1LM),
    )
    np.testing.assert_allclose(
        ours_BLHU, theirs_BHLU.transpose(1, 2).numpy(), rtol=1e-5, atol=1e-6
    )


def test_layer_norm():
    torch = pytest.importorskip("torch")
    x_BLD, scale_D, bias_D = 3 * draw(2, 5, 12) + 1, draw(12), draw(12)
    module = layer_norm(small_module().config)
    ours = module.apply({"params": {"scale": scale_D, "bias": bias_D}}, x_BLD)
    theirs = torch.nn.functional.layer_norm(
        torch.tensor(x_BLD), (12,), torch.tensor(scale_D), torch.tensor(bias_D), 1e-6
    )
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_label_smoothing(smoothing):
    torch = pytest.importorskip("torch")
    logits_BTV = draw(3, 4, 11)
    target_BT = RANDOM.integers(1, 11, (3, 4))
    target_BT[2, 1:] = 0
    found = loss_sums(logits_BTV, target_BT, 0, smoothing, "all_classes")
    expected = torch.nn.functional.cross_entropy(
        torch.tensor(logits_BTV).reshape(-1, 11),
        torch.tensor(target_BT).reshape(-1),
        ignore_index=0,
        label_smoothing=smoothing,
        reduction="sum",
    )
    assert float(found.loss) == pytest.approx(float(expected), rel=1e-5)
