"""Cross entropy with label smoothing (section 5.4), as sums over real tokens."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import xlogy


class LossSums(NamedTuple):
    """Sums over real target tokens, and their count; divide after summing all."""

    loss: Any
    nll: Any
    tokens: Any


def smoothed_cross_entropy(
    log_normaliser_BT: Any,
    gold_BT: Any,
    total_BT: Any,
    padding_BT: Any,
    vocabulary_size: int,
    smoothing: Any,
    convention: str,
    entropy: str = "kept",
) -> Any:
    """The expected -log p under the smoothed target, without making that target.

    ``gold_BT`` is the logit of the reference token, ``total_BT`` the sum of all
    V logits, ``padding_BT`` the logit of padding. The target puts eps / V on all
    classes ("all_classes", Szegedy et al. 2015), eps / (V - 1) on the wrong ones
    ("other_classes"), or eps / (V - 2) on the wrong ones but padding
    ("other_pieces"). The entropy of the target, which no gradient
    depends on, is "kept" or "subtracted"; then the loss is a divergence, 0 at best.
    """
    others_BT, others = total_BT - gold_BT, vocabulary_size - 1
    if convention == "all_classes":
        wrong = smoothing / vocabulary_size
    elif convention == "other_classes":
        wrong = smoothing / (vocabulary_size - 1)
    elif convention == "other_pieces":
        others_BT, others = others_BT - padding_BT, vocabulary_size - 2
        wrong = smoothing / others
    else:
        raise ValueError(f"unknown label smoothing convention {convention!r}")
    right = 1.0 - wrong * others
    loss_BT = log_normaliser_BT - right * gold_BT - wrong * others_BT
    if entropy == "kept":
        return loss_BT
    if entropy != "subtracted":
        raise ValueError(
            f"entropy of the target is kept or subtracted, not {entropy!r}"
        )
    return loss_BT + xlogy(right, right) + others * xlogy(wrong, wrong)


def loss_sums(
    logits_BTV: Any,
    target_BT: Any,
    pad_id: int,
    smoothing: Any,
    convention: str,
    entropy: str = "kept",
) -> LossSums:
    """Smoothed loss, plain negative log-likelihood and count of real tokens."""
    logits_BTV = logits_BTV.astype(jnp.float32)
    log_normaliser_BT = jax.nn.logsumexp(logits_BTV, axis=-1)
    # A comparison, whose gradient joins that of the other sums in one loop; that of
    # a gather would be a scatter.
    class_BTV = lax.broadcasted_iota(jnp.int32, logits_BTV.shape, logits_BTV.ndim - 1)
    gold_BTV = jnp.where(class_BTV == target_BT[..., None], logits_BTV, 0.0)
    gold_BT = gold_BTV.sum(axis=-1)
    loss_BT = smoothed_cross_entropy(
        log_normaliser_BT,
        gold_BT,
        logits_BTV.sum(axis=-1),
        logits_BTV[..., pad_id],
        logits_BTV.shape[-1],
        smoothing,
        convention,
        entropy,
    )
    real_BT = target_BT != pad_id
    nll_BT = log_normaliser_BT - gold_BT
    return LossSums(
        loss=jnp.where(real_BT, loss_BT, 0.0).sum(),
        nll=jnp.where(real_BT, nll_BT, 0.0).sum(),
        tokens=real_BT.sum().astype(jnp.float32),
    )
