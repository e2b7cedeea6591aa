"""BLEU is sacreBLEU's, of the whole corpus, with one reference a sentence."""

import math

import pytest
import sacrebleu

from transformer_ablation.evaluate.bleu import corpus_bleu, paper_bleu, paper_tokens

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


@pytest.mark.parametrize(
    ("language", "tokeniser"),
    [
        *((code, "zh") for code in ("zh", "zh_Hans", "zh-TW")),
        *((code, "char") for code in ("ja", "th", "my")),
        *((code, "13a") for code in ("de", "ko", "pt-br")),
    ],
)
def test_language_without_spaces_is_no_language_of_one_word_sentences(
    language, tokeniser
):
    """One character of each differs: no word of 13a is right, nearly every other."""
    sentence = "这是第{}个很长的句子，我们在公园里看见两只狗。"
    references = [sentence.format(number) for number in "一二三四五"]
    translations = [text.replace("两", "三") for text in references]
    found = corpus_bleu(translations, references, language)
    metric = sacrebleu.metrics.BLEU(tokenize=tokeniser)
    assert found.value == metric.corpus_score(translations, [references]).score
    assert f"tok:{tokeniser}|" in found.signature
    assert found.value < 1 if tokeniser == "13a" else found.value > 70


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
    found = corpus_bleu(TRANSLATIONS, REFERENCES, "en")
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
    found = corpus_bleu(translations, references, "en")
    assert found.value == pytest.approx(100 * by_hand, rel=1e-9)


def test_signature_says_how_it_was_computed():
    parts = corpus_bleu(TRANSLATIONS, REFERENCES, "en").signature.split("|")
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
    assert corpus_bleu(swapped, references, "en").value < 10
    assert corpus_bleu(references, references, "en").value == pytest.approx(100)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_unequal_counts_are_refused_with_both(count):
    translations = (TRANSLATIONS * 2)[:count]
    with pytest.raises(ValueError, match=f"{count} translations for 3 references"):
        corpus_bleu(translations, REFERENCES, "en")


def test_bleu_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no sentence"):
        corpus_bleu([], [], "en")


def test_empty_translations_count():
    """An empty line is not skipped: its reference still makes the rest too short.

    All words right, 5 for 10: exp(1 - 10 / 5).
    """
    found = corpus_bleu(["a b c d e", ""], ["a b c d e", "f g h i j"], "en")
    assert found.value == pytest.approx(100 * math.exp(-1), rel=1e-9)
    assert found.sentences == 2


# Hyphenated words, typographic quotes and dashes: where the two ways part.
HYPHENATED = [
    ("Die Rot-Kreuz-Station ist offen.", "Die Rot-Kreuz-Klinik ist offen."),
    ('Er sagte: "Ja" - und ging.', "Er sagte: „Ja“ – und ging."),
    ("Der US-Dollar fiel stark.", "Der US-Dollar stieg stark."),
]
# As multi-bleu.perl would see the first column, written out by hand.
TOKENS = [
    "Die Rot ##AT##-##AT## Kreuz ##AT##-##AT## Station ist offen .",
    'Er sagte : " Ja " - und ging .',
    "Der US ##AT##-##AT## Dollar fiel stark .",
]


def ngrams(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def bleu_by_hand(pairs):
    """Papineni et al. 2002 on words, clipped counts of all sentences, no smoothing."""
    log_precision = 0.0
    for n in range(1, 5):
        right = total = 0
        for hypothesis, reference in pairs:
            left = ngrams(reference, n)
            for gram in ngrams(hypothesis, n):
                total += 1
                if gram in left:
                    left.remove(gram)
                    right += 1
        log_precision += math.log(right / total) / 4
    lengths = [sum(len(words) for words in side) for side in zip(*pairs, strict=True)]
    brevity = min(0.0, 1 - lengths[1] / lengths[0])
    return 100 * math.exp(log_precision + brevity)


def test_paper_tokens_are_split_and_plain():
    hypotheses, references = zip(*HYPHENATED, strict=True)
    assert list(paper_tokens(hypotheses, "de")) == TOKENS
    # Typographic marks become the plain ones of the hypothesis.
    assert list(paper_tokens(references, "de"))[1] == TOKENS[1]


def test_both_bleus_of_hyphenated_words_by_hand():
    hypotheses, references = zip(*HYPHENATED, strict=True)
    split = [line.split() for line in paper_tokens(references, "de")]
    pairs = list(zip([line.split() for line in TOKENS], split, strict=True))
    paper = paper_bleu(hypotheses, references, "de")
    assert paper.value == pytest.approx(bleu_by_hand(pairs), rel=1e-9)
    plain = corpus_bleu(hypotheses, references, "en")
    # 13a leaves a compound whole, and the typographic marks are other words.
    whole = [
        ("Die Rot-Kreuz-Station ist offen .", "Die Rot-Kreuz-Klinik ist offen ."),
        ('Er sagte : " Ja " - und ging .', "Er sagte : „Ja“ – und ging ."),
        ("Der US-Dollar fiel stark .", "Der US-Dollar stieg stark ."),
    ]
    words = [(a.split(), b.split()) for a, b in whole]
    by_hand = corpus_bleu(*zip(*whole, strict=True), "en").value
    assert plain.value == by_hand and len(words[1][1]) == 8
    assert paper.value > plain.value + 20


def test_signatures_tell_the_two_apart():
    lines = ["Ein Satz mit fünf Wörtern."]
    paper, plain = paper_bleu(lines, lines, "de"), corpus_bleu(lines, lines, "en")
    assert paper.value == plain.value == pytest.approx(100)
    assert paper.signature.startswith("moses-de-0.2.0+plain-quotes+split-hyphens|")
    assert "tok:none|smooth:none" in paper.signature
    assert "tok:13a|smooth:exp" in plain.signature and "moses" not in plain.signature


def test_paper_bleu_refuses_part_of_a_test_set():
    """3,003 hypotheses are not scored against 2,737 references."""
    with pytest.raises(ValueError, match="3003 translations for 2737 references"):
        paper_bleu(["a"] * 3003, ["a"] * 2737, "de")
    with pytest.raises(ValueError, match="no tokeniser for 'xx'; there is one for en"):
        paper_bleu(["a"], ["a"], "xx")
