"""How strongly a decoder's output depends on a piece that was read long before.

Of the Jacobian J [d, d] of an output vector and an embedding, the norm is Frobenius'
over sqrt(d): how much longer the output's change is than the embedding's, as a root
mean square over directions. It is estimated by probes v of independent normal numbers,
of which |J' v|^2 is |J|^2 in the mean: one product of a vector with all of a sentence's
Jacobians a probe.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.model.encoder_decoder import EncoderDecoder


class Norms(NamedTuple):
    """Of the outputs at Q places of each sentence: [Q, B, S] and [Q, B, T].

    ``source`` is of the source's pieces. ``target`` is of the target's, which are the
    decoder's inputs one position later.
    """

    source: Any
    target: Any


# (embeddings [B, S, D], [B, T, D]) -> the decoder's last hidden states [B, T, D]
Hidden = Callable[[Any, Any], Any]


def norms(
    hidden: Hidden,
    source_BSD: Any,
    target_BTD: Any,
    places_QB: Any,
    key: Any,
    probes: int,
) -> Norms:
    """Norms of the Jacobians of the outputs at ``places``, from so many probes."""
    outputs_BTD, back = jax.vjp(hidden, source_BSD, target_BTD)
    batch, length, size = outputs_BTD.shape

    def squares(place_B: Any, key: Any) -> Norms:
        probe_B1D = jax.random.normal(key, (batch, 1, size), outputs_BTD.dtype)
        here_BT1 = (jnp.arange(length)[None] == place_B[:, None])[..., None]
        gradients = back(jnp.where(here_BT1, probe_B1D, 0.0))
        return Norms(*((g.astype(jnp.float32) ** 2).sum(axis=-1) for g in gradients))

    def of_place(given: tuple[Any, Any]) -> Norms:
        place_B, key = given
        keys = jax.random.split(key, probes)
        each = jax.lax.map(lambda key: squares(place_B, key), keys)
        return jax.tree.map(lambda x: (x.mean(axis=0) / size) ** 0.5, each)

    return jax.lax.map(of_place, (places_QB, jax.random.split(key, len(places_QB))))


def own_rows(model: EncoderDecoder, params: Any, source_BS: Any, target_BT: Any):
    """``(hidden, source_BSD, target_BTD)`` of a model and padded ids.

    Each piece of each sentence gets a row of its own in a new embedding matrix, so its
    gradient is its own. Embeddings are as they enter the stacks: scaled, if the model
    scales them, and without their positions.
    """
    scale = model.config.d_model**0.5 if model.config.scale_embeddings else 1.0
    special = max(model.pad_id, model.bos_id, model.eos_id) + 1
    (batch, sources), targets = source_BS.shape, target_BT.shape[1]
    rows = special + batch * (sources + targets)
    apart = model.clone(vocabulary_size=rows)

    def matrix(use: str) -> Any:
        return params.get("shared_embedding", params.get(f"{use}_embedding"))

    def numbered(tokens_BL: Any, first: int) -> Any:
        numbers_BL = first + jnp.arange(tokens_BL.size).reshape(tokens_BL.shape)
        return jnp.where(tokens_BL == model.pad_id, model.pad_id, numbers_BL)

    ids_BS = numbered(source_BS, special)
    ids_BT = numbered(target_BT, special + source_BS.size)

    def hidden(source_BSD: Any, target_BTD: Any) -> Any:
        read = [x.reshape(-1, x.shape[-1]) / scale for x in (source_BSD, target_BTD)]
        tables = {
            name: jnp.concatenate([leaf[:special], *read])
            for name, leaf in params.items()
            if name.endswith("_embedding")
        }
        variables = {"params": {**params, **tables}}
        memory = apart.apply(variables, ids_BS, method="encode")
        return apart.apply(variables, memory, ids_BS, ids_BT, method="decode")

    embedded = (
        matrix(use)[tokens] * scale
        for use, tokens in (("source", source_BS), ("target", target_BT))
    )
    return hidden, *embedded


def joined(split: TokenizedSplit, count: int) -> TokenizedSplit:
    """Each ``count`` pairs that follow on each other as one long pair.

    The end of sentence is at the end alone. What is left over is left out.
    """

    def side(ragged: Ragged) -> Ragged:
        whole = range(0, len(ragged) - count + 1, count)
        return Ragged.of(
            [
                np.concatenate(
                    [
                        ragged[i] if i == first + count - 1 else ragged[i][:-1]
                        for i in range(first, first + count)
                    ]
                )
                for first in whole
            ]
        )

    return TokenizedSplit(side(split.source), side(split.target))


class Point(NamedTuple):
    """The mean norm at a distance, over so many pairs of an output and a piece."""

    k: int
    norm: float
    count: int


class Curves(NamedTuple):
    """Points by distance, near to far.

    ``target``: the output at decoder position t and the decoder's input at t - k, the
    begin of sentence left out. ``source``: as many pieces as one reads from the source
    piece at j to the source's end, and then the t of the target: k = S - 1 - j + t.
    """

    target: list[Point]
    source: list[Point]


def places(lengths_B: np.ndarray, count: int) -> np.ndarray:
    """Decoder positions [Q, B] at equal distances, the last of each sentence's too."""
    parts_Q1 = np.arange(1, count + 1)[:, None]
    return -(-(lengths_B[None] - 1) * parts_Q1 // count)


class Sample(NamedTuple):
    """Which outputs are asked: sentences a batch, positions of each, probes."""

    rows: int
    positions: int
    probes: int


def curves(
    model: EncoderDecoder,
    params: Any,
    split: TokenizedSplit,
    sample: Sample,
    seed: int,
    done: Callable[[], None] = lambda: None,
) -> Curves:
    """Mean norms by distance, over all sentences of a split and some positions.

    ``done`` is called after each ``sample.rows`` sentences.
    """
    width = [int(side.lengths.max()) for side in (split.source, split.target)]

    @jax.jit
    def batch(params: Any, source_BS: Any, target_BT: Any, places_QB: Any, key: Any):
        given = own_rows(model, params, source_BS, target_BT)
        return norms(*given, places_QB, key, sample.probes)

    sums: dict[str, Any] = {
        side: np.zeros((2, sum(width) + 1)) for side in Curves._fields
    }
    for number, first in enumerate(range(0, len(split), sample.rows)):
        indices = np.arange(first, min(first + sample.rows, len(split)))
        padded = [
            side.padded(indices, sample.rows, length)
            for side, length in zip((split.source, split.target), width, strict=True)
        ]
        lengths = [side.lengths[indices] for side in (split.source, split.target)]
        filled_B = np.pad(
            lengths[1], (0, sample.rows - len(indices)), constant_values=1
        )
        places_QB = places(filled_B, sample.positions)
        key = jax.random.fold_in(jax.random.key(seed), number)
        found = jax.device_get(batch(params, *padded, places_QB, key))
        for q, b in np.ndindex(sample.positions, len(indices)):
            t, length = places_QB[q, b], lengths[0][b]
            if t == 0 or (q and t == places_QB[q - 1, b]):
                continue  # a target of one piece, or a position that was just asked
            _add(sums["target"], t - 1 - np.arange(t), found.target[q, b, :t])
            k = length - 1 - np.arange(length) + t
            _add(sums["source"], k, found.source[q, b, :length])
        done()
    return Curves(*(_points(*sums[side]) for side in Curves._fields))


def _add(sums: np.ndarray, k: np.ndarray, values: np.ndarray) -> None:
    """Values and their count at each distance; no distance stands twice in ``k``."""
    sums[0, k] += values
    sums[1, k] += 1


def _points(totals: np.ndarray, counts: np.ndarray) -> list[Point]:
    return [
        Point(int(k), float(totals[k] / counts[k]), int(counts[k]))
        for k in np.flatnonzero(counts)
    ]
