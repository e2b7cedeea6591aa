"""What each head attends to, in means over the queries of many pairs."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from transformer_ablation import parallel
from transformer_ablation.data.ragged import TokenizedSplit
from transformer_ablation.evaluate.attention import (
    KINDS,
    MOST_BYTES,
    padded,
    parts,
    rows_within,
    weights,
)
from transformer_ablation.evaluate.perplexity import longest_input
from transformer_ablation.model.attention import padding_mask
from transformer_ablation.model.neighbourhood import neighbourhood_mask

# In the order of the sums' last axis.
MEASURES = (
    "entropy",
    "entropy_share",
    "distance",
    "diagonal",
    "previous",
    "next",
    "first",
    "last",
    "maximum",
)
# What a kind cannot have: a decoder sees nothing later, so the last is itself.
WITHOUT = {"encoder": (), "decoder": ("next", "last"), "cross": ()}


class HeadSummary(NamedTuple):
    """``means[kind][measure]`` is [N, H] in float64, NaN where no query counts.

    Every real query position weighs the same, whatever its sentence; ``queries`` counts
    them by kind, the end of sentence among them. Measures of a query's weights w:

    - entropy: -sum w ln w, in nats (Ghader and Monz 2017).
    - entropy_share: of ln n, the most that n visible keys allow; over the queries that
      see more than one.
    - distance: sum w |key - centre|, in pieces. The centre is the query's own position;
      in cross attention position t (S - 1) / (T - 1) of the source, so that the first
      and last of both sides face each other.
    - diagonal, previous, next: the weight on the key nearest to the centre, the one
      before and the one after it.
    - first, last: the weight on the first key and on the last, which is the end of
      sentence; of the decoder's own keys the first is the begin of sentence.
    - maximum: the greatest weight ("confidence" of Voita et al. 2019, who leave the end
      of sentence out).
    """

    means: dict[str, dict[str, np.ndarray]]
    queries: dict[str, int]
    sentences: int


def summarize(
    model: Any, params: Any, pairs: TokenizedSplit, most_bytes: int = MOST_BYTES
) -> HeadSummary:
    """The summary of every head over all pairs, on all devices.

    ``params`` are replicated. At most ``most_bytes`` of weights exist at a time, unless
    a pair for each device needs more; of the pairs before, only sums are kept.

    Raises:
      ValueError: if there is no pair.
      LengthError: for a pair longer than the learned positions.
    """
    if len(pairs) == 0:
        raise ValueError("there is no pair to look at")
    mapped = parallel.map_batch(lambda p, batch: _sums(model, p, batch))
    devices = parallel.total_device_count()
    config, longest = model.config, longest_input(model)

    def rows_of(width: int) -> int:
        return max(rows_within(config, width, most_bytes) // devices, 1) * devices

    total: dict[str, list[Any]] = {}
    for part in parts(pairs, rows_of, longest, devices):
        found = mapped(params, padded(pairs, part))
        for kind, (sums_BNHX, queries_B2) in found.items():
            sums = total.setdefault(kind, [0.0, 0])
            sums[0] += sums_BNHX.sum(axis=0, dtype=np.float64)
            sums[1] += queries_B2.sum(axis=0, dtype=np.int64)
    kinds = [kind for kind in KINDS if kind in total]
    return HeadSummary(
        {kind: _means(kind, *total[kind]) for kind in kinds},
        {kind: int(total[kind][1][0]) for kind in kinds},
        len(pairs),
    )


def _means(
    kind: str, sums_NHX: np.ndarray, queries_2: np.ndarray
) -> dict[str, np.ndarray]:
    every, choosing = queries_2
    counts = {"entropy_share": choosing}
    means = {}
    for i, name in enumerate(MEASURES):
        count = counts.get(name, every)
        if name not in WITHOUT[kind]:
            sums_NH = sums_NHX[..., i]
            means[name] = sums_NH / count if count else np.full(sums_NH.shape, np.nan)
    return means


def _sums(model: Any, params: Any, batch: Any) -> dict[str, tuple[Any, Any]]:
    """By kind, the sums of each pair [B, N, H, measures] and its queries [B, 2].

    Of the queries the second count is of those that see more than one key.
    """
    source_BS, target_BT = batch
    found = weights(model, params, batch)
    pad = model.pad_id
    sides = {
        "encoder": (source_BS, source_BS),
        "decoder": (target_BT, target_BT),
        "cross": (target_BT, source_BS),
    }
    result = {}
    for kind, (query_BL, key_BM) in sides.items():
        if kind not in found:
            continue
        visible_BLM = padding_mask(key_BM, pad)[:, 0]
        if kind != "cross":
            window, causal = model.config.attention_window, kind == "decoder"
            near_11LM = neighbourhood_mask(key_BM.shape[1], window, causal)
            visible_BLM = visible_BLM & near_11LM[0]
        real_BL = query_BL != pad
        real_BLM = jnp.broadcast_to(
            real_BL[:, :, None], (*real_BL.shape, key_BM.shape[1])
        )
        seen_BL = (visible_BLM & real_BLM).sum(axis=-1)
        queries_BL, keys_B = real_BL.sum(axis=-1), (key_BM != pad).sum(axis=-1)
        centre_BL = jnp.broadcast_to(
            jnp.arange(query_BL.shape[1], dtype=jnp.float32)[None], query_BL.shape
        )
        if kind == "cross":
            ratio_B = (keys_B - 1) / jnp.maximum(queries_BL - 1, 1)
            centre_BL = centre_BL * ratio_B[:, None]
        sums = _measured(found[kind], real_BL, seen_BL, centre_BL, keys_B)
        counts = [queries_BL, (seen_BL > 1).sum(axis=-1)]
        result[kind] = sums, jnp.stack(counts, axis=-1)
    return result


def _measured(
    weights_NBHLM: Any, real_BL: Any, seen_BL: Any, centre_BL: Any, keys_B: Any
) -> Any:
    """Sums over the real queries: [B, N, H, measures]."""
    key_11M = jnp.arange(weights_NBHLM.shape[-1])[None, None, :]
    nearest_BL1 = jnp.floor(centre_BL + 0.5).astype(jnp.int32)[..., None]
    real_BL = real_BL.astype(jnp.float32)

    def on(chosen_BLM: Any) -> Any:
        """The weights on some keys, or times a number each."""
        amount_BLM = chosen_BLM.astype(jnp.float32) * real_BL[..., None]
        return jnp.einsum("NBHLM,BLM->BNH", weights_NBHLM, amount_BLM)

    def over(queries_NBHL: Any, factor_BL: Any) -> Any:
        return jnp.einsum("NBHL,BL->BNH", queries_NBHL, factor_BL * real_BL)

    positive = jnp.where(weights_NBHLM > 0, weights_NBHLM, 1.0)
    entropy_NBHL = -(weights_NBHLM * jnp.log(positive)).sum(axis=-1)
    # Where there is one key, its entropy is 0 whatever it is divided by.
    most_BL = jnp.log(jnp.maximum(seen_BL, 2).astype(jnp.float32))
    last_B11 = keys_B[:, None, None] - 1
    found = {
        "entropy": over(entropy_NBHL, jnp.ones_like(real_BL)),
        "entropy_share": over(entropy_NBHL, 1 / most_BL),
        "distance": on(jnp.abs(key_11M - centre_BL[..., None])),
        "diagonal": on(key_11M == nearest_BL1),
        "previous": on(key_11M == nearest_BL1 - 1),
        "next": on(key_11M == nearest_BL1 + 1),
        "first": on(jnp.broadcast_to(key_11M == 0, (*real_BL.shape, key_11M.shape[2]))),
        "last": on(
            jnp.broadcast_to(key_11M == last_B11, (*real_BL.shape, key_11M.shape[2]))
        ),
        "maximum": over(weights_NBHLM.max(axis=-1), jnp.ones_like(real_BL)),
    }
    assert tuple(found) == MEASURES
    return jnp.stack([*found.values()], axis=-1)
