"""Scores against sacreBLEU's public calls; the sign test against hand and scipy."""

import json
import math
import random

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from scipy import stats

from tests.report.comparison.written_runs import BASE, REFERENCES
from transformer_ablation.report.comparison import scores
from transformer_ablation.report.json_file import RecordError
from transformer_ablation.report.sentence_tests import Cache, Text
from transformer_ablation.report.text_metrics import metric_of, tokeniser_of, tokens_of

DEFAULT = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
LINES = [*REFERENCES, "", "Ein Hund, der bellt.", "eins zwei drei vier fünf"]
OURS = [*BASE, "x", "", "eins zwei vier drei fünf"]


@pytest.mark.parametrize("signature", [DEFAULT, None, DEFAULT.replace("13a", "char")])
def test_scores_are_sacrebleus(signature, monkeypatch):
    monkeypatch.setattr(scores, "READ", 3)
    scorer = scores.Scorer(signature)
    tokenize = tokeniser_of(signature)
    other, counts = scorer.counts([LINES, OURS], LINES)
    assert scorer.corpus("chrf", other["chrf"]) == pytest.approx(100)
    bleu, chrf = BLEU(tokenize=tokenize), CHRF()
    assert scorer.corpus("bleu", counts["bleu"]) == pytest.approx(
        bleu.corpus_score(OURS, [LINES]).score, abs=1e-9
    )
    assert scorer.corpus("chrf", counts["chrf"]) == pytest.approx(
        chrf.corpus_score(OURS, [LINES]).score, abs=1e-9
    )
    some = [1, 3, 5]
    part = [OURS[i] for i in some], [[LINES[i] for i in some]]
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        assert scorer.corpus(name, counts[name][some]) == pytest.approx(
            metric.corpus_score(*part).score, abs=1e-9
        )
        assert scorer.corpus(name, counts[name][[]]) is None
    sentence = {"bleu": BLEU(tokenize=tokenize, effective_order=True), "chrf": chrf}
    for name, metric in sentence.items():
        expected = [
            metric.sentence_score(h, [r]).score
            for h, r in zip(OURS, LINES, strict=True)
        ]
        assert scorer.sentences(name, counts[name]) == pytest.approx(expected, abs=1e-9)


def test_edit_rate_of_parts_is_sacrebleus_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(scores, "CHUNK", 3)
    paths = []
    for name, lines in (("a", OURS), ("b", LINES)):
        paths.append(tmp_path / name)
        paths[-1].write_text("".join(f"{line}\n" for line in lines))
    texts = [Text(p, p, (p.name, "r"), 0, DEFAULT) for p in paths]
    said = []

    def rates(hypotheses):
        cache = Cache(tmp_path, said.append)
        return scores.edit_rates(texts, hypotheses, LINES, cache, said.append)

    found, signature = rates([OURS, LINES])
    metric = TER()
    expected = metric.corpus_score(OURS, [LINES]).score
    assert found == [pytest.approx(expected, abs=1e-9), 0.0]
    assert signature == str(metric.get_signature())
    assert said == ["counting edits for TER: 2 texts, kept as tests are"]
    monkeypatch.setattr(scores, "edits", None)
    assert rates([OURS, LINES]) == (found, signature)
    assert len(said) == 1
    assert len(json.loads((tmp_path / "significance.json").read_text())) == 2


def test_sign_test_counts_splits_at_least_so_uneven():
    assert scores.sign_test(0, 0) is None
    assert scores.sign_test(0, 3) == pytest.approx(2 / 8)
    assert scores.sign_test(5, 1) == pytest.approx(2 * (1 + 6) / 64)
    assert scores.sign_test(2, 2) == 1.0
    draw = random.Random(3)
    for _ in range(50):
        a, b = draw.randint(0, 90), draw.randint(1, 3000)
        expected = stats.binomtest(a, a + b, 0.5).pvalue
        assert scores.sign_test(a, b) == pytest.approx(expected, rel=1e-9)


def test_rounding_of_floats_wins_nothing():
    third = 0.1 + 0.2
    found = scores.wins([third, 1.0, 5.0, 9.0, 0.0], [0.3, 2.0, 4.0, 8.0, 0.0], 1)
    assert found == (2, 1, 2, 1, 1.0)
    assert not scores.above(100.0, math.nextafter(100.0, 0))


@pytest.mark.parametrize(
    "metric",
    [
        BLEU(),
        BLEU(lowercase=True, tokenize="intl", smooth_method="floor", smooth_value=0.25),
        BLEU(tokenize="zh", smooth_method="add-k"),
        BLEU(tokenize="char", effective_order=True, smooth_method="none"),
    ],
)
def test_metric_of_a_signature_has_that_signature(metric):
    expected = metric.corpus_score(["A b C d"], [["a b c d e"]]).score
    signature = str(metric.get_signature())
    made = metric_of("bleu", signature)
    assert made.corpus_score(["A b C d"], [["a b c d e"]]).score == expected
    assert str(made.get_signature()) == signature


def test_words_are_those_that_bleu_counts():
    assert tokens_of(metric_of("bleu", DEFAULT), "Don't, 3.5 Ä.") == (
        "Don't , 3.5 Ä .".split()
    )
    lower = metric_of("bleu", DEFAULT.replace("mixed", "lc").replace("13a", "zh"))
    assert tokens_of(lower, "猫Sat 下") == ["猫", "sat", "下"]


def test_edits_count_letters_of_languages_without_spaces():
    zh = DEFAULT.replace("13a", "zh")
    score = metric_of("ter", zh).corpus_score(["猫坐下"], [["狗坐下"]])
    assert (score.num_edits, score.ref_length) == (1, 3)
    score = metric_of("ter", DEFAULT).corpus_score(["a b c"], [["x b c"]])
    assert (score.num_edits, score.ref_length) == (1, 3)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("", None),
        ("BLEU", "is no signature of sacreBLEU with one reference"),
        (DEFAULT.replace("nrefs:1", "nrefs:2"), "with one reference"),
        (DEFAULT.replace("exp", "magic"), "is no signature"),
        (DEFAULT.replace("13a", "moses"), "tokeniser moses"),
    ],
)
def test_what_is_no_signature_is_refused(signature, message):
    if message is None:  # of records older than signatures: sacreBLEU's default
        assert metric_of("bleu", signature).tokenizer.signature() == "13a"
        return
    with pytest.raises(RecordError, match=message):
        metric_of("bleu", signature)


def test_tokeniser_that_is_not_installed_is_named():
    try:
        import MeCab  # noqa: F401
    except ImportError:
        signature = DEFAULT.replace("13a", "ja-mecab-0.996-IPA")
        with pytest.raises(
            RecordError, match=r"ja-mecab .*pip install sacrebleu\[ja\]"
        ):
            metric_of("bleu", signature)
    else:
        pytest.skip("sacreBLEU's Japanese tokeniser is installed here")
