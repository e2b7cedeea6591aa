"""Attention by ``jax.nn.dot_product_attention``, in place of our own products."""

import jax
import jax.numpy as jnp

# What cuDNN's kernels take: sizes of heads in steps of 8, and of masks in steps of 2.
_STEPS = {"xla": (1, 1), "cudnn": (8, 2)}


def fused_attention(
    q_BLHK, k_BMHK, v_BMHU, mask_B1LM, scale: float, implementation: str
):
    """The values averaged with the softmax of the scaled products: [B, L, H, U].

    ``implementation`` is "xla", for any platform, or "cudnn", which takes half
    precision on an NVIDIA GPU and never holds the weights. Zeros fill up what the
    function wants larger or of one size; they change no product. As in
    ``attention_weights``, a query that may attend to nothing gets zeros.
    """
    length, d_v = q_BLHK.shape[1], v_BMHU.shape[-1]
    of_head, of_length = _STEPS[implementation]
    size = _rounded(max(q_BLHK.shape[-1], d_v), of_head)
    queries, memory = (_rounded(x.shape[1], of_length) for x in (q_BLHK, k_BMHK))
    some_BL11 = jnp.moveaxis(mask_B1LM.any(axis=-1, keepdims=True), 1, 2)
    mask_B1LM = jnp.broadcast_to(
        mask_B1LM, (q_BLHK.shape[0], 1, length, k_BMHK.shape[1])
    )
    mask_B1LM = _filled(mask_B1LM, {2: queries, 3: memory})
    # A row of nothing but hidden places would be left to each implementation.
    mask_B1LM |= ~mask_B1LM.any(axis=-1, keepdims=True)
    heads_BLHU = jax.nn.dot_product_attention(
        _filled(q_BLHK, {1: queries, 3: size}),
        _filled(k_BMHK, {1: memory, 3: size}),
        _filled(v_BMHU, {1: memory, 3: size}),
        mask=mask_B1LM,
        scale=scale,
        implementation=implementation,
    )
    heads_BLHU = heads_BLHU[:, :length, :, :d_v]
    return jnp.where(some_BL11, heads_BLHU, jnp.zeros_like(heads_BLHU))


def _rounded(size: int, step: int) -> int:
    return -(-size // step) * step


def _filled(x, sizes: dict[int, int]):
    """``x`` with zeros behind what it has, up to the size of each axis named."""
    added = [(0, sizes.get(axis, n) - n) for axis, n in enumerate(x.shape)]
    return jnp.pad(x, added) if any(n for _, n in added) else x
