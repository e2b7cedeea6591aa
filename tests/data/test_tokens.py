"""Tokens: what goes in comes out, filters count, caches heal."""

import contextlib
import dataclasses
import json
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ablation import config
from transformer_ablation.data import tokens
from transformer_ablation.data.corpus import CorpusError, load_corpus
from transformer_ablation.data.ragged import (
    Ragged,
    SplitWriter,
    TokenizedSplit,
    load_split,
)
from transformer_ablation.data.tokens import (
    check_ids,
    filter_training,
    id_type,
    prepare,
    sampled,
    tokenize,
)
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

    def read(self, indices):
        return [self[i] for i in indices]


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
        "max_train_length": 40,
    }
    fields = {f"data.{name}": value for name, value in changes.items()}
    return config.replace(base_config, fields).data


@given(SEQUENCES)
def test_ragged_holds_its_sequences(sequences):
    held = Ragged.of(sequences)
    assert [list(held[i]) for i in range(len(held))] == sequences
    assert list(held.lengths) == [len(x) for x in sequences]
    assert held.token_count == sum(len(x) for x in sequences)
    assert held.ids.dtype == np.int32 and held.lengths.dtype == np.int64


@given(SEQUENCES)
def test_ids_of_lines_end_in_eos(sequences):
    held = Ragged.of_lines(sequences)
    assert [list(held[i]) for i in range(len(held))] == [[*x, EOS] for x in sequences]
    assert held.ids.dtype == np.int32


@given(SEQUENCES, st.data())
def test_taken_as_from_a_list_and_nothing_is_copied(sequences, drawn):
    held = Ragged.of(sequences)
    places = st.lists(st.integers(0, len(sequences) - 1)) if sequences else st.just([])
    indices, again = drawn.draw(places), drawn.draw(st.booleans())
    taken = held.take(np.array(indices, np.int64))
    expected = [sequences[i] for i in indices]
    if again:
        taken, expected = taken.take(np.arange(len(taken))[::-1]), expected[::-1]
    assert [list(taken[i]) for i in range(len(taken))] == expected
    assert taken.token_count == sum(map(len, expected))
    assert taken.ids is held.ids


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


def test_padded_rows_of_taken_sequences_in_any_type():
    held = Ragged.of([[5], [6, 7], [], [8]])
    held = dataclasses.replace(held, ids=held.ids.astype(np.uint16))
    padded = held.take(np.array([3, 1, 2])).padded(np.array([1, 0]), rows=2, length=3)
    assert padded.dtype == np.int32
    assert padded.tolist() == [[6, 7, PAD], [8, PAD, PAD]]
    assert held[1].dtype == np.int32


def write(folder, split, dtype=np.int32, parts=1):
    """A split written in so many parts; the folder."""
    folder.mkdir(exist_ok=True)
    with SplitWriter(folder, dtype) as writer:
        for rows in np.array_split(np.arange(len(split)), parts):
            part = [
                Ragged.of([side[int(i)] for i in rows])
                for side in (split.source, split.target)
            ]
            writer.add(TokenizedSplit(*part))
    return folder


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_files_written_in_parts_are_those_of_numpy(tmp_path, dtype, parts):
    sides = [[5, 6], [], [65535], [7] * 1200], [[8], [9], [10, 11], [3]]
    split = TokenizedSplit(*map(Ragged.of, sides))
    folder = write(tmp_path / "x", split, dtype, parts)
    assert len(list(folder.iterdir())) == 4
    for name, sequences in zip(("source", "target"), sides, strict=True):
        flat = np.array([i for x in sequences for i in x], dtype)
        np.save(tmp_path / "ids.npy", flat)
        np.save(tmp_path / "lengths.npy", np.array(list(map(len, sequences)), np.int32))
        for what in ("ids", "lengths"):
            expected = (tmp_path / f"{what}.npy").read_bytes()
            assert (folder / f"{name}_{what}.npy").read_bytes() == expected
    assert as_lists(load_split(folder)) == [list(x) for x in sides]


def test_loaded_split_holds_eight_bytes_a_sequence(tmp_path):
    """Where each begins and how long it is; the ids stay in the file."""
    sides = [[9] * i for i in range(1, 40)], [[7, 8]] * 39
    held = load_split(write(tmp_path / "x", TokenizedSplit(*map(Ragged.of, sides))))
    for side, expected in zip((held.source, held.target), sides, strict=True):
        assert isinstance(side.ids, np.memmap)
        assert side.starts.nbytes + side.lengths.nbytes == 8 * 39
        order = np.array([38, 0, 17, 5])
        rows = side.padded(order, rows=4, length=39)
        assert [[x for x in row if x != PAD] for row in rows.tolist()] == [
            expected[i] for i in order
        ]


@pytest.mark.parametrize("wrong", [-1, 2**16])
def test_id_that_its_file_cannot_hold_is_not_cut(tmp_path, wrong):
    split = TokenizedSplit(Ragged.of([[5]]), Ragged.of([[wrong]]))
    with pytest.raises(OverflowError, match="target_ids"):
        write(tmp_path, split, np.uint16)


def test_ids_are_stored_in_two_bytes_where_all_fit():
    assert id_type(65_536) is np.uint16  # the largest id is 65,535
    assert id_type(65_537) is np.int32


def tokenized(folder, pairs, vocabulary, processes=1):
    """The split of tokens of pairs."""
    folder.mkdir(exist_ok=True)
    tokenize(pairs, vocabulary, folder, processes)
    return load_split(folder)


def test_tokenized_pairs_end_in_eos_and_decode_to_the_text(tmp_path):
    vocabulary = Vocabulary.train(ENGLISH + GERMAN, SIZE)
    pairs = Lines(zip(ENGLISH, GERMAN, strict=True))
    split = tokenized(tmp_path, pairs, vocabulary)
    for side, lines in ((split.source, ENGLISH), (split.target, GERMAN)):
        assert [vocabulary.decode(side[i]) for i in range(4)] == lines
        for i in range(4):
            assert side[i][-1] == EOS
            assert not {PAD, BOS, EOS} & set(side[i][:-1].tolist())
    assert split.source[2].tolist() == [EOS]


@pytest.fixture
def many(monkeypatch):
    """Ten pairs, in chunks of three, and a vocabulary."""
    monkeypatch.setattr(tokens, "_CHUNK_PAIRS", 3)
    pairs = Lines((f"dog {i}", f"Hund {-i}") for i in range(10))
    return pairs, Vocabulary.train(ENGLISH + GERMAN, SIZE)


def test_many_pairs_keep_their_order_over_chunks(many, tmp_path):
    pairs, vocabulary = many
    split = tokenized(tmp_path, pairs, vocabulary)
    decoded = [
        (vocabulary.decode(split.source[i]), vocabulary.decode(split.target[i]))
        for i in range(len(split))
    ]
    assert decoded == pairs


def test_files_do_not_depend_on_the_number_of_processes(many, tmp_path):
    """Byte for byte; three processes, four chunks."""
    for processes in (1, 3):
        tokenized(tmp_path / str(processes), *many, processes)
    files = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert len(files) == 4
    for name in files:
        one, three = (tmp_path / n / name for n in ("1", "3"))
        assert one.read_bytes() == three.read_bytes()


def test_large_split_is_shared_by_the_cores(many, monkeypatch, tmp_path):
    pairs, vocabulary = many
    asked, told = [], []

    def in_order(function, shared, tasks, processes):
        asked.append(processes)
        return (function(shared, task) for task in tasks)

    monkeypatch.setattr(tokens.workers, "in_order", in_order)
    monkeypatch.setattr(tokens.workers, "core_count", lambda: 7)
    for smallest in (10, 11):
        monkeypatch.setattr(tokens, "_SHARED_PAIRS", smallest)
        tokenize(pairs, vocabulary, tmp_path, done=told.append)
    assert asked == [7, 1]
    assert told == [3, 3, 3, 1] * 2


class FewPieces(Vocabulary):
    """One that gives ids beyond its size."""

    size = 260


def test_id_beyond_the_vocabulary_is_refused_before_it_is_stored(many, tmp_path):
    pairs, vocabulary = many
    with pytest.raises(CorpusError, match=r"source id \d+ is not in \[0, 260\)"):
        tokenize(pairs, FewPieces(vocabulary.model_bytes), tmp_path)


def test_training_filter_counts_each_reason():
    # Pieces without EOS, source/target: 1/3, 0/1, 2/0, 4/1, 3/3, 0/9
    lengths = [(1, 3), (0, 1), (2, 0), (4, 1), (3, 3), (0, 9)]
    sides = [[[7] * n + [EOS] for n in side] for side in zip(*lengths, strict=True)]
    split = TokenizedSplit(Ragged.of(sides[0]), Ragged.of(sides[1]))
    kept, counts = filter_training(split, max_train_length=3)
    assert counts == {"read": 6, "kept": 2, "empty_side": 3, "too_long": 1}
    assert as_lists(kept) == [[sides[0][i] for i in (0, 4)], [sides[1][0], sides[1][4]]]
    assert kept.source.ids is split.source.ids  # an index, not a copy


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
    pairs = [pair for pair in zip(GERMAN, ENGLISH, strict=True) if all(pair)]
    interleaved = [x for pair in pairs for x in pair]
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
    monkeypatch.setattr(tokens, "check_ids", fail)
    monkeypatch.setattr("transformer_ablation.data.corpus.Pairs.read", fail)
    second = prepare(data, tmp_path)
    assert second.filters == first.filters
    assert as_lists(second.train) == as_lists(first.train)
    assert isinstance(second.train.source.ids, np.memmap)
    # Another limit is another choice of the same tokens; another size, other tokens.
    pieces = np.maximum(first.train.source.lengths, first.train.target.lengths) - 1
    limit = int(pieces.min())
    shorter = prepare(dataclasses.replace(data, max_train_length=limit), tmp_path)
    assert shorter.filters["kept"] == (pieces == limit).sum() < len(first.train)
    with pytest.raises(AssertionError, match="made again"):
        prepare(dataclasses.replace(data, vocabulary_size=SIZE + 1), tmp_path)


@pytest.mark.parametrize("pattern", ["source_ids.npy", "*.model", "target_lengths.npy"])
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
    with pytest.raises(CorpusError) as caught:
        prepare(dataclasses.replace(data, max_train_length=1), tmp_path)
    assert str(caught.value) == (
        "split train: no pair is left to train on (4 read, 1 with an empty side, 3 too "
        "long, 0 kept); raise data.max_train_length"
    )


def test_vocabulary_that_does_not_fit_names_the_field(data, tmp_path):
    with pytest.raises(VocabularyError, match="^data.vocabulary_size: .* 5000 pieces"):
        prepare(dataclasses.replace(data, vocabulary_size=5000), tmp_path)


def test_split_without_pairs_survives_the_cache(tmp_path):
    none = TokenizedSplit(Ragged.of([]), Ragged.of([]))
    assert len(load_split(write(tmp_path / "x", none))) == 0


HALF = """
import json, sys
from pathlib import Path
from transformer_ablation.config import DataConfig
from transformer_ablation.data import tokens, workers

def half(function, shared, tasks, processes):
    yield function(shared, tasks[0])
    print("half", flush=True)
    sys.stdin.read()

tokens._CHUNK_PAIRS, workers.in_order = 2, half
tokens.prepare(DataConfig(**json.loads(sys.argv[1])), Path(sys.argv[2]))
"""


def test_half_written_tokens_of_a_killed_process_are_made_again(data, tmp_path):
    fields = json.dumps(dataclasses.asdict(data))
    with subprocess.Popen(
        [sys.executable, "-c", HALF, fields, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "half\n"
        process.kill()
    folder = tmp_path / "format1" / "tokens"
    left = [path for path in folder.iterdir() if path.is_dir()]
    assert left and all(path.name.startswith(".") for path in left)
    prepared = prepare(data, tmp_path)
    texts = [prepared.vocabulary.decode(x) for x in as_lists(prepared.train)[1]]
    assert texts == [GERMAN[0], GERMAN[1], GERMAN[3]]  # not that of an empty side
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_two_that_prepare_at_once_learn_the_vocabulary_once(
    data, tmp_path, monkeypatch
):
    load_corpus(data, tmp_path)
    train, learned = Vocabulary.train, []

    def counted(lines, size):
        learned.append(size)
        time.sleep(0.2)  # the other arrives meanwhile
        return train(lines, size)

    monkeypatch.setattr(Vocabulary, "train", counted)
    threads = [threading.Thread(target=prepare, args=(data, tmp_path)) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert learned == [SIZE]


# Notes in a file each piece of work that is not found in the cache.
NOTED = """
import json, sys, time
from pathlib import Path
from transformer_ablation.config import DataConfig
from transformer_ablation.data import corpus, tokens
from transformer_ablation.vocabulary import Vocabulary

def noted(name, work):
    def note(*arguments, **named):
        with Path(sys.argv[3]).open("a") as file:
            file.write(name + chr(10))
        time.sleep(0.2)  # the other arrives meanwhile
        return work(*arguments, **named)
    return note

corpus._prepare = noted("corpus", corpus._prepare)
tokens.tokenize = noted("tokens", tokens.tokenize)
Vocabulary.train = noted("vocabulary", Vocabulary.train)
print("ready", flush=True)
sys.stdin.readline()
found = tokens.prepare(DataConfig(**json.loads(sys.argv[1])), Path(sys.argv[2]))
print(found.vocabulary.content_hash, len(found.train), len(found.validation))
"""


def test_two_processes_that_prepare_at_once_do_the_work_once(data, tmp_path):
    fields, notes = json.dumps(dataclasses.asdict(data)), tmp_path / "notes"
    given = [fields, str(tmp_path / "cache"), str(notes)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as stack:
        command = [sys.executable, "-c", NOTED, *given]
        both = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in "ab"]
        assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
        for process in both:
            process.stdin.write("go\n")
            process.stdin.flush()
        found = [process.communicate(timeout=120)[0] for process in both]
    assert found[0] == found[1] and found[0].endswith(" 3 2\n")
    # Tokens of training and of validation.
    assert sorted(notes.read_text().split()) == [
        "corpus",
        *["tokens"] * 2,
        "vocabulary",
    ]


# The text that a vocabulary is learned from.


def numbers(count):
    return Lines((f"{i}", f"{-i}") for i in range(count))


@pytest.mark.parametrize("count", [0, 1, 99, 100])
def test_small_corpus_is_taken_whole(count):
    assert list(sampled(numbers(count), 100)) == numbers(count)


@pytest.mark.parametrize("count", [101, 150, 1000, 12_345])
def test_sample_has_one_pair_of_each_stretch(count, monkeypatch):
    """So every part of the corpus is in it, the end as well as the start."""
    monkeypatch.setattr(tokens, "_CHUNK_PAIRS", 7)
    found = [int(source) for source, target in sampled(numbers(count), 100)]
    assert len(found) == 100
    for i, place in enumerate(found):
        # Stretch i of 100, cut to whole pairs.
        assert i * count // 100 <= place < (i + 1) * count // 100
    assert found == [int(source) for source, _ in sampled(numbers(count), 100)]


def test_sample_does_not_step_evenly():
    """A corpus whose parts take turns would lose all but one of them."""
    found = [int(source) for source, _ in sampled(numbers(4000), 1000)]
    taken = np.bincount(np.array(found) % 4)
    assert (taken > 200).all()  # 250 each; the deviation of one is 14


def test_vocabulary_of_a_large_corpus_is_of_a_sample(data, tmp_path, monkeypatch):
    whole = prepare(data, tmp_path).vocabulary.content_hash
    monkeypatch.setattr(tokens, "VOCABULARY_PAIRS", 2)
    pairs = Lines(pair for pair in zip(ENGLISH, GERMAN, strict=True) if all(pair))
    lines = [x for english, german in sampled(pairs, 2) for x in (german, english)]
    expected = Vocabulary.train(lines, SIZE).content_hash
    prepared = prepare(data, tmp_path)
    assert prepared.vocabulary.content_hash == expected != whole
    assert prepared.filters["kept"] == 3  # all are tokenised
    monkeypatch.setattr(tokens, "VOCABULARY_PAIRS", 3)
    assert prepare(data, tmp_path).vocabulary.content_hash == whole
