"""From sentence pairs to ids: vocabulary, tokenised splits, and their caches."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from transformer_ablation.config import DataConfig
from transformer_ablation.data import storage
from transformer_ablation.data.corpus import Corpus, CorpusError, Pairs, load_corpus
from transformer_ablation.data.filters import TrainingPairs, training_pairs
from transformer_ablation.data.ragged import (
    Ragged,
    TokenizedSplit,
    load_split,
    save_split,
)
from transformer_ablation.vocabulary import EOS, Vocabulary, VocabularyError

__all__ = [
    "Prepared",
    "Ragged",
    "TokenizedSplit",
    "check_ids",
    "filter_training",
    "prepare",
    "tokenize",
]

_CHUNK_PAIRS = 16_384


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Everything a run needs of its data.

    Attributes:
      train: without the pairs that the config's filters and ``filter_training``
        take out.
      validation, test: every pair of the split; ``test`` is None without one.
      filters: counts of training pairs: read, kept, and by reason the rest; a
        filter that is off has no count.
    """

    corpus: Corpus
    vocabulary: Vocabulary
    train: TokenizedSplit
    validation: TokenizedSplit
    test: TokenizedSplit | None
    filters: dict[str, int]


def tokenize(pairs: Pairs, vocabulary: Vocabulary) -> TokenizedSplit:
    """Ids of every pair, each side ending in EOS."""
    chunks: tuple[list[Ragged], list[Ragged]] = ([], [])
    iterator = iter(pairs)
    while chunk := list(itertools.islice(iterator, _CHUNK_PAIRS)):
        for side, texts in zip(chunks, zip(*chunk, strict=True), strict=True):
            encoded = vocabulary.encode_all(list(texts))
            side.append(Ragged.of([*ids, EOS] for ids in encoded))
    return TokenizedSplit(Ragged.joined(chunks[0]), Ragged.joined(chunks[1]))


def filter_training(
    tokens: TokenizedSplit, max_train_length: int
) -> tuple[TokenizedSplit, dict[str, int]]:
    """Pairs with text on both sides and at most so many pieces on each.

    Also counts: read, kept, empty_side, too_long (a pair that is both is empty).
    """
    lengths = np.stack([tokens.source.lengths, tokens.target.lengths]) - 1
    empty = (lengths == 0).any(axis=0)
    too_long = (lengths > max_train_length).any(axis=0) & ~empty
    keep = np.flatnonzero(~empty & ~too_long)
    counts = {
        "read": len(tokens),
        "kept": len(keep),
        "empty_side": int(empty.sum()),
        "too_long": int(too_long.sum()),
    }
    return tokens.take(keep), counts


def check_ids(tokens: TokenizedSplit, size: int) -> TokenizedSplit:
    """The tokens themselves.

    Raises:
      CorpusError: if an id is not in [0, size): JAX would clamp it in silence.
    """
    for side, ragged in (("source", tokens.source), ("target", tokens.target)):
        if len(ragged.ids) == 0:
            continue
        low, high = int(ragged.ids.min()), int(ragged.ids.max())
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise CorpusError(f"{side} id {wrong} is not in [0, {size})")
    return tokens


def prepare(data: DataConfig, cache: Path) -> Prepared:
    """Corpus, vocabulary and tokens of a config; quick after the first call.

    Raises:
      CorpusError, DownloadError: as ``load_corpus``, or if no pair is left to
        train on.
      VocabularyError: if the training text does not give a vocabulary of the size.
    """
    corpus = load_corpus(data, cache)
    chosen = training_pairs(corpus, data, cache)
    vocabulary = _vocabulary(corpus, chosen, data, cache)
    train, counts = _tokens(corpus, data.train_split, vocabulary, cache, data, chosen)
    filters = {**counts, **chosen.counts}  # all pairs read, also those left out
    if len(train) == 0:
        raise CorpusError(
            f"split {data.train_split}: no pair is left to train on ({filters}); "
            "raise data.max_train_length"
        )
    validation, _ = _tokens(corpus, data.validation_split, vocabulary, cache)
    test = None
    if data.test_split is not None:
        test, _ = _tokens(corpus, data.test_split, vocabulary, cache)
    return Prepared(corpus, vocabulary, train, validation, test, filters)


def _vocabulary(
    corpus: Corpus, chosen: TrainingPairs, data: DataConfig, cache: Path
) -> Vocabulary:
    """Trained on both sides of the training pairs, or read from the cache."""
    parts = [_texts(corpus, data.train_split), data.vocabulary_size]
    key = storage.content_key(parts if chosen.key is None else [*parts, chosen.key])
    path = storage.place(cache, "vocabularies", f"{key[:32]}.model")
    try:
        return Vocabulary.load(path)
    except VocabularyError:
        pass  # missing or damaged: made anew
    lines = _training_lines(corpus, chosen.pairs)
    try:
        vocabulary = Vocabulary.train(lines, data.vocabulary_size)
    except VocabularyError as error:
        raise VocabularyError(f"data.vocabulary_size: {error}") from error
    vocabulary.save(path)
    return vocabulary


def _training_lines(corpus: Corpus, pairs: Pairs) -> Iterator[str]:
    """Both sides, in an order that does not depend on the direction."""
    swap = corpus.source_language > corpus.target_language
    for pair in pairs:
        yield from reversed(pair) if swap else pair


def _tokens(
    corpus: Corpus,
    split: str,
    vocabulary: Vocabulary,
    cache: Path,
    training: DataConfig | None = None,
    chosen: TrainingPairs | None = None,
) -> tuple[TokenizedSplit, dict[str, int]]:
    """A split's tokens from the cache; for ``training`` the ``chosen``, filtered."""

    def fill(folder: Path) -> dict:
        pairs = corpus.splits[split] if chosen is None else chosen.pairs
        tokens = tokenize(pairs, vocabulary)
        counts: dict[str, int] = {}
        if training is not None:
            tokens, counts = filter_training(tokens, training.max_train_length)
        save_split(tokens, folder)
        return counts

    limit = None if training is None else training.max_train_length
    direction = [corpus.source_language, corpus.target_language]
    key = [_texts(corpus, split), direction, vocabulary.content_hash, limit]
    if chosen is not None and chosen.key is not None:
        key.append(chosen.key)
    folder = storage.place(cache, "tokens", storage.content_key(key)[:32])
    counts = _stored(folder, fill)
    return check_ids(load_split(folder), vocabulary.size), counts


def _stored(folder: Path, fill: Callable[[Path], dict]) -> dict:
    facts = storage.read(folder)
    return storage.publish(folder, fill, digests=True) if facts is None else facts


def _texts(corpus: Corpus, split: str) -> list:
    """What identifies the text of a split, whatever the direction."""
    facts = corpus.manifest["splits"][split]
    languages = sorted((corpus.source_language, corpus.target_language))
    return [[language, facts[language]["sha256"]] for language in languages]
