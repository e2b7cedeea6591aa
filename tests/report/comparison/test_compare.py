"""A comparison of four sentences worked out by hand, and what is refused."""

import dataclasses
import json
import os
import re
import shutil
import socket

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from scipy import stats

from tests.report import written_sweeps as written
from tests.report.comparison.written_runs import (
    BASE,
    NAMES,
    OPTIONS,
    OTHER,
    REFERENCES,
    SOURCES,
    compared,
    write_run,
    write_workdir,
)
from transformer_ablation.report.comparison import data, text
from transformer_ablation.report.comparison.compare import compare
from transformer_ablation.report.comparison.result import Frequencies, Options
from transformer_ablation.report.comparison.runs import (
    ComparisonError,
    find_rows,
    find_runs,
)
from transformer_ablation.report.json_file import RecordError
from transformer_ablation.report.record import run_directory, update_record
from transformer_ablation.report.sentence_tests import Settings
from transformer_ablation.report.translations import read_lines, reference_file


@pytest.fixture
def workdir(tmp_path):
    return write_workdir(tmp_path / "w")


def test_corpus_scores_are_sacrebleus(workdir):
    made = compared(workdir)
    (pair,) = made.pairs
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        for found, lines in zip(pair.corpus[name], (BASE, OTHER), strict=True):
            expected = metric.corpus_score(lines, [REFERENCES]).score
            assert found == pytest.approx(expected, abs=1e-9)
        assert made.signatures[name] == str(metric.get_signature())
    # 16 words in the references, 16 and 14 in the hypotheses.
    assert tuple(pair.corpus["length"]) == (1.0, 14 / 16)
    assert pair.corpus["length"].difference == -2 / 16


def test_paired_tests_are_those_of_the_table(workdir, monkeypatch):
    from sacrebleu.significance import PairedTest

    made = compared(workdir)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    for kind, short in (("bootstrap", "bs"), ("randomization", "ar")):
        systems = [("base", BASE), ("row", OTHER)]
        test = PairedTest(
            systems, {"BLEU": BLEU()}, [REFERENCES], test_type=short, n_samples=50
        )
        signatures, found = test()
        made_test = made.pairs[0].tests["bleu"][kind]
        # Two sentences differ: no p is below 2^(1 - 2).
        assert made_test.p == max(found["BLEU"][1].p_value, 0.5)
        assert made_test.signature == str(signatures["BLEU"])


def test_tests_are_kept_and_serve_the_other_way_round(workdir, monkeypatch):
    from transformer_ablation.report import sentence_tests

    first = compared(workdir)
    monkeypatch.setattr(sentence_tests, "compute", None)
    found = find_rows(workdir, NAMES[::-1], None, "validation")
    second = compare(found, OPTIONS, lambda tokens, signature: "none")
    assert second.pairs[0].tests == first.pairs[0].tests
    assert second.pairs[0].corpus["bleu"].difference == pytest.approx(
        -first.pairs[0].corpus["bleu"].difference
    )


def test_chrf_and_ter_can_be_tested_too(workdir):
    options = Options(tests=Settings(("bootstrap",), 20), test_metrics=("chrf", "ter"))
    tests = compared(workdir, options).pairs[0].tests
    assert list(tests) == ["chrf", "ter"]
    assert "nc:6" in tests["chrf"]["bootstrap"].signature
    assert "tok:tercom" in tests["ter"]["bootstrap"].signature


def test_lengths_words_and_wins_by_hand(workdir):
    made = compared(workdir)
    (pair,) = made.pairs
    # Sources of 4, 2, 1 and 7 words.
    groups = {g.bucket.label: g for g in made.lengths}
    assert [(k, g.sentences) for k, g in groups.items()] == [
        ("0-2", 2),
        ("3-4", 1),
        ("5-89", 1),
        ("90+", 0),
    ]
    short = [REFERENCES[1:3]]
    expected = [BLEU().corpus_score(x[1:3], short).score for x in (BASE, OTHER)]
    assert list(groups["0-2"].scores["bleu"]) == pytest.approx(expected)
    assert tuple(groups["90+"].scores["chrf"]) == (None, None)
    f1 = [tuple(both) for both in made.f1]
    assert f1[0] == (None, None)
    for found, expected in zip(
        f1[1:], [(14 / 15, 10 / 13), (6 / 8, 6 / 7), (8 / 9, 8 / 10)], strict=True
    ):
        assert found == pytest.approx(expected)
    assert made.frequencies.origin == "the references"
    # Base has line 1 better, A_h1 line 2; lines 3 and 4 are the same.
    assert pair.wins == (1, 1, 2, 2, 1.0)
    assert [s.number for s in made.largest(0, None)] == [1]
    assert [s.number for s in made.largest(1, None)] == [2]
    assert [s.number for s in made.largest(None, None)] == [3, 4]
    assert made.differences["model.num_heads"] == (8, 1)
    assert "train.seed" not in made.differences


def test_sentences_can_be_chosen_by_bleu_and_lengths_counted_in_letters(workdir):
    options = Options(sentence_metric="bleu", length_unit="characters", tests=None)
    made = compared(workdir, options)
    assert [s.length for s in made.sentences] == [16, 8, 3, 26]
    bleu = BLEU(effective_order=True)
    (first,) = made.largest(0, None)
    expected = [bleu.sentence_score(x[0], [REFERENCES[0]]).score for x in (BASE, OTHER)]
    assert list(first.scores["bleu"]) == pytest.approx(expected)
    assert made.pairs[0].tests == {}


def test_wins_go_by_the_metric_asked_for(tmp_path):
    workdir = write_workdir(tmp_path)
    # Spaces are nothing to chrF, and everything to BLEU.
    lines = [["the cat sat on"], ["thecat saton themat"]]
    for row, found in zip(written.paper_rows(NAMES), lines, strict=True):
        only = {"references": REFERENCES[:1], "sources": SOURCES[:1]}
        write_run(workdir, row, found, **only)
    options = dataclasses.replace(OPTIONS, tests=None)
    assert compared(workdir, options).pairs[0].wins[:2] == (0, 1)
    options = dataclasses.replace(options, sentence_metric="bleu")
    assert compared(workdir, options).pairs[0].wins[:2] == (1, 0)


def test_frequencies_of_the_training_text_are_taken(workdir):
    counts = {"the": 1, "cat": 5}
    made = compared(workdir, frequencies=Frequencies(counts, "9 training pairs"))
    found = [(g.bucket.label, g.first.references) for g in made.pairs[0].words]
    assert found == [("0", 9), ("1", 5), ("2-4", 0), ("5+", 2)]
    assert "F1 of words by frequency in 9 training pairs" in text.as_text(made, 1)


def test_text_says_what_was_counted(workdir):
    shown = text.as_text(compared(workdir), 1)
    flat = " ".join(shown.split())
    assert shown.startswith("A_h1 against base: split validation, 4 sentences, seed 0")
    assert "A_h1 has model.num_heads 1 instead of 8" in flat
    assert "90+ 0 no sentence" in flat and "0 0 no word" in flat
    assert "5+ 5 88.89 80.00 -8.89" in flat
    assert "a dog barks 0.667 0 1 1" in flat
    assert "seed 0 1 1 2 2 (50.0%) 1" in flat
    assert "line 1: chrF 100.00" in flat
    assert "source le chat dort ici" in flat
    assert "tokeniser, 13a" in flat
    assert "in the references (not looked for)" in flat
    assert "paired bootstrap resampling (50 resamples)" in flat
    assert "by sacreBLEU with seed 7" in flat


def test_line_that_stands_twice_is_shown_once_as_text(tmp_path):
    workdir = write_workdir(tmp_path)
    for row, lines in zip(written.paper_rows(NAMES), (BASE, OTHER), strict=True):
        twice = {"references": 2 * REFERENCES, "sources": 2 * SOURCES}
        write_run(workdir, row, 2 * lines, **twice)
    made = compared(workdir)
    shown = text.as_text(made, 3)
    assert [shown.count(f"line {n}:") for n in (1, 5, 2, 6)] == [1, 0, 1, 0]
    assert len(json.loads(data.as_json(made, None))["examples"]) == 8


def test_json_has_everything_unrounded(workdir):
    found = json.loads(data.as_json(compared(workdir), None))
    (pair,) = found["pairs"]
    expected = BLEU().corpus_score(OTHER, [REFERENCES]).score
    assert pair["scores"]["bleu"]["second"] == pytest.approx(expected, abs=1e-12)
    assert pair["words"][3]["first"]["f1"] == 8 / 9
    assert pair["lengths"][3]["chrf"] == dict.fromkeys(
        ("first", "second", "difference")
    )
    assert found["f1"][0] == {
        "frequency": "0",
        "first": None,
        "second": None,
        "difference": None,
    }
    lines = sorted(found["examples"], key=lambda x: x["line"])
    assert [x["reference"] for x in lines] == REFERENCES
    assert [x["source"] for x in lines] == SOURCES
    assert [x["first"] for x in lines] == BASE
    assert [x["second"] for x in lines] == OTHER
    assert [x["better"] for x in lines] == ["first", "second", None, None]
    assert found["ngrams"]["second"][0]["words"] == "a dog barks"
    assert len(json.loads(data.as_json(compared(workdir), 0))["examples"]) == 0


def test_seeds_are_paired_and_their_means_shown(tmp_path):
    workdir = write_workdir(tmp_path, (0, 3))
    rows = written.paper_rows(NAMES)
    write_run(workdir, rows[1], BASE, 3)
    write_run(workdir, rows[0], REFERENCES, 3)
    made = compared(workdir, dataclasses.replace(OPTIONS, most_ngrams=99))
    assert [p.name for p in made.pairs] == ["seed 0", "seed 3"]
    deltas = [p.corpus["bleu"].difference for p in made.pairs]
    test = made.over_seeds["bleu"]
    assert (test.n, test.mean) == (2, pytest.approx(sum(deltas) / 2))
    assert test.p == pytest.approx(stats.ttest_1samp(deltas, 0).pvalue)
    # F1 of "the": 8/9 and 8/10 with seed 0, 1 and 8/9 with seed 3.
    assert tuple(made.f1[3]) == pytest.approx(((8 / 9 + 1) / 2, (0.8 + 8 / 9) / 2))
    # "dog" is got once and twice, then twice and once, of two times two.
    assert not any(n.words == "dog" for n in (*made.ngrams[0], *made.ngrams[1]))
    cat = next(n for n in made.ngrams[0] if n.words == "cat")
    assert cat[1:] == (4, 3, 4, 5 / 9)
    assert len(made.sentences) == 8
    shown = " ".join(text.as_text(made, 1).split())
    assert "mean, n = 2" in shown and "p over seeds" in shown
    # The mean of 16/16 and 16/16, and of 14/16 and 16/16 words.
    assert re.search(r"mean, n = 2 base [^A]* 1\.000 A_h1 [^d]* 0\.938 diff", shown)
    assert all(
        list(p.tests["bleu"]) == ["bootstrap", "randomization"] for p in made.pairs
    )
    one = compared(workdir, seeds=[3])
    assert [p.name for p in one.pairs] == ["seed 3"] and one.over_seeds == {}


def test_two_seeds_of_one_row_can_be_compared(tmp_path):
    workdir = write_workdir(tmp_path, (0, 1))
    folders = [run_directory(workdir, "base", seed) for seed in (0, 1)]
    made = compare(
        find_runs(folders, "validation"), OPTIONS, lambda tokens, signature: "none"
    )
    assert made.names == ("base/seed0", "base/seed1")
    assert made.pairs[0].name == "seeds 0 and 1"
    assert made.pairs[0].wins == (0, 0, 4, 4, None)
    shown = " ".join(text.as_text(made, 2).split())
    assert "The configs are equal." in shown
    assert (workdir / "significance.json").exists()


def test_runs_of_two_workdirs_can_be_compared(tmp_path):
    folders = [
        run_directory(write_workdir(tmp_path / name), "base", 0) for name in "ab"
    ]
    found = find_runs(folders, "validation")
    assert found.names == tuple(map(str, folders))
    update_record(folders[1], results_version=2)
    made = compare(
        find_runs(folders, "validation"), OPTIONS, lambda tokens, signature: "none"
    )
    assert made.facts == {"results_version": (1, 2)}
    shown = text.as_text(made, 0)
    assert "differ besides in: results_version 1 and 2" in shown
    # Folders are too long to head columns.
    assert made.labels == ("first", "second")
    flat = " ".join(shown.split())
    assert f"first: {folders[0]}" in flat and f"second: {folders[1]}" in flat
    expected = BLEU().corpus_score(BASE, [REFERENCES]).score
    assert f"seed 0 first {expected:.2f}" in flat
    assert "N-grams that second gets more often" in flat


def test_odd_text_stays_on_its_line(tmp_path):
    workdir = write_workdir(tmp_path)
    row = written.paper_rows(("A_h1",))[0]
    odd = ["\x1b[31mred\x9b", "שלום עולם", "x\u2067y", "\x00"]
    write_run(workdir, row, odd)
    shown = text.as_text(compared(workdir), 4)
    assert "\x1b" not in shown and "\x9b" not in shown and "\u2067" not in shown
    assert "\u2068שלום עולם\u2069" in shown
    assert "(empty)" in shown


def refusal(call):
    with pytest.raises((ComparisonError, RecordError)) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["base"], "--rows: names 1, but two rows, for example --rows=base,A_h1"),
        ([], "--rows: names none"),
        (["base", "A_h1", "C_N2"], "names 3"),
        (["base", "base"], "base stands there twice"),
        (["base", "A_h2"], "unknown row 'A_h2'; did you mean A_h1?"),
    ],
)
def test_rows_that_are_not_two_are_refused(workdir, rows, message):
    assert message in refusal(lambda: find_rows(workdir, rows, None, "validation"))


def test_run_that_is_not_finished_is_refused_or_left_out(tmp_path):
    workdir = write_workdir(tmp_path, (0, 1))
    process = {"host": socket.gethostname(), "pid": os.getpid()}
    folder = run_directory(workdir, "A_h1", 1)
    update_record(folder, status="running", step=30, process=process)
    message = "A_h1/seed1: is running at update 30 of 100000; a run has texts when"
    asked = refusal(lambda: find_rows(workdir, NAMES, [1], "validation"))
    assert asked.startswith(message) and "wait until it is finished" in asked
    found = find_rows(workdir, NAMES, None, "validation")
    assert [p.seeds for p in found.pairs] == [(0, 0)]
    assert found.left_out[0].startswith(message)
    none = refusal(lambda: find_rows(workdir, ("base", "C_N2"), None, "validation"))
    assert "C_N2/seed0: is pending" in none and "C_N2/seed1" in none
    other = [run_directory(workdir, "base", 1), folder]
    assert "is running" in refusal(lambda: find_runs(other, "validation"))
    unknown = refusal(lambda: find_rows(workdir, NAMES, [7], "validation"))
    assert "A_h1/seed7: there is no such run; row A_h1 has seeds 0, 1" in unknown


def test_texts_that_are_stale_or_missing_are_refused_with_the_remedy(workdir):
    folder = run_directory(workdir, "A_h1", 0)
    path = folder / "translations" / "validation.txt"

    def refused():
        return refusal(lambda: find_rows(workdir, NAMES, None, "validation"))

    lines = read_lines(path)
    path.write_text("".join(f"{line} y\n" for line in lines))
    assert "stale translations: they do not give the recorded BLEU" in refused()
    assert f"python -m experiments.evaluate --run={folder}" in refused()
    path.write_text("".join(f"{line}\n" for line in lines))
    sources = folder / "translations" / "validation.source.txt"
    sources.write_text("one\n")
    assert "1 sources for 4 references" in refused()
    sources.unlink()
    assert "no stored sources" in refused()
    reference_file(folder, "validation").unlink()
    assert "no stored references" in refused()


def test_runs_on_other_text_are_refused_naming_the_difference(workdir):
    row = written.paper_rows(("A_h1",))[0]

    def refused():
        return refusal(lambda: find_rows(workdir, NAMES, None, "validation"))

    write_run(workdir, row, OTHER, references=[*REFERENCES[:3], "the dog"])
    assert "other references of split validation" in refused()
    assert "the first that differs is line 4" in refused()
    write_run(workdir, row, OTHER, sources=["x", *SOURCES[1:]])
    assert "other sources" in refused() and "is line 1" in refused()
    short = {"references": REFERENCES[:3], "sources": SOURCES[:3]}
    write_run(workdir, row, OTHER[:3], **short)
    assert "other numbers of sentences: 4 and 3" in refused()
    write_run(workdir, row, OTHER, metric=BLEU(tokenize="intl"))
    assert "other sacreBLEU signatures" in refused() and "tok:intl" in refused()


def test_other_references_with_another_seed_are_refused(tmp_path):
    workdir = write_workdir(tmp_path, (0, 1))
    changed = ["x", *REFERENCES[1:]]
    for row, lines in zip(written.paper_rows(NAMES), (BASE, OTHER), strict=True):
        write_run(workdir, row, lines, 1, references=changed)
    message = refusal(lambda: find_rows(workdir, NAMES, None, "validation"))
    assert "base/seed0 and" in message and "base/seed1 have other references" in message


def test_split_goes_by_its_name_or_its_part(workdir):
    rows = written.paper_rows(NAMES)
    for row, lines in zip(rows, (BASE, OTHER), strict=True):
        row["config"]["data"] |= {"validation_split": "val", "test_split": None}
        write_run(workdir, row, lines, split="val")
    assert find_rows(workdir, NAMES, None, "validation").split == "val"
    assert find_rows(workdir, NAMES, None, "val").split == "val"
    none = refusal(lambda: find_rows(workdir, NAMES, None, "test"))
    assert "has no test split" in none and "--split=validation" in none
    wrong = refusal(lambda: find_rows(workdir, NAMES, None, "vall"))
    assert "unknown split 'vall'; did you mean val?" in wrong


def test_split_that_was_not_scored_is_refused(workdir):
    message = refusal(lambda: find_rows(workdir, NAMES, None, "test"))
    assert "was not scored on split test" in message and "--split=test" in message


def test_folders_that_are_no_two_runs_are_refused(workdir, tmp_path):
    run = run_directory(workdir, "base", 0)

    def refused(*folders):
        return refusal(lambda: find_runs(folders, "validation"))

    assert "names 1, but two folders" in refused(run)
    assert "are one folder" in refused(run, run.parent / "." / ".." / "base" / "seed0")
    assert "there is no such folder" in refused(run, tmp_path / "x")
    hint = refused(run, workdir)
    assert "holds no run (record.json is missing)" in hint
    assert f"for example {run_directory(workdir, 'A_h1', 0)}" in hint
    moved = shutil.copytree(run, tmp_path / "moved")
    assert find_runs([moved, run], "validation").names[0] == str(moved)


@pytest.mark.parametrize("tokenize", ["char", "zh"])
def test_languages_without_spaces_are_compared_by_their_tokeniser(tmp_path, tokenize):
    workdir = write_workdir(tmp_path)
    references = ["猫坐在垫子上", "狗叫了", "完", "狗看见了猫"]
    texts = (["猫坐在垫子", "狗叫了", "完", "狗看见猫"], references)
    for row, lines in zip(written.paper_rows(NAMES), texts, strict=True):
        metric = BLEU(tokenize=tokenize)
        write_run(workdir, row, lines, references=references, metric=metric)
    made = compared(workdir)
    # 15 letters, of which base lacks two.
    assert made.pairs[0].corpus["length"].first == pytest.approx(13 / 15)
    assert made.pairs[0].corpus["ter"].first == pytest.approx(100 * 2 / 15)
    assert [n.words for n in made.ngrams[1][:2]] == ["在 垫 子 上", "狗 看 见 了"]
    assert f"tokeniser, {tokenize}" in text.as_text(made, 1)
