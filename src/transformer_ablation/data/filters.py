"""Training pairs that the config's filters leave out; all are off by default.

They look at text alone, before a vocabulary exists, and never leave out a pair of
validation or test. ``tokens.filter_training`` takes out long pairs afterwards.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transformer_ablation.config import DataConfig
from transformer_ablation.data import storage
from transformer_ablation.data.corpus import Corpus, CorpusError, Pairs
from transformer_ablation.data.lines import (
    KINDS,
    Joined,
    among,
    fingerprints,
    pair_fingerprints,
    repeats,
)

# Reasons in the order in which they are asked, and the field of each.
FIELDS = {
    "duplicate": "filter_duplicates",
    "overlap": "filter_overlap",
    "copy": "filter_copies",
    "length_ratio": "filter_max_length_ratio",
    "too_many_words": "filter_max_words",
    "characters": "filter_characters",
}
# What a count says of training pairs, in the order in which they are left out.
REASONS = {
    "duplicate": "equal to an earlier one",
    "overlap": "with a line of validation or test",
    "copy": "with equal sides",
    "length_ratio": "out of proportion",
    "too_many_words": "of too many words",
    "characters": "with control or replacement characters",
    "empty_side": "with an empty side",
    "too_long": "too long",
}
_RULES = 1  # raised whenever a filter takes out other pairs
_CHARACTERS = (KINDS["control"], KINDS["replacement"])

Chunk = Sequence[tuple[str, str]]
# Hashes of lines, by side: those of validation and test.
HeldOut = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class TrainingPairs:
    """What is trained on.

    Attributes:
      pairs: those that every filter leaves, in the order of the corpus.
      counts: pairs read, and by reason those left out; empty where all are kept
        because no filter is on and no side is empty.
      key: says in JSON which filters on which text chose them; None where all are.
    """

    pairs: Pairs
    counts: dict[str, int]
    key: Any


def training_pairs(corpus: Corpus, data: DataConfig, cache: Path) -> TrainingPairs:
    """The training split through the filters of a config, without empty sides.

    Which pairs they leave is kept in ``cache``.

    Raises:
      CorpusError: if they leave none.
    """
    pairs = corpus.splits[data.train_split]
    if not active(data) and not _has_empty_sides(corpus, data.train_split):
        return TrainingPairs(pairs, {}, None)
    scored = [x for x in (data.validation_split, data.test_split) if x is not None]
    scored = scored if data.filter_overlap else []
    texts = [corpus.digests(split) for split in (data.train_split, *scored)]
    key = [_RULES, active(data), texts]

    def fill(folder: Path) -> dict:
        held_out = _held_out([corpus.splits[split] for split in scored])
        mask, counts = select(pairs.chunks(), data, held_out)
        np.save(folder / "kept.npy", np.flatnonzero(mask), allow_pickle=False)
        return counts

    folder = storage.place(cache, "filtered", storage.content_key(key)[:32])
    found = storage.read(folder)
    counts = storage.publish(folder, fill, digests=True) if found is None else found
    kept = np.load(folder / "kept.npy", allow_pickle=False)
    if len(kept) == 0:
        fields = ", ".join(f"data.{field}" for field in active(data))
        remedy = f"turn off or relax {fields}"
        if counts["empty_side"] == counts["read"]:
            remedy = "line n of one side must translate line n of the other"
        raise CorpusError(
            f"split {data.train_split}: no pair is left to train on "
            f"({as_text(counts)}); {remedy}"
        )
    return TrainingPairs(pairs.at(kept), counts, key)


def as_text(counts: Mapping[str, int]) -> str:
    """Training pairs read, left out by reason in the order applied, and kept."""
    named = {"read": "read", **REASONS, "kept": "kept"}
    return ", ".join(f"{counts[x]:,} {named[x]}" for x in named if x in counts)


def _has_empty_sides(corpus: Corpus, split: str) -> bool:
    """Whether the report of the corpus found pairs with an empty side."""
    found = corpus.manifest["splits"][split]["checks"]
    languages = corpus.source_language, corpus.target_language
    return any(found[language]["empty"]["count"] for language in languages)


def active(data: DataConfig) -> dict[str, Any]:
    """The fields of filters that are on, and their values."""
    values = {field: getattr(data, field) for field in FIELDS.values()}
    return {
        field: value for field, value in values.items() if value not in (False, None)
    }


def select(
    chunks: Iterable[Chunk], data: DataConfig, held_out: HeldOut
) -> tuple[np.ndarray, dict[str, int]]:
    """A mask of the pairs to keep, and counts: read, and by reason those left out.

    A pair with an empty side counts for that, another for the first filter that
    applies, in the order of ``FIELDS``. Filters that are off have no count.
    """
    prints, filled, parts = [], [], []
    for chunk in chunks:
        filled.append(np.array([x != "" and y != "" for x, y in chunk]))
        parts.append(_masks(chunk, data, held_out))
        if data.filter_duplicates:
            prints.append(pair_fingerprints(*map(fingerprints, _sides(chunk))))
    keep = np.concatenate(filled)
    counts = {"read": len(keep), "empty_side": int((~keep).sum())}
    for reason, field in FIELDS.items():
        if field not in active(data):
            continue
        if reason == "duplicate":
            out = repeats(np.concatenate(prints)) & keep
        else:
            out = np.concatenate([masks[reason] for masks in parts]) & keep
        counts[reason] = int(out.sum())
        keep &= ~out
    return keep, counts


def _masks(chunk: Chunk, data: DataConfig, held_out: HeldOut) -> dict[str, np.ndarray]:
    """Masks of a chunk's pairs by reason, for the filters that are on.

    Not for duplicates, which may be of another chunk.
    """
    masks = {}
    if data.filter_overlap:
        known = zip(_sides(chunk), held_out, strict=True)
        first, second = (among(fingerprints(lines), prints) for lines, prints in known)
        masks["overlap"] = first | second
    if data.filter_copies:
        masks["copy"] = np.array([x == y for x, y in chunk])
    if data.filter_max_length_ratio is not None or data.filter_max_words is not None:
        words = np.array([[len(x.split()), len(y.split())] for x, y in chunk])
        longer, shorter = words.max(axis=1), words.min(axis=1)
        if data.filter_max_length_ratio is not None:
            masks["length_ratio"] = longer > data.filter_max_length_ratio * shorter
        if data.filter_max_words is not None:
            masks["too_many_words"] = longer > data.filter_max_words
    if data.filter_characters:
        masks["characters"] = np.zeros(len(chunk), bool)
        for lines in _sides(chunk):
            joined = Joined(lines)
            for find in _CHARACTERS:
                masks["characters"][joined.of_kind(find)] = True
    return masks


def _sides(chunk: Chunk) -> tuple[Sequence[str], Sequence[str]]:
    first, second = zip(*chunk, strict=True)
    return first, second


def _held_out(splits: Sequence[Pairs]) -> HeldOut:
    """Hashes of the lines of some splits, by side, without repeats."""
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for pairs in splits:
        for chunk in pairs.chunks():
            for side, lines in zip(sides, zip(*chunk, strict=True), strict=True):
                side.append(fingerprints(lines))
    none: np.ndarray = np.zeros(0, np.uint64)
    first, second = (np.unique(np.concatenate([none, *side])) for side in sides)
    return first, second
