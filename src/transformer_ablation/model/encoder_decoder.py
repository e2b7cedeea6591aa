"""What every model of this package is to the rest, and what all of them share."""

from typing import Any, NamedTuple, Protocol

import flax.linen as nn
import jax
import jax.numpy as jnp

from transformer_ablation.config import ModelConfig
from transformer_ablation.model.dropout import Noise, dropped
from transformer_ablation.model.packed import places, starts


class TranslationModel(Protocol):
    """What training, scoring and search ask of a linen module.

    ``source`` and ``target`` are token ids ending in the end of sentence. The
    decoder's input is the target shifted right behind ``bos_id``. Ids are
    not checked here, where JAX would clamp them: batches are, on the host.
    Where ``packed`` is asked for, a row holds any number of sequences, its n-th
    target being that of its n-th source; without it, one.

    A cache is whatever ``start_cache`` returns. ``grows`` says whether a step costs
    more with a cache that has more room: such a one is given it when it is needed.
    """

    config: ModelConfig
    vocabulary_size: int
    pad_id: int
    bos_id: int
    eos_id: int
    grows: bool
    init: Any
    apply: Any

    def __call__(self, source_BS: Any, target_BT: Any, noise: Any, packed: bool) -> Any:
        """Logits [B, T, V] of each target token given those before it."""

    def factors(self, source_BS: Any, target_BT: Any, noise: Any, packed: bool) -> Any:
        """The logits before their product: x [B, T, D] and the matrix [V, D]."""

    def start_cache(
        self, source_BS: Any, candidates: int, length: int, fitted: bool
    ) -> Any:
        """Encodes, and makes room for ``length`` positions of every candidate.

        With ``fitted``, which takes longer to compile, hardly any padding is encoded,
        and the cache is of one candidate until a step has been followed.
        """

    def step(self, cache: Any, tokens_BC: Any, position: Any) -> Any:
        """Logits [B, C, V] of what follows ``tokens_BC`` at ``position``; the cache.

        ``position`` is traced and counts from 0, where the token is
        ``bos_id`` and one candidate is enough; it must be below the ``length`` of
        ``start_cache`` or ``make_room``.
        """

    @staticmethod
    def follow(cache: Any, parent_BC: Any) -> Any:
        """The cache in which candidate c is what candidate ``parent[b, c]`` was."""

    @staticmethod
    def make_room(cache: Any, length: int) -> Any:
        """The cache with room for ``length`` positions, more than it has."""


def project(x, matrix_VD):
    """The product of hidden states [..., D] with the rows of a matrix, in float32."""
    return jnp.einsum(
        "...D,VD->...V",
        x,
        matrix_VD.astype(x.dtype),
        preferred_element_type=jnp.float32,
    )


class EncoderDecoder(nn.Module):
    """Embeddings, their tying, teacher forcing and logits of a ``TranslationModel``.

    A model adds ``encode``, ``decode``, ``start_cache`` and ``step``; its ``setup``
    begins with ``self.embeddings = self.new_embeddings()``.
    """

    config: ModelConfig
    vocabulary_size: int
    pad_id: int
    bos_id: int
    eos_id: int

    def new_embeddings(self) -> dict[str, Any]:
        """The embedding matrices [V, D] that the tying leaves, by name."""
        config = self.config
        return {
            name: self.param(
                f"{name}_embedding",
                nn.initializers.normal(config.embedding_stddev or config.d_model**-0.5),
                (self.vocabulary_size, config.d_model),
            )
            for name in self._matrices()
        }

    def _matrices(self) -> tuple[str, ...]:
        return {
            "all": ("shared",),
            "decoder": ("source", "target"),
            "none": ("source", "target", "output"),
        }[self.config.tied_embeddings]

    def _matrix(self, use: str):
        """The matrix of a use (source, target, output) under the tying."""
        if "shared" in self.embeddings:
            return self.embeddings["shared"]
        return self.embeddings.get(use, self.embeddings["target"])

    def _embed(self, tokens_BL, use: str):
        x_BLD = jnp.take(self._matrix(use), tokens_BL, axis=0)
        if self.config.scale_embeddings:
            x_BLD = x_BLD * self.config.d_model**0.5
        return x_BLD.astype(self.config.dtype)

    def _input_dropout(self, x_BLD, noise: Noise | None, use: str):
        return dropped(x_BLD, noise, (use, "embedding"))

    def _places(self, tokens_BL, packed: bool):
        """The places of a packed batch; None where a row is one sequence."""
        return places(tokens_BL, self.eos_id) if packed else None

    def shift_right(self, target_BT, packed: bool = False):
        """The decoder's input: the begin of sentence, then all but the last."""
        first_B1 = jnp.full((target_BT.shape[0], 1), self.bos_id, target_BT.dtype)
        shifted_BT = jnp.concatenate([first_B1, target_BT[:, :-1]], axis=1)
        if not packed:
            return shifted_BT
        return jnp.where(starts(target_BT, self.eos_id), self.bos_id, shifted_BT)

    def encode(self, source_BS, noise: Noise | None = None, packed: bool = False):
        """What of the source ``decode`` is given."""
        raise NotImplementedError

    def decode(
        self,
        memory,
        source_BS,
        target_BT,
        noise: Noise | None = None,
        packed: bool = False,
    ):
        """The decoder's last hidden states [B, T, D] under teacher forcing."""
        raise NotImplementedError

    def _factors(self, x_BLD):
        """What ``project`` makes logits of: hidden states and a matrix."""
        if self.config.scale_logits:
            x_BLD = x_BLD * self.config.d_model**-0.5
        return x_BLD, self._matrix("output")

    def logits(self, x_BLD):
        """Scores of every piece [B, L, V] in float32 (section 3.4); no bias."""
        return project(*self._factors(x_BLD))

    def factors(
        self, source_BS, target_BT, noise: Noise | None = None, packed: bool = False
    ):
        """The logits before their product: x [B, T, D] and the matrix [V, D]."""
        memory = self.encode(source_BS, noise, packed)
        x_BTD = self.decode(memory, source_BS, target_BT, noise, packed)
        return self._factors(x_BTD)

    def __call__(
        self, source_BS, target_BT, noise: Noise | None = None, packed: bool = False
    ):
        """Logits [B, T, V] of each target token given those before it."""
        return project(*self.factors(source_BS, target_BT, noise, packed))


class FixedCache(NamedTuple):
    """A cache with which a step costs the same however much room it has.

    ``memory`` is the same for all candidates; leaves of ``states`` are [B, C, ...].
    Before the first step it may be of one candidate.
    """

    memory: Any
    states: Any


class FixedCacheModel(EncoderDecoder):
    """A model whose cache is a ``FixedCache``."""

    grows = False

    @staticmethod
    def follow(cache: FixedCache, parent_BC) -> FixedCache:
        """The cache in which candidate c is what candidate ``parent[b, c]`` was."""

        def of_parent(x: jax.Array):
            index = parent_BC.reshape(parent_BC.shape + (1,) * (x.ndim - 2))
            return jnp.take_along_axis(x, index, axis=1)

        return cache._replace(states=jax.tree.map(of_parent, cache.states))

    @staticmethod
    def make_room(cache: FixedCache, length: int) -> FixedCache:
        """The same cache: ``start_cache`` has given it all the room it will need."""
        return cache
