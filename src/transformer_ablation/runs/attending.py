"""What every head of a run attends to in a pair, and pictures of it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation import parallel
from transformer_ablation.evaluate.attention import Attention, Recorder
from transformer_ablation.report import attention_page, attention_sheets
from transformer_ablation.report.piece_labels import Labels, labels
from transformer_ablation.runs.errors import LoadError, RunError
from transformer_ablation.runs.loading import Trained
from transformer_ablation.vocabulary import BOS, Vocabulary


class Attended(NamedTuple):
    """A pair, and the weights of every kind, layer and head under teacher forcing.

    ``weights.encoder`` [N, H, S, S], ``.decoder`` [N, H, T, T] and ``.cross``
    [N, H, T, S]: layers, heads, queries, keys. ``source``, ``read`` and ``written`` are
    the labels of their positions: a query of the decoder is the piece that it reads,
    ``<s>`` first, and is there to predict the one of ``written``. ``</s>`` counts.
    """

    heading: str
    note: str
    about: str
    source: Labels
    read: Labels
    written: Labels
    weights: Attention

    def sheet(self, kind: str = "cross") -> bytes:
        """A PNG of all heads of a kind: a row a layer, a panel a head.

        Raises:
          RunError: for another ``kind`` than encoder, decoder and cross, or one that
            the model has not.
        """
        known = self.weights.known()
        if kind not in known:
            raise RunError(f"kind: {kind!r} is not one of {', '.join(known)}")
        keys = self.read if kind == "decoder" else self.source
        queries = self.source if kind == "encoder" else self.read
        words = queries.pieces, keys.pieces
        return attention_sheets.sheet(known[kind], *words, f"{kind}: {self.about}")

    def page(self) -> str:
        """One self-contained HTML file: lines from word to word, and maps."""
        return page([self], f"Attention: {self.heading}")

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        return self.sheet()


def sheets(shown: Sequence[Attended]) -> Iterator[tuple[str, bytes]]:
    """PNGs of every kind of every pair, each with words to name its file by."""
    for number, each in enumerate(shown, start=1):
        among = f"{number}-" if len(shown) > 1 else ""
        for kind in each.weights.known():
            yield f"{among}{kind}", each.sheet(kind)


def page(shown: Sequence[Attended], title: str) -> str:
    """One HTML file of several pairs of a run, which one chooses from there."""
    pairs = [
        attention_page.Pair(
            heading=each.heading,
            note=each.note,
            source=each.source,
            read=each.read,
            written=each.written,
            weights=each.weights.known(),
        )
        for each in shown
    ]
    return attention_page.as_html(title, [shown[0].about], pairs)


def attend(
    trained: Trained,
    vocabulary: Vocabulary,
    about: str,
    pairs: Sequence[tuple[str, str, Sequence[int], Sequence[int]]],
) -> Iterator[Attended]:
    """Of (heading, note, ids of the source, ids of the target), each ids with EOS.

    Raises:
      LengthError: for a pair longer than learned positions.
      LoadError: for parameters that are not finite.
    """
    record = Recorder(trained.model)
    ids: Any = [[pair[side] for pair in pairs] for side in (2, 3)]
    found = record(parallel.on_one_device(trained.params), *ids)
    for (heading, note, source, target), weights in zip(pairs, found, strict=True):
        if not all(np.isfinite(x).all() for x in weights.known().values()):
            raise LoadError(
                "the parameters give no finite attention: the run has diverged; take "
                "an earlier checkpoint with --step"
            )
        sides = (source, [BOS, *target[:-1]], target)
        shown = [labels(vocabulary.pieces(side)) for side in sides]
        yield Attended(heading, note, about, *shown, weights)
