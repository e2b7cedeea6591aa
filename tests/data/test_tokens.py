"""Tokens: what goes in comes out, filters count, caches heal."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ablation import config
from transformer_ablation.data import ragged, tokens
from transformer_ablation.data.corpus import CorpusError
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.data.tokens import check_ids, filter_training, prepare
from transformer_ablation.vocabulary import (
    BOS,
    EOS,
    PAD,
    Vocabulary,
    VocabularyError,
)

ENGLISH = ["A dog runs", "Two dogs run", "", "The cats sleep a very long time here"]
GERMAN = ["Ein Hund läuft", "Zwei Hunde laufen", "Leer", "Katzen"]
VALIDATION = (["One dog", ""], ["Ein Hund", ""])
SIZE = 300
SEQUENCES = st.lists(st.lists(st.integers(3, 99), max_size=6), max_size=8)


class Lines(list):
    """Pairs as a plain list."""


@pytest.fixture
def data(base_config, tmp_path):
    """DataConfig of a Multi30k folder with a handful of sentences."""
    folder = tmp_path / "text"
    folder.mkdir()
    for name, (english, german) in {
        "train": (ENGLISH, GERMAN),
        "val": VALIDATION,
    }.items():
        for language, lines in (("en", english), ("de", german)):
            text = "".join(line + "\n" for line in lines)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    changes = {
        "corpus": "multi30k",
        "directory": str(folder),
        "test_split": None,
        "vocabulary_size": SIZE,
        "max_train_length": 20,
    }
    fields = {f"data.{name}": value for name, value in changes.items()}
    return config.replace(base_config, fields).data


@given(SEQUENCES)
def test_ragged_holds_its_sequences(sequences):
    held = Ragged.of(sequences)
    assert [list(held[i]) for i in range(len(held))] == sequences
    assert list(held.lengths) == [len(x) for x in sequences]
    assert held.ids.dtype == np.int32 and held.offsets.dtype == np.int64


@given(SEQUENCES, SEQUENCES, st.data())
def test_joined_and_taken_as_lists(first, second, drawn):
    both = Ragged.joined([Ragged.of(first), Ragged.of(second)])
    expected = first + second
    places = st.lists(st.integers(0, len(expected) - 1)) if expected else st.just([])
    indices = drawn.draw(places)
    taken = both.take(np.array(indices, np.int64))
    assert [list(taken[i]) for i in range(len(taken))] == [expected[i] for i in indices]


def test_ragged_refuses_what_is_not_there():
    held = Ragged.of([[5], [6, 7]])
    assert list(held[-1]) == [6, 7]
    for i in (2, -3):
        with pytest.raises(IndexError):
            held[i]


def test_padded_rows_by_hand():
    held = Ragged.of([[5], [], [6, 7, 8]])
    padded = held.padded(np.array([2, 0]), rows=3, length=4)
    expected = [[6, 7, 8, PAD], [5, PAD, PAD, PAD], [PAD] * 4]
    assert padded.dtype == np.int32
    assert padded.tolist() == expected
    for rows, length in ((1, 4), (3, 2)):
        with pytest.raises(ValueError, match="do not fit"):
            held.padded(np.array([2, 0]), rows, length)


def test_tokenized_pairs_end_in_eos_and_decode_to_the_text():
    vocabulary = Vocabulary.train(ENGLISH + GERMAN, SIZE)
    split = tokens.tokenize(Lines(zip(ENGLISH, GERMAN, strict=True)), vocabulary)
    for side, lines in ((split.source, ENGLISH), (split.target, GERMAN)):
        assert [vocabulary.decode(side[i]) for i in range(4)] == lines
        for i in range(4):
            assert side[i][-1] == EOS
            assert not {PAD, BOS, EOS} & set(side[i][:-1].tolist())
    assert split.source[2].tolist() == [EOS]


def test_many_pairs_keep_their_order_over_chunks(monkeypatch):
    monkeypatch.setattr(tokens, "_CHUNK_PAIRS", 3)
    vocabulary = Vocabulary.train(ENGLISH + GERMAN, SIZE)
    pairs = [(f"dog {i}", f"Hund {-i}") for i in range(10)]
    split = tokens.tokenize(pairs, vocabulary)
    decoded = [
        (vocabulary.decode(split.source[i]), vocabulary.decode(split.target[i]))
        for i in range(len(split))
    ]
    assert decoded == pairs


def test_training_filter_counts_each_reason():
    # Pieces without EOS, source/target: 1/3, 0/1, 2/0, 4/1, 3/3, 0/9
    lengths = [(1, 3), (0, 1), (2, 0), (4, 1), (3, 3), (0, 9)]
    sides = [[[7] * n + [EOS] for n in side] for side in zip(*lengths, strict=True)]
    split = TokenizedSplit(Ragged.of(sides[0]), Ragged.of(sides[1]))
    kept, counts = filter_training(split, max_train_length=3)
    assert counts == {"read": 6, "kept": 2, "empty_side": 3, "too_long": 1}
    assert kept.source.lengths.tolist() == [2, 4]
    assert kept.target.lengths.tolist() == [4, 4]


@pytest.mark.parametrize("wrong", [-1, 10])
@pytest.mark.parametrize("side", ["source", "target"])
def test_id_outside_the_vocabulary_is_refused(side, wrong):
    sides = {"source": [[9, EOS]], "target": [[0, EOS]]}
    good = TokenizedSplit(*(Ragged.of(x) for x in sides.values()))
    assert check_ids(good, 10) is good
    sides[side] = [[wrong, EOS]]
    with pytest.raises(CorpusError, match=rf"{side} id {wrong} is not in \[0, 10\)"):
        check_ids(TokenizedSplit(*(Ragged.of(x) for x in sides.values())), 10)


def as_lists(split):
    return [
        [side[i].tolist() for i in range(len(side))]
        for side in (split.source, split.target)
    ]


def test_prepared_data_filter_training_and_keep_every_scored_pair(data, tmp_path):
    prepared = prepare(data, tmp_path)
    assert prepared.filters["read"] == 4
    assert prepared.filters["empty_side"] == 1
    assert len(prepared.train) == prepared.filters["kept"]
    assert len(prepared.validation) == 2
    assert prepared.validation.source[1].tolist() == [EOS]
    assert prepared.test is None
    assert prepared.vocabulary.size == SIZE


def test_vocabulary_is_learned_from_both_sides_of_train_alone(data, tmp_path):
    prepared = prepare(data, tmp_path)
    interleaved = [x for pair in zip(GERMAN, ENGLISH, strict=True) for x in pair]
    expected = Vocabulary.train(interleaved, SIZE).content_hash
    assert prepared.vocabulary.content_hash == expected
    other = dataclasses.replace(data, source_language="de", target_language="en")
    swapped = prepare(other, tmp_path)
    assert swapped.vocabulary.content_hash == expected
    assert as_lists(swapped.validation) == as_lists(prepared.validation)[::-1]


def test_second_preparation_reads_only_the_cache(data, tmp_path, monkeypatch):
    first = prepare(data, tmp_path)

    def fail(*_, **__):
        raise AssertionError("made again")

    monkeypatch.setattr(Vocabulary, "train", fail)
    monkeypatch.setattr(tokens, "tokenize", fail)
    monkeypatch.setattr("transformer_ablation.data.corpus.Pairs.read", fail)
    second = prepare(data, tmp_path)
    assert second.filters == first.filters
    assert as_lists(second.train) == as_lists(first.train)
    assert isinstance(second.train.source.ids, np.memmap)
    # Another limit or size is other data, and not in the cache.
    for changes in ({"max_train_length": 19}, {"vocabulary_size": SIZE + 1}):
        with pytest.raises(AssertionError, match="made again"):
            prepare(dataclasses.replace(data, **changes), tmp_path)


@pytest.mark.parametrize("pattern", ["source_ids.npy", "*.model", "target_offsets.npy"])
def test_damaged_cache_is_made_again(data, tmp_path, pattern):
    first = prepare(data, tmp_path)
    expected = as_lists(first.train), as_lists(first.validation)
    paths = list((tmp_path / "format1").rglob(pattern))
    assert paths
    for path in paths:
        content = bytearray(path.read_bytes())
        content[-4] ^= 1
        path.unlink()  # first holds the old file open
        path.write_bytes(content)
    second = prepare(data, tmp_path)
    assert (as_lists(second.train), as_lists(second.validation)) == expected
    assert second.vocabulary.content_hash == first.vocabulary.content_hash


def test_no_pair_left_to_train_on_is_refused(data, tmp_path):
    with pytest.raises(CorpusError, match="raise data.max_train_length"):
        prepare(dataclasses.replace(data, max_train_length=1), tmp_path)


def test_vocabulary_that_does_not_fit_names_the_field(data, tmp_path):
    with pytest.raises(VocabularyError, match="^data.vocabulary_size: .* 5000 pieces"):
        prepare(dataclasses.replace(data, vocabulary_size=5000), tmp_path)


def test_split_without_pairs_survives_the_cache(tmp_path):
    none = TokenizedSplit(Ragged.of([]), Ragged.of([]))
    ragged.save_split(none, tmp_path)
    assert len(ragged.load_split(tmp_path)) == 0
