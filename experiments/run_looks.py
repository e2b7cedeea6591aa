"""What TensorBoard is shown of a model at every evaluation besides numbers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from transformer_ablation import parallel
from transformer_ablation.evaluate import fixed_sentences
from transformer_ablation.model.positions import position_tables
from transformer_ablation.report import attention_sheets, sample_text, samples
from transformer_ablation.report.metrics import MetricWriter

# Longer sentences would make a slow program of a few, or a sheet that nobody reads.
MOST_PIECES, MOST_SHOWN_PIECES = 128, 24
SHOWN = 2

# Adds to the board what is to be seen of parameters at an update.
Look = Callable[[int, Any], None]


def looks(parts: Any, writer: MetricWriter) -> Look:
    """All that the config asks for; nothing is compiled before the first call."""
    asked = [
        *([_samples(parts, writer)] if parts.config.train.sample_sentences else []),
        *([_attention(parts, writer)] if parts.config.train.attention_images else []),
    ]

    def look(step: int, state: Any) -> None:
        if asked:
            params = parallel.on_one_device(state.params)
            for each in asked:
                each(step, params)

    return look


def _chosen(prepared: Any, count: int, longest: int) -> np.ndarray:
    """Numbers of validation sentences, at equal distances among the short ones."""
    found = fixed_sentences.short_enough(prepared.validation, longest)
    return found[samples.places(len(found), count)]


def _samples(parts: Any, writer: MetricWriter) -> Look:
    """The sentences with their references and greedy translations, as a table."""
    config, prepared = parts.config, parts.prepared
    numbers = _chosen(prepared, config.train.sample_sentences, MOST_PIECES)
    every = list(prepared.corpus.splits[config.data.validation_split])
    pairs = [every[number] for number in numbers]
    given = config.decode, prepared.validation.source.take(numbers)
    translate = fixed_sentences.make_greedy(parts.model, *given)

    def look(step: int, params: Any) -> None:
        texts = [prepared.vocabulary.decode(t.ids) for t in translate(params)]
        found = [
            # As where it is scored: the translation of a blank line is blank.
            samples.Sample(int(number) + 1, *pair, text if pair[0].strip() else "")
            for number, pair, text in zip(numbers, pairs, texts, strict=True)
        ]
        writer.write_text("samples/validation", sample_text.sample_table(found), step)

    return look


def _attention(parts: Any, writer: MetricWriter) -> Look:
    """All heads' attention in two sentences, its entropy, and the position tables."""
    prepared = parts.prepared
    numbers = _chosen(prepared, SHOWN, MOST_SHOWN_PIECES)
    split = prepared.validation
    chosen = type(split)(split.source.take(numbers), split.target.take(numbers))
    record = fixed_sentences.make_attention(parts.model, chosen)
    names = [
        [
            prepared.vocabulary.pieces(side[i].tolist())
            for side in (chosen.source, chosen.target)
        ]
        for i in range(len(numbers))
    ]
    tables: dict[str, bytes] = {}

    def look(step: int, params: Any) -> None:
        found = record(params)
        for number, each, (source, target) in zip(numbers, found, names, strict=True):
            shifted = ["<s>", *target[:-1]]
            labels = {
                "encoder": (source, source),
                "decoder": (shifted, shifted),
                "cross": (shifted, source),
            }
            for kind, weights in each.known().items():
                title = f"{kind}, validation line {number + 1}, update {step}"
                png = attention_sheets.sheet(weights, *labels[kind], title)
                writer.write_image(f"attention_{kind}/line_{number + 1}", png, step)
        for tag, values in _entropies(found):
            writer.write_histogram(tag, values, step)
        most = attention_sheets.MOST_POSITIONS
        for name, table in position_tables(parts.config.model, params, most).items():
            png = attention_sheets.position_pictures(table, name)
            if tables.get(name) != png:  # sinusoids never change
                writer.write_image(f"positions/{name}", png, step)
            tables[name] = png

    return look


def _entropies(
    found: list[fixed_sentences.Attention],
) -> Iterator[tuple[str, np.ndarray]]:
    """Tag and entropies of all queries, a head."""
    for kind in found[0].known():
        parts = [fixed_sentences.entropies(each.known()[kind]) for each in found]
        joined_NHL = np.concatenate(parts, axis=-1)
        for layer, head in np.ndindex(joined_NHL.shape[:2]):
            tag = f"entropy_{kind}_layer_{layer + 1}/head_{head + 1}"
            yield tag, joined_NHL[layer, head]
