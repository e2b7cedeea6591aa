"""From sentence pairs to ids: vocabulary, tokenised splits, and their caches."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from transformer_ablation.config import DataConfig
from transformer_ablation.data import progress, storage, workers
from transformer_ablation.data.corpus import Corpus, CorpusError, Pairs, load_corpus
from transformer_ablation.data.filters import TrainingPairs, as_text, training_pairs
from transformer_ablation.data.ragged import (
    Ragged,
    SplitWriter,
    TokenizedSplit,
    load_split,
)
from transformer_ablation.data.row_plan import RowPlan, stored_plan
from transformer_ablation.vocabulary import Vocabulary, VocabularyError

__all__ = [
    "Prepared",
    "Ragged",
    "TokenizedSplit",
    "check_ids",
    "filter_training",
    "prepare",
    "tokenize",
]

# Of a larger training split so many pairs are drawn to learn the vocabulary from:
# the trainer holds all its text in memory.
VOCABULARY_PAIRS = 1_000_000
_SAMPLE = 2  # purpose of the random numbers drawn here
_CHUNK_PAIRS = 8192
_SHARED_PAIRS = 100_000  # fewer are tokenised before other processes have started
_LAYOUT = 2  # of the files of a tokenised split


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Everything a run needs of its data.

    Attributes:
      train: without the pairs that the config's filters and ``filter_training``
        take out.
      validation, test: every pair of the split; ``test`` is None without one.
      filters: counts of training pairs: read, kept, and by reason the rest; a
        filter that is off has no count.
      plan: of the packed rows of training; None where pairs have a row each.
    """

    corpus: Corpus
    vocabulary: Vocabulary
    train: TokenizedSplit
    validation: TokenizedSplit
    test: TokenizedSplit | None
    filters: dict[str, int]
    plan: RowPlan | None = None


def tokenize(
    pairs: Pairs,
    vocabulary: Vocabulary,
    folder: Path,
    processes: int | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> None:
    """Writes ids of every pair, each side ending in EOS, for ``load_split``.

    The files do not depend on ``processes``; by default the cores share a large
    split. Memory holds a few thousand pairs a process. ``done`` is told how many
    more pairs are written.

    Raises:
      CorpusError: if an id is not one of the vocabulary's.
      WorkerError: if a process died.
    """
    cores, count = workers.core_count(), len(pairs)
    if processes is None:
        processes = cores if count >= _SHARED_PAIRS else 1
    chunks = [
        range(start, min(start + _CHUNK_PAIRS, count))
        for start in range(0, count, _CHUNK_PAIRS)
    ]
    shared = pairs, vocabulary, cores if processes == 1 else 1
    parts = workers.in_order(_tokenize_chunk, shared, chunks, processes)
    with (
        SplitWriter(folder, id_type(vocabulary.size)) as writer,
        contextlib.closing(parts),
    ):
        for part in parts:
            writer.add(part)
            done(len(part))


def _tokenize_chunk(shared: tuple[Pairs, Vocabulary, int], chunk: range) -> Any:
    """The TokenizedSplit of some pairs."""
    pairs, vocabulary, num_threads = shared
    source, target = (
        Ragged.of_lines(vocabulary.encode_all(texts, num_threads))
        for texts in zip(*pairs.read(chunk), strict=True)
    )
    return check_ids(TokenizedSplit(source, target), vocabulary.size)


def id_type(size: int) -> type:
    """The type in which ids of a vocabulary are stored: two bytes where they do."""
    return np.uint16 if size <= 2**16 else np.int32


def filter_training(
    tokens: TokenizedSplit, max_train_length: int
) -> tuple[TokenizedSplit, dict[str, int]]:
    """Pairs with text on both sides and at most so many pieces on each.

    Also counts: read, kept, empty_side, too_long (a pair that is both is empty).
    """
    lengths = np.stack([tokens.source.lengths, tokens.target.lengths]) - 1
    empty = (lengths == 0).any(axis=0)
    too_long = (lengths > max_train_length).any(axis=0) & ~empty
    keep = np.flatnonzero(~empty & ~too_long)  # the ids stay where they are
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
    everything = _tokens(corpus, data.train_split, vocabulary, cache, chosen)
    train, counts = filter_training(everything, data.max_train_length)
    filters = {**counts, **chosen.counts}  # all pairs read, also those left out
    if len(train) == 0:
        raise CorpusError(
            f"split {data.train_split}: no pair is left to train on "
            f"({as_text(filters)}); raise data.max_train_length"
        )
    validation = _tokens(corpus, data.validation_split, vocabulary, cache)
    test = None
    if data.test_split is not None:
        test = _tokens(corpus, data.test_split, vocabulary, cache)
    plan = None
    if data.packed_length is not None:
        lengths = train.source.lengths, train.target.lengths
        plan = stored_plan(*lengths, data.packed_length, cache)
    return Prepared(corpus, vocabulary, train, validation, test, filters, plan)


def _vocabulary(
    corpus: Corpus, chosen: TrainingPairs, data: DataConfig, cache: Path
) -> Vocabulary:
    """Trained on both sides of the training pairs, or read from the cache."""
    key = [corpus.digests(data.train_split), data.vocabulary_size]
    if chosen.key is not None:
        key.append(chosen.key)
    if len(chosen.pairs) > VOCABULARY_PAIRS:
        key.append(VOCABULARY_PAIRS)
    name = f"{storage.content_key(key)[:32]}.model"
    path = storage.place(cache, "vocabularies", name)
    with contextlib.suppress(VocabularyError):  # missing or damaged: made anew
        return Vocabulary.load(path)
    with storage.writing(path), storage.lock(path):
        with contextlib.suppress(VocabularyError):
            return Vocabulary.load(path)  # another has made it meanwhile
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
    for pair in sampled(pairs, VOCABULARY_PAIRS):
        yield from reversed(pair) if swap else pair


def sampled(pairs: Pairs, most: int) -> Iterator[tuple[str, str]]:
    """All pairs, or ``most`` of them: one drawn from each of as many equal stretches.

    So every part of the corpus has its share, however its parts are ordered. The
    draw depends on the two numbers alone.
    """
    if len(pairs) <= most:
        yield from pairs
        return
    bounds: np.ndarray = np.arange(most + 1) * len(pairs) // most
    seeds = np.random.SeedSequence([_SAMPLE, len(pairs), most])
    draws = np.random.Generator(np.random.PCG64(seeds)).random(most)
    chosen = bounds[:-1] + (draws * np.diff(bounds)).astype(np.int64)
    for start in range(0, most, _CHUNK_PAIRS):
        yield from pairs.read(chosen[start : start + _CHUNK_PAIRS])


def _tokens(
    corpus: Corpus,
    split: str,
    vocabulary: Vocabulary,
    cache: Path,
    chosen: TrainingPairs | None = None,
) -> TokenizedSplit:
    """Every pair of a split from the cache, or every one ``chosen`` to train on."""
    pairs = corpus.splits[split] if chosen is None else chosen.pairs

    def fill(folder: Path) -> dict:
        with progress.bar(f"tokenising {split}", len(pairs)) as done:
            tokenize(pairs, vocabulary, folder, done=done)
        corpus.check_unchanged()  # else the tokens would not be those of the digests
        return {}

    direction = [corpus.source_language, corpus.target_language]
    key = [corpus.digests(split), direction, vocabulary.content_hash, _LAYOUT]
    if chosen is not None and chosen.key is not None:
        key.append(chosen.key)
    folder = storage.place(cache, "tokens", storage.content_key(key)[:32])
    if storage.read(folder) is None:
        storage.publish(folder, fill, digests=True)
    found = load_split(folder)
    if len(found) != len(pairs):
        raise CorpusError(
            f"{folder}: has {len(found)} pairs, but split {split} has {len(pairs)} to "
            "tokenise; remove this folder and run the command again"
        )
    return found
