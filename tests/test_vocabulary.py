"""Vocabulary: no text is changed, the same text gives the same pieces, files check
themselves."""

import hashlib
import subprocess
import sys

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from transformer_ablation import config
from transformer_ablation import vocabulary as vocabulary_module
from transformer_ablation.vocabulary import (
    BOS,
    EOS,
    PAD,
    UNK,
    Vocabulary,
    VocabularyError,
)

LINES = [
    "Ein Mann geht mit dem Hund.",
    "A man walks the dog, and the dog walks him.",
    "Zwei Männer spielen im Garten Schach.",
    "Two men play chess in the garden.",
] * 5
# What the trainer or the decoder of SentencePiece treats apart, beside plain text.
ODD = ["\u2581", "\u2585", "\u2047", "\x1a", "\x1a0", "\x1a1", "\0", "\t", "\r"]
ODD += ["\x85", "\u2028", "\ufeff", "\u0301", "e\u0301", "😀", "👩‍👩‍👧", "ﬁ", "Ａ"]
ODD += ["<pad>", "<unk>", "<s>", "</s>", "<0x0A>", " ", "  ", "a", "dog", "ß"]


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.train(LINES, 340)


def any_line():
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="\n")
    mixed = st.lists(st.one_of(st.sampled_from(ODD), characters))
    return st.one_of(st.text(characters), mixed.map("".join))


@given(any_line())
def test_decoding_gives_back_any_line(vocabulary, line):
    assert vocabulary.decode(vocabulary.encode(line)) == line


@pytest.mark.parametrize("line", [*ODD, "", *(f" {x} {x}  " for x in ODD)], ids=repr)
def test_decoding_gives_back_odd_lines(vocabulary, line):
    ids = vocabulary.encode(line)
    assert vocabulary.decode(ids) == line
    assert not {PAD, UNK, BOS, EOS} & set(ids)


def test_composed_and_decomposed_letters_stay_apart(vocabulary):
    assert vocabulary.encode("M\u00e4nner") != vocabulary.encode("Ma\u0308nner")


def test_very_long_word_is_encoded(vocabulary):
    word = "Männer" * 20_000
    assert vocabulary.decode(vocabulary.encode(word)) == word


@given(st.lists(any_line(), max_size=5))
def test_many_lines_are_encoded_as_one_by_one(vocabulary, lines):
    assert vocabulary.encode_all(lines) == [vocabulary.encode(x) for x in lines]


def test_special_ids_are_distinct_and_in_place(vocabulary):
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert vocabulary.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert vocabulary.size == 340


def test_decoding_stops_at_the_end_and_skips_padding(vocabulary):
    dog, man = vocabulary.encode("dog"), vocabulary.encode(" man")
    ids = [BOS, *dog, PAD, *man, EOS, *dog, PAD]
    # The marker of the first word of an encoded line is a space elsewhere.
    assert vocabulary.decode(ids) == "dog  man"
    assert vocabulary.decode([]) == vocabulary.decode([EOS, *dog]) == ""


def test_decoding_never_gives_two_lines(vocabulary):
    # Bytes follow the four special ids: byte 0x0A is id 4 + 10.
    assert vocabulary.pieces([14]) == ["<0x0A>"]
    dog = vocabulary.encode("dog")
    assert vocabulary.decode([*dog, 14, *dog]) == "dog  dog"


@pytest.mark.parametrize("wrong", [-1, 340])
def test_id_outside_the_vocabulary_is_refused(vocabulary, wrong):
    with pytest.raises(VocabularyError, match=rf"id {wrong} is not in \[0, 340\)"):
        vocabulary.decode([5, wrong])
    with pytest.raises(VocabularyError, match=rf"id {wrong} is not in \[0, 340\)"):
        vocabulary.pieces([wrong])


@pytest.mark.parametrize("text", ["two\nlines", "half \ud83d"])
def test_text_that_is_no_line_is_refused(vocabulary, text):
    with pytest.raises(VocabularyError):
        vocabulary.encode(text)


def test_sizes_that_fit_are_named(monkeypatch):
    monkeypatch.setattr(vocabulary_module, "MIN_SIZE", 0)
    # Text "ab" has 4 special ids, 256 bytes, 3 characters (a, b and the word mark _)
    # and pieces "ab", "_ab", "_a": 266 at most, 263 without any of the last three.
    with pytest.raises(VocabularyError, match="267 .* largest .* is 266: .*size=266$"):
        Vocabulary.train(["ab"] * 9, 267)
    with pytest.raises(VocabularyError, match="262 .* smallest .* is 263: .*size=263$"):
        Vocabulary.train(["ab"] * 9, 262)
    largest, smallest = (Vocabulary.train(["ab"] * 9, size) for size in (266, 263))
    assert [len(v.encode("ab")) for v in (largest, smallest)] == [1, 3]


def test_size_that_no_config_may_have_is_not_advised(base_config):
    with pytest.raises(VocabularyError, match="too small .* gives 266 .* at least 300"):
        Vocabulary.train(["ab"] * 9, 400)
    field = "data.vocabulary_size"
    config.replace(base_config, {field: vocabulary_module.MIN_SIZE})
    with pytest.raises(config.ConfigError, match=field):
        config.replace(base_config, {field: vocabulary_module.MIN_SIZE - 1})


@pytest.mark.parametrize("lines", [[], [""], ["\t\0"]])
def test_text_without_words_is_refused(lines):
    with pytest.raises(VocabularyError, match="no text"):
        Vocabulary.train(lines, 300)


def test_failure_of_the_lines_is_not_hidden():
    def lines():
        yield "a line"
        raise KeyError("the disk is gone")

    with pytest.raises(KeyError, match="the disk is gone"):
        Vocabulary.train(lines(), 300)


@pytest.mark.parametrize(
    "line",
    ["quagga " * 1000, "quagga\tquagga", "quagga\0quagga", "\u2585quagga\u2581"],
    ids=["long", "tab", "nul", "marks"],
)
def test_no_line_is_dropped_in_training(line):
    # 4 special ids, 256 bytes, 5 characters (q u a g and the word mark), and 6 merges
    # make one piece of the word and its mark.
    trained = Vocabulary.train([line] * 10, 4 + 256 + 5 + 6)
    assert trained.pieces(trained.encode("quagga")) == ["\u2581quagga"]


def test_word_longer_than_the_trainer_takes_is_cut():
    assert Vocabulary.train(["ab" * 100_000, "cd" * 10], 270).size == 270


def test_same_text_gives_same_bytes_in_another_process(vocabulary, tmp_path):
    program = (
        "from transformer_ablation.vocabulary import Vocabulary\n"
        f"v = Vocabulary.train({LINES!r}, 340)\n"
        "v.save('somewhere_else')\nprint(v.content_hash)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == vocabulary.content_hash
    loaded = Vocabulary.load(tmp_path / "somewhere_else")
    assert loaded.content_hash == vocabulary.content_hash


def test_other_text_or_size_gives_another_hash(vocabulary):
    hashes = {
        vocabulary.content_hash,
        Vocabulary.train(LINES, 341).content_hash,
        Vocabulary.train([*LINES, "An ox."], 340).content_hash,
    }
    assert len(hashes) == 3


def test_saved_file_holds_the_hashed_model_and_a_checksum(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "a" / "v.model")
    content = (tmp_path / "a" / "v.model").read_bytes()
    model, digest = content[:-35], content[-32:]
    assert hashlib.sha256(model).hexdigest() == vocabulary.content_hash
    assert hashlib.sha256(model).digest() == digest
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["v.model"]


def test_saved_file_is_a_sentencepiece_model(vocabulary, tmp_path):
    path = tmp_path / "v.model"
    vocabulary.save(path)
    other = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert other.encode("the dog walks") == vocabulary.encode("the dog walks")


@pytest.mark.parametrize("damage", ["first", "middle", "last", "short", "empty"])
def test_damaged_file_is_refused(vocabulary, tmp_path, damage):
    path = tmp_path / "v.model"
    vocabulary.save(path)
    content = bytearray(path.read_bytes())
    places = {"first": 0, "middle": len(content) // 2, "last": len(content) - 1}
    if damage in places:
        content[places[damage]] ^= 1
    path.write_bytes(content[: {"short": -1, "empty": 0}.get(damage)])
    with pytest.raises(VocabularyError, match=r"v\.model: .*checksum"):
        Vocabulary.load(path)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(VocabularyError, match=r"none\.model: no vocabulary"):
        Vocabulary.load(tmp_path / "none.model")


def test_model_with_other_special_ids_is_refused(tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_prefix=str(tmp_path / "other"),
        vocab_size=100,
        model_type="bpe",
        minloglevel=2,
    )
    with pytest.raises(VocabularyError, match="must be"):
        Vocabulary((tmp_path / "other.model").read_bytes())
    with pytest.raises(VocabularyError, match="not a SentencePiece model"):
        Vocabulary(b"junk")
