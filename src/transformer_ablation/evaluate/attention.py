"""Attention weights of pairs under teacher forcing: of every kind, layer and head.

They come from a program of their own, run on one device of this process: training and
decoding neither compute nor keep them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from transformer_ablation.config import ModelConfig
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate.perplexity import longest_input

# Where the weights of a kind are sown: the stack, and the module in its layers.
KINDS = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}

# Of weights that a device makes at a time; a longer pair is made alone.
MOST_BYTES = 2**28
# Both sides of a batch are padded to this or its doubles: few programs are compiled.
NARROWEST = 32


class Attention(NamedTuple):
    """The weights of one pair, of real positions alone, in float32.

    encoder [N, H, S, S], decoder [N, H, T, T] and cross [N, H, T, S], N the layers. S
    and T count the end of sentence. Query position t of the decoder is the piece before
    target t, the begin of sentence for the first. A query's weights sum to 1, and what
    it may not see has exactly 0.
    """

    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray


class LengthError(ValueError):
    """A pair that is longer than a model's learned positions."""


class Part(NamedTuple):
    """Pairs ``indices`` that are computed together, ``rows`` with both sides padded to
    ``width``."""

    indices: np.ndarray
    rows: int
    width: int


class Recorder:
    """The weights of any pairs of a model, at most ``most_bytes`` at a time.

    A recorder compiles once for each padded width and number of rows, both powers of 2.
    """

    def __init__(self, model: Any, most_bytes: int = MOST_BYTES):
        self._model, self._most_bytes = model, most_bytes
        self._record = jax.jit(lambda params, batch: weights(model, params, batch))

    def __call__(
        self,
        params: Any,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
    ) -> list[Attention]:
        """The weights of each pair, in order.

        Args:
          params: of one device (``parallel.on_one_device``) or of the host.
          sources, targets: ids that end in the end of sentence, without its begin.

        Raises:
          LengthError: for a pair longer than the learned positions.
          ValueError: for other numbers of sources and targets, or bad ids.
        """
        found = dict(self.each(params, sources, targets))
        return [found[i] for i in range(len(found))]

    def each(
        self,
        params: Any,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
    ) -> Iterator[tuple[int, Attention]]:
        """Number and weights of each pair, short ones first; only a batch is kept.

        Arguments and errors are those of the call.
        """
        pairs = self._checked(sources, targets)

        def rows_of(width: int) -> int:
            return rows_within(self._model.config, width, self._most_bytes)

        for part in parts(pairs, rows_of, longest_input(self._model)):
            batch = padded(pairs, part)
            found = jax.device_get(self._record(params, batch))
            for row, i in enumerate(part.indices):
                s, t = int(pairs.source.lengths[i]), int(pairs.target.lengths[i])
                sizes = {"encoder": (s, s), "decoder": (t, t), "cross": (t, s)}
                # Copies, so that a pair does not keep its whole batch.
                own = {
                    kind: found[kind][:, row, :, :m, :n].copy()
                    for kind, (m, n) in sizes.items()
                }
                yield int(i), Attention(**own)

    def _checked(self, sources: Any, targets: Any) -> TokenizedSplit:
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources, but {len(targets)} targets")
        model = self._model
        for name, side in (("source", sources), ("target", targets)):
            for number, ids in enumerate(side, start=1):
                if len(ids) == 0 or ids[-1] != model.eos_id:
                    raise ValueError(
                        f"pair {number}: the {name} does not end in the end of "
                        f"sentence, id {model.eos_id}"
                    )
                low, high = min(ids), max(ids)
                if low < 0 or high >= model.vocabulary_size or model.pad_id in ids:
                    raise ValueError(
                        f"pair {number}: the {name} has an id that is padding or not "
                        f"in [0, {model.vocabulary_size})"
                    )
        return TokenizedSplit(Ragged.of(sources), Ragged.of(targets))


def weights(model: Any, params: Any, batch: Any) -> dict[str, jax.Array]:
    """[N, B, H, L, M] by kind of padded ``(source, target)``; to be compiled."""
    # Logits are not asked for, so they are not computed.
    _, sown = model.apply(
        {"params": params}, *batch, method="factors", mutable=["attention"]
    )
    return {
        kind: sown["attention"][stack][module]["weights"][0]
        for kind, (stack, module) in KINDS.items()
    }


def rows_within(config: ModelConfig, width: int, most_bytes: int) -> int:
    """How many pairs padded to a width have at most so many bytes of weights.

    A power of 2; at least 1.
    """
    pair = 4 * len(KINDS) * config.num_layers * config.num_heads * width**2
    return 1 << max(0, (most_bytes // pair).bit_length() - 1)


def parts(
    pairs: TokenizedSplit,
    rows_of: Callable[[int], int],
    longest: int | None,
    multiple: int = 1,
) -> Iterator[Part]:
    """Every pair once, short ones first, in few shapes.

    Of a width, the last part has just as many rows as it needs, rounded up to a power
    of 2; the others have ``rows_of(width)``; all are rounded up to a ``multiple``. No
    width is beyond ``longest``.

    Raises:
      LengthError: for a pair that is.
    """
    lengths = np.maximum(pairs.source.lengths, pairs.target.lengths).astype(np.int64)
    if longest is not None and lengths.max(initial=0) > longest:
        number = int(lengths.argmax())
        raise LengthError(
            f"pair {number + 1} is {lengths[number]} pieces long with the end of "
            f"sentence, but model.max_length = {longest} learned positions hold no "
            "more; shorten it"
        )
    doublings = np.searchsorted(NARROWEST << np.arange(32), lengths)
    for doubling in np.unique(doublings):
        width = NARROWEST << int(doubling)
        width = width if longest is None else min(width, longest)
        members = np.flatnonzero(doublings == doubling)
        rows = rows_of(width)
        for start in range(0, len(members), rows):
            part = members[start : start + rows]
            needed = min(rows, 1 << (len(part) - 1).bit_length())
            yield Part(part, -(-needed // multiple) * multiple, width)


def padded(pairs: TokenizedSplit, part: Part) -> tuple[np.ndarray, np.ndarray]:
    """int32 [rows, width] of both sides; rows beyond the pairs hold PAD."""
    source, target = (
        side.padded(part.indices, part.rows, part.width)
        for side in (pairs.source, pairs.target)
    )
    return source, target


def entropies(weights_NHLM: np.ndarray) -> np.ndarray:
    """The entropy of each query's weights, in nats: [N, H, L]."""
    positive = np.where(weights_NHLM > 0, weights_NHLM, 1.0)
    return -(weights_NHLM * np.log(positive)).sum(axis=-1)
