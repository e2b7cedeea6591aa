"""BLEU is sacreBLEU's, of the whole corpus, with one reference a sentence."""

import math

import pytest
import sacrebleu

from transformer_ablation.evaluate.bleu import corpus_bleu

TRANSLATIONS = [
    "The cat sat on the mat, and slept.",
    "Two dogs ran in a park",
    "we go home now .",
]
REFERENCES = [
    "The cat sat on a mat, and slept.",
    "Two dogs ran in the park.",
    "We go home later now.",
]


def test_bleu_is_that_of_sacrebleu_called_by_hand():
    """The module's function, with every setting spelt out."""
    by_hand = sacrebleu.corpus_bleu(
        TRANSLATIONS,
        [REFERENCES],
        smooth_method="exp",
        lowercase=False,
        tokenize="13a",
        use_effective_order=False,
    )
    found = corpus_bleu(TRANSLATIONS, REFERENCES)
    assert found.value == by_hand.score
    assert 5 < found.value < 95
    assert found.sentences == 3


@pytest.mark.parametrize(
    ("translations", "references", "by_hand"),
    [
        # 5/6 words, 4/5 pairs, 3/4 triples, 2/3 quadruples; equally long.
        (["a b c d e f"], ["a b c d e g"], (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25),
        # All right, but 5 words for 6: the brevity penalty alone.
        (["a b c d e"], ["a b c d e f"], math.exp(1 - 6 / 5)),
        # Longer than the reference: 5/6, 4/5, 3/4, 2/3, and no penalty.
        (["a b c d e f"], ["a b c d e"], (1 / 3) ** 0.25),
        # Counts of both are added, 11/12, 9/10, 7/8, 5/6, not their BLEUs averaged.
        (
            ["a b c d e f", "g h i j k l"],
            ["a b c d e g", "g h i j k l"],
            (11 / 12 * 9 / 10 * 7 / 8 * 5 / 6) ** 0.25,
        ),
        # Case counts: 4/5, 3/4, 2/3, 1/2.
        (["A b c d e"], ["a b c d e"], (1 / 5) ** 0.25),
        # 13a parts the full stop from the word, so all is right.
        (["a b c d."], ["a b c d ."], 1.0),
    ],
)
def test_bleu_equals_hand_arithmetic(translations, references, by_hand):
    found = corpus_bleu(translations, references)
    assert found.value == pytest.approx(100 * by_hand, rel=1e-9)


def test_signature_says_how_it_was_computed():
    parts = corpus_bleu(TRANSLATIONS, REFERENCES).signature.split("|")
    expected = {"nrefs:1", "case:mixed", "eff:no", "tok:13a", "smooth:exp"}
    assert expected <= set(parts)
    assert f"version:{sacrebleu.__version__}" in parts


def test_each_sentence_is_held_against_its_own_reference():
    """Two translations in the wrong order share one word with their references.

    With one list a sentence, sacreBLEU would take the first sentence alone against
    either reference, and with both references for both sentences find 100.
    """
    references = ["the cat sat on the mat today", "a dog ran in the big park"]
    swapped = references[::-1]
    assert sacrebleu.corpus_bleu(swapped, [[r] for r in references]).score > 99
    assert sacrebleu.corpus_bleu(swapped, [[r] * 2 for r in references]).score > 99
    assert corpus_bleu(swapped, references).value < 10
    assert corpus_bleu(references, references).value == pytest.approx(100)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_unequal_counts_are_refused_with_both(count):
    translations = (TRANSLATIONS * 2)[:count]
    with pytest.raises(ValueError, match=f"{count} translations for 3 references"):
        corpus_bleu(translations, REFERENCES)


def test_bleu_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no sentence"):
        corpus_bleu([], [])


def test_empty_translations_count():
    """An empty line is not skipped: its reference still makes the rest too short.

    All words right, 5 for 10: exp(1 - 10 / 5).
    """
    found = corpus_bleu(["a b c d e", ""], ["a b c d e", "f g h i j"])
    assert found.value == pytest.approx(100 * math.exp(-1), rel=1e-9)
    assert found.sentences == 2
