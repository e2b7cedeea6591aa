"""Filters of training pairs: what each takes out, in which order, and from where."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ablation import config
from transformer_ablation.data import filters, tokens
from transformer_ablation.data.corpus import CorpusError, load_corpus
from transformer_ablation.data.filters import active, select
from transformer_ablation.data.lines import fingerprints
from transformer_ablation.data.ragged import load_split
from transformer_ablation.vocabulary import Vocabulary

NOTHING = np.zeros(0, np.uint64)
SIZE = 300
ALL = {
    "filter_duplicates": True,
    "filter_overlap": True,
    "filter_copies": True,
    "filter_max_length_ratio": 2.0,
    "filter_max_words": 5,
    "filter_characters": True,
}


@pytest.fixture
def data_of(base_config):
    """DataConfig with fields of data changed."""

    def make(**changes):
        fields = {f"data.{name}": value for name, value in changes.items()}
        return config.replace(base_config, fields).data

    return make


def held_out(pairs):
    first, second = zip(*pairs, strict=True)
    return np.unique(fingerprints(first)), np.unique(fingerprints(second))


def kept(pairs, data, scored=None, chunk=2):
    """Lines (from 1) that are left, and the counts."""
    chunks = [pairs[i : i + chunk] for i in range(0, len(pairs), chunk)]
    known = held_out(scored) if scored else (NOTHING, NOTHING)
    mask, counts = select(chunks, data, known)
    return (np.flatnonzero(mask) + 1).tolist(), counts


def test_all_filters_are_off_by_default(base_config):
    assert active(base_config.data) == {}
    assert set(filters.FIELDS.values()) == set(ALL)
    named = {f.name for f in dataclasses.fields(base_config.data)}
    assert {name for name in named if name.startswith("filter_")} == set(ALL)


CASES = {
    "filter_duplicates": (
        True,
        [
            ("a", "b"),
            ("a", "c"),
            ("a", "b"),
            ("b", "a"),
            ("a", "b"),
            ("", ""),
            ("", ""),
        ],
        [1, 2, 4],
        {"empty_side": 2, "duplicate": 2},
    ),
    # Held out: ("s", "t") and ("", "u").
    "filter_overlap": (
        True,
        [("s", "x"), ("x", "t"), ("t", "s"), ("", "t"), ("x", "u"), ("x", "y")],
        [3, 6],
        {"empty_side": 1, "overlap": 3},
    ),
    "filter_copies": (
        True,
        [("a", "a"), ("a", "A"), ("", ""), ("b ", "b")],
        [2, 4],
        {"empty_side": 1, "copy": 1},
    ),
    "filter_max_length_ratio": (
        1.5,
        [("a b c", "a b"), ("a b c d", "a b"), ("a", "b b"), (" ", "a"), ("", "a b")],
        [1],
        {"empty_side": 1, "length_ratio": 3},
    ),
    "filter_max_words": (
        2,
        [("a b", "a"), ("a", "a b c"), ("a b c", "a"), ("a\u2028b\u00a0c", "")],
        [1],
        {"empty_side": 1, "too_many_words": 2},
    ),
    "filter_characters": (
        True,
        [
            ("a\0", "b"),
            ("a", "\ufffd"),
            ("tab\t\r", "\x85\u2028\u2029"),
            ("\x7f", "\x80"),
            ("", "\x01"),
        ],
        [3],
        {"empty_side": 1, "characters": 3},
    ),
}


@pytest.mark.parametrize("field", CASES)
@pytest.mark.parametrize("chunk", [1, 2, 99])
def test_filter_by_hand(data_of, field, chunk):
    value, pairs, left, counts = CASES[field]
    scored = [("s", "t"), ("", "u")]
    found = kept(pairs, data_of(**{field: value}), scored, chunk)
    assert found == (left, {"read": len(pairs), **counts})


def test_pair_counts_for_the_first_reason_alone(data_of):
    pairs = [
        ("s", "s"),  # 1: overlap, a copy too
        ("s", "s"),  # 2: duplicate, overlap and copy too
        ("a a a a a a\0", "a a a a a a\0"),  # 3: copy, too many words, characters
        ("a b c d e f\0", "a"),  # 4: out of proportion, all below too
        ("a b c d e f", "a b c d e\0"),  # 5: too many words, characters too
        ("a\0", "b"),  # 6: characters
        ("a", "b"),  # 7
        ("", "b\0"),  # 8: an empty side, characters too
    ]
    left, counts = kept(pairs, data_of(**ALL), [("s", "t")])
    assert left == [7]
    assert list(counts.items()) == [
        ("read", 8),
        ("empty_side", 1),
        ("duplicate", 1),
        ("overlap", 1),
        ("copy", 1),
        ("length_ratio", 1),
        ("too_many_words", 1),
        ("characters", 1),
    ]


PAIR = st.tuples(*[st.sampled_from(["", " ", "a", "b", "a b", "a b c", "\0"])] * 2)


@given(st.lists(PAIR, min_size=1, max_size=20), st.lists(PAIR, min_size=1, max_size=3))
def test_pairs_left_are_those_that_plain_python_leaves(pairs, scored):
    from configs import base

    whole = config.from_mapping(base.get_config())
    fields = {f"data.{name}": value for name, value in ALL.items()}
    data = config.replace(whole, fields).data

    def is_out(i):
        source, target = pairs[i]
        if not source or not target:
            return True
        counts = sorted((len(source.split()), len(target.split())))
        return (
            (source, target) in pairs[:i]
            or source in [x for x, _ in scored]
            or target in [y for _, y in scored]
            or source == target
            or counts[1] > 2 * counts[0]
            or "\0" in source + target
        )

    expected = [i + 1 for i in range(len(pairs)) if not is_out(i)]
    left, counts = kept(pairs, data, scored, chunk=3)
    assert left == expected
    assert counts["read"] - sum(list(counts.values())[1:]) == len(expected)


ENGLISH = ["a dog runs", "a cat sleeps", "a dog runs", "", "one dog", "same"]
ENGLISH += ["a\0bcdefghijklmnopqrstuvwxyz"]
GERMAN = ["ein Hund läuft", "Katze", "ein Hund läuft", "leer", "x", "same", "a b"]


@pytest.fixture
def folder(tmp_path):
    """Multi30k's files with a handful of sentences."""
    text = {"train": (ENGLISH, GERMAN), "val": (["one dog", "same"], ["ein", "same"])}
    for name, sides in text.items():
        for language, lines in zip(("en", "de"), sides, strict=True):
            content = "".join(line + "\n" for line in lines)
            (tmp_path / f"{name}.{language}").write_text(content, encoding="utf-8")
    return tmp_path


@pytest.fixture
def prepared(data_of, folder):
    """A function that prepares the folder's text with some filters."""

    def make(**changes):
        data = data_of(
            **{
                "corpus": "multi30k",
                "directory": str(folder),
                "test_split": None,
                "vocabulary_size": SIZE,
                "max_train_length": 40,
                **changes,
            }
        )
        return tokens.prepare(data, folder / "cache")

    return make


def texts(split, vocabulary):
    return [
        (vocabulary.decode(split.source[i]), vocabulary.decode(split.target[i]))
        for i in range(len(split))
    ]


def test_filters_that_are_off_leave_tokens_and_counts_as_they_were(prepared, folder):
    found = prepared()
    assert found.filters == {"read": 7, "kept": 6, "empty_side": 1, "too_long": 0}
    pairs = [x for x in zip(ENGLISH, GERMAN, strict=True) if x[0]]
    assert texts(found.train, found.vocabulary) == pairs
    lines = [x for source, target in pairs for x in (target, source)]
    assert found.vocabulary.content_hash == Vocabulary.train(lines, SIZE).content_hash


def test_filter_that_takes_out_nothing_changes_nothing(prepared):
    """An empty side is always left out, and its other side is not learned from."""
    found, off = prepared(filter_max_words=99), prepared()
    assert found.vocabulary.content_hash == off.vocabulary.content_hash
    assert found.filters == {**off.filters, "too_many_words": 0}
    assert texts(found.train, found.vocabulary) == texts(off.train, off.vocabulary)


def test_text_without_empty_sides_is_not_filtered_at_all(prepared, folder):
    (folder / "train.en").write_text("a\n" * 7)
    assert prepared().filters["kept"] == 7
    assert not (folder / "cache" / "format1" / "filtered").exists()


def test_sides_that_never_meet_are_refused(prepared, folder):
    (folder / "train.en").write_text("a\n\n" * 200)
    (folder / "train.de").write_text("\nb\n" * 200)
    with pytest.raises(CorpusError) as caught:
        prepared()
    assert str(caught.value) == (
        "split train: no pair is left to train on (400 read, 400 with an empty side); "
        "line n of one side must translate line n of the other"
    )


def test_filters_choose_training_pairs_vocabulary_and_no_scored_pair(prepared):
    found = prepared(filter_duplicates=True, filter_overlap=True)
    # "one dog" and "same" are lines of validation, which keeps them.
    assert found.filters == {
        "read": 7,
        "duplicate": 1,
        "overlap": 2,
        "kept": 3,
        "empty_side": 1,
        "too_long": 0,
    }
    left = [(ENGLISH[i], GERMAN[i]) for i in (0, 1, 6)]
    assert texts(found.train, found.vocabulary) == left
    assert texts(found.validation, found.vocabulary) == [
        ("one dog", "ein"),
        ("same", "same"),
    ]
    lines = [x for i in (0, 1, 6) for x in (GERMAN[i], ENGLISH[i])]
    assert found.vocabulary.content_hash == Vocabulary.train(lines, SIZE).content_hash


def test_each_setting_has_tokens_of_its_own(prepared):
    counts = [
        len(prepared(**changes).train)
        for changes in (
            {},
            {"filter_duplicates": True},
            {"filter_characters": True},
            {"filter_characters": True, "filter_copies": True},
            {"filter_max_words": 2},
            {"filter_max_words": 3},
            {},
        )
    ]
    assert counts == [6, 5, 5, 4, 3, 6, 6]


def test_both_directions_keep_the_same_pairs(prepared):
    changes = {"filter_overlap": True, "filter_max_length_ratio": 2.0}
    one = prepared(**changes)
    other = prepared(source_language="de", target_language="en", **changes)
    assert one.filters == other.filters
    assert one.vocabulary.content_hash == other.vocabulary.content_hash
    turned = [(b, a) for a, b in texts(other.train, other.vocabulary)]
    assert turned == texts(one.train, one.vocabulary)


def test_second_preparation_reads_no_text(prepared, monkeypatch):
    first = prepared(filter_duplicates=True)

    def fail(*_, **__):
        raise AssertionError("read again")

    monkeypatch.setattr("transformer_ablation.data.corpus.Pairs.read", fail)
    assert prepared(filter_duplicates=True).filters == first.filters


def test_other_validation_text_is_another_overlap(prepared, folder):
    assert prepared(filter_overlap=True).filters["overlap"] == 2
    (folder / "val.de").write_text("ein\nKatze\n")
    assert prepared(filter_overlap=True).filters["overlap"] == 3


def test_filters_that_leave_nothing_are_refused(prepared):
    with pytest.raises(CorpusError) as caught:
        prepared(filter_max_words=1, filter_copies=True, filter_overlap=True)
    assert str(caught.value) == (
        "split train: no pair is left to train on (7 read, 2 with a line of validation "
        "or test, 0 with equal sides, 4 of too many words, 1 with an empty side); turn "
        "off or relax data.filter_overlap, data.filter_copies, data.filter_max_words"
    )


def test_chosen_pairs_are_pairs(data_of, folder, tmp_path):
    data = data_of(corpus="multi30k", directory=str(folder), test_split=None)
    train = load_corpus(data, folder / "cache").splits["train"]
    chosen = train.at(np.array([5, 0, 1]))
    assert len(chosen) == 3
    assert list(chosen) == [(ENGLISH[i], GERMAN[i]) for i in (5, 0, 1)]
    assert chosen.read([2, 1]) == [(ENGLISH[i], GERMAN[i]) for i in (1, 0)]
    assert list(chosen.at(np.array([0]))) == [(ENGLISH[5], GERMAN[5])]
    # Other processes, which share the work of tokenising, open them too.
    vocabulary = Vocabulary.train([*ENGLISH, *GERMAN], 300)
    (tmp_path / "tokens").mkdir()
    tokens.tokenize(chosen, vocabulary, tmp_path / "tokens", processes=2)
    sources = load_split(tmp_path / "tokens").source
    found = [vocabulary.decode(sources[i]) for i in range(3)]
    assert found == [ENGLISH[i] for i in (5, 0, 1)]
