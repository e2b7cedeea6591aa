"""Attention of sentence pairs as one HTML file: lines from word to word, and maps.

In the manner of the paper's figures 3 to 5: what a word attends to is joined to it by
lines as strong as the weights, in a colour for each head.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation.report.page.document import Section, document, escape
from transformer_ablation.report.piece_labels import Labels

# What a weight of 1 is in the page's data. 0 is a weight of exactly 0: a hidden place.
FULL = 65_535

NOTES = (
    "A query's weights sum to 1 in each head. A hatched place of a map is one that the "
    "query may not see: its weight is exactly 0.",
    "The decoder reads the target one place later than it writes it: a query of the "
    "decoder is named by the piece that it reads, the first of which is <s>, and the "
    "piece that it is there to predict stands beside its weights.",
    "</s> is the end of the sentence, and a piece like any other. A piece that goes on "
    "with a word begins with ·; ␣ is a space of its own.",
    "Words: the weight on a word is the sum over its pieces, that of a word the mean "
    "over its pieces (Clark et al. 2019).",
    "Weights are those of teacher forcing, computed in float32 without dropout, and "
    "kept here to 1/65535.",
)


class Pair(NamedTuple):
    """A pair as it is shown.

    ``read`` and ``written`` are the target as the decoder reads it (behind <s>) and as
    it is to predict it. ``weights`` is [N, H, L, M] by kind (encoder, decoder, cross).
    """

    heading: str
    note: str
    source: Labels
    read: Labels
    written: Labels
    weights: Mapping[str, np.ndarray]


def as_html(title: str, lead: Sequence[str], pairs: Sequence[Pair]) -> str:
    """The document; ``lead`` are lines of text on the model and its checkpoint."""
    notes = "\n".join(f"<li>{escape(note)}</li>" for note in NOTES)
    sections = [
        Section(
            "attention",
            "Attention",
            '<form class="controls" id="attention-controls"></form>\n'
            '<p id="attention-note" class="faint" dir="auto"></p>\n'
            '<div id="attention-figure"></div>',
        ),
        Section("notes", "Notes", f"<ul>\n{notes}\n</ul>"),
    ]
    return document(
        title,
        sections,
        {"attention-data": [_data(pair) for pair in pairs]},
        styles=("report.css", "attention.css"),
        scripts=(
            "attention.js",
            "attention_lines.js",
            "attention_maps.js",
            "attention_page.js",
        ),
        lead="\n".join(f'<p dir="auto">{escape(line)}</p>' for line in lead),
    )


def _data(pair: Pair) -> dict[str, Any]:
    layers, heads = next(iter(pair.weights.values())).shape[:2]
    return {
        "heading": pair.heading,
        "note": pair.note,
        "source": pair.source._asdict(),
        "read": pair.read._asdict(),
        "written": pair.written._asdict(),
        "layers": layers,
        "heads": heads,
        "weights": {kind: _packed(x) for kind, x in pair.weights.items()},
    }


def _packed(weights_NHLM: np.ndarray) -> str:
    """Base64 of little-endian uint16; only what is exactly 0 becomes 0."""
    whole = np.rint(np.float64(weights_NHLM) * FULL)
    whole = np.where(weights_NHLM > 0, np.clip(whole, 1, FULL), 0)
    return base64.b64encode(whole.astype("<u2").tobytes()).decode("ascii")
