"""Pieces as people read them."""

from transformer_ablation.report.piece_labels import labels
from transformer_ablation.vocabulary import EOS, Vocabulary


def test_pieces_make_words_at_their_spaces():
    found = labels(["▁the", "▁do", "gs", "▁ru", "n", "ning", "."] + ["</s>"])
    assert found.pieces == ["the", "do", "·gs", "ru", "·n", "·ning", "·.", "</s>"]
    assert found.words == ["the", "dogs", "running.", "</s>"]
    assert found.starts == [0, 1, 3, 7]


def test_begin_of_sentence_is_a_word_of_its_own():
    found = labels(["<s>", "▁a", "b"])
    assert (found.words, found.starts) == (["<s>", "ab"], [0, 1])
    assert labels(["<s>", "b"]).words == ["<s>", "b"]  # even before half a word


def test_space_of_its_own_is_seen_and_begins_the_word():
    found = labels(["▁", "Ω", "▁x", "▁", "▁y"])
    assert found.pieces == ["␣", "·Ω", "x", "␣", "y"]
    assert found.words == ["Ω", "x", "␣", "y"]


def test_bytes_together_are_letters():
    """U+20AC is E2 82 AC; what is no letter is a replacement character."""
    found = labels(["▁", "<0xE2>", "<0x82>", "<0xAC>", "5", "▁<", "<0xFF>"])
    assert found.words == ["€5", "<\N{REPLACEMENT CHARACTER}"]
    assert found.pieces[1:4] == ["·<0xE2>", "·<0x82>", "·<0xAC>"]
    assert labels(["▁", "<0x3C>", "<0x1A>"]).pieces == ["␣", "·<", "·<0x1A>"]


def test_words_of_a_vocabulary_are_those_of_the_text():
    """Also U+2581 in the text, which the vocabulary spells in another way."""
    lines = [f"der hund {i} läuft zur straße und sieht bälle" for i in range(40)]
    vocabulary = Vocabulary.train(lines, 320)
    for text in ("der hund läuft", "ein ▁ b▁", "straße €uro", "שלום עולם"):
        found = labels(vocabulary.pieces([*vocabulary.encode(text), EOS]))
        assert found.words == [*text.split(), "</s>"]
