"""Which positions see which others of their sequence, as masks."""

import jax.numpy as jnp


def neighbourhood_mask(length: int, window: int | None, causal: bool):
    """Which positions each position may see: [1, 1, L, L].

    ``window`` = r keeps the r positions centred on one's own (section 4's
    restricted self-attention; an even r has the extra one on the left);
    ``causal`` keeps those that are not later. With both, the neighbourhood is
    the earlier half of the window and oneself.
    """
    query_L1 = jnp.arange(length)[:, None]
    key_1M = jnp.arange(length)[None, :]
    return _visible(query_L1, key_1M, window, causal)[None, None]


def slot_mask(origin_BCT, position, window: int | None, most: int):
    """Which cache slots a candidate may see at a traced position: [B, 1, C, T*M].

    Slot t * M + c holds what candidate c of at most M was at position t;
    ``origin_BCT`` says which of them is the past of each candidate now.
    """
    batch, candidates, length = origin_BCT.shape
    key_1M = jnp.arange(length)[None, :]
    near_T = _visible(jnp.full((1, 1), position), key_1M, window, causal=True)[0]
    own_BCTM = origin_BCT[..., None] == jnp.arange(most)[None, None, None]
    slots_BCTM = own_BCTM & near_T[None, None, :, None]
    return slots_BCTM.reshape(batch, 1, candidates, length * most)


def _visible(query_L1, key_1M, window: int | None, causal: bool):
    shape = jnp.broadcast_shapes(query_L1.shape, key_1M.shape)
    offset_LM = jnp.broadcast_to(key_1M, shape) - jnp.broadcast_to(query_L1, shape)
    visible_LM = jnp.ones(shape, bool)
    if window is not None:
        visible_LM &= (offset_LM >= -(window // 2)) & (offset_LM <= (window - 1) // 2)
    if causal:
        visible_LM &= offset_LM <= 0
    return visible_LM
