"""What prepared data hold, as numbers for a report."""

from collections.abc import Mapping

from transformer_ablation.config import Config
from transformer_ablation.data.batches import train_batches
from transformer_ablation.data.corpus import manifest_hash
from transformer_ablation.data.ragged import TokenizedSplit
from transformer_ablation.data.tokens import Prepared

_EXAMPLE_CHARACTERS = 100  # of a side, at most


def example(prepared: Prepared) -> dict[str, str]:
    """The first pair that is trained on, by language, source first.

    Read back from its ids: it shows what the model is given.
    """
    corpus, train = prepared.corpus, prepared.train
    sides = {
        corpus.source_language: train.source[0],
        corpus.target_language: train.target[0],
    }
    return {name: prepared.vocabulary.decode(ids) for name, ids in sides.items()}


def example_text(prepared: Prepared) -> str:
    """Corpus, direction and ``example``, on three lines."""
    corpus = prepared.corpus
    head = (
        f"{corpus.manifest['corpus']}, {corpus.source_language} to "
        f"{corpus.target_language}, for example:"
    )
    return "\n".join([head, *example_lines(example(prepared))])


def example_lines(pair: Mapping[str, str]) -> list[str]:
    """A pair by language for a terminal, each side on one line."""
    return [f"  {language}: {_shown(text)}" for language, text in pair.items()]


def _shown(text: str) -> str:
    """The beginning of a text, with what a terminal would obey as its code."""
    short = text[:_EXAMPLE_CHARACTERS]
    end = "" if short == text else " ..."
    shown = (c if c.isprintable() else ascii(c)[1:-1] for c in short)
    return "".join(shown) + end


def summarize(prepared: Prepared, config: Config) -> dict:
    """Counts, hashes, shapes and padding, ready for JSON."""
    data = config.data
    batches = train_batches(config, prepared.train, prepared.plan)
    splits = {
        data.train_split: prepared.train,
        data.validation_split: prepared.validation,
        data.test_split: prepared.test,
    }
    manifest = prepared.corpus.manifest
    return {
        "manifest": manifest,
        "manifest_hash": manifest_hash(manifest),
        "example": example(prepared),
        "notes": manifest["unusual"],
        "vocabulary": {
            "size": prepared.vocabulary.size,
            "hash": prepared.vocabulary.content_hash,
        },
        "filters": prepared.filters,
        "tokens": {name: _counts(split) for name, split in splits.items() if split},
        "updates_per_epoch": batches.updates_per_epoch,
        "padding": batches.padding(),
        "shapes": [shape._asdict() for shape in batches.shapes],
    }


def _counts(split: TokenizedSplit) -> dict:
    """Pairs, and tokens a side, the ends of sentences among them."""
    sides = {"source": split.source, "target": split.target}
    longest = {side: int(ragged.lengths.max()) for side, ragged in sides.items()}
    tokens = {side: ragged.token_count for side, ragged in sides.items()}
    return {"pairs": len(split), **tokens, "longest": longest}
