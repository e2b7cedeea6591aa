"""Tests of sentences: sacreBLEU's own p, kept, and only for the texts of the scores."""

import json
import os
import random

import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from tests.report import written_sweeps as written
from transformer_ablation.report import sentence_tests as module
from transformer_ablation.report.record import run_directory, write_record, write_sweep
from transformer_ablation.report.render import render
from transformer_ablation.report.sentence_tests import Settings
from transformer_ablation.report.table import Options, read_table
from transformer_ablation.report.translations import normal_form_mismatches, write_texts

WORDS = [f"w{i}" for i in range(50)]
FAST = Settings(samples=120, seed=7)


def texts():
    """References and the worse and worse hypotheses of three rows."""
    draw = random.Random(5)
    references = [" ".join(draw.choices(WORDS, k=9)) for _ in range(40)]
    hypotheses = {
        name: [
            " ".join(w if draw.random() > rate else "x" for w in line.split())
            for line in references
        ]
        for name, rate in (("base", 0.2), ("A_h1", 0.5), ("B_dk16", 0.22))
    }
    return references, hypotheses


def bleu(hypotheses, references):
    return BLEU().corpus_score(hypotheses, [references]).score


def write_run(workdir, row, seed, hypotheses, references):
    record = written.scored(row, 5.0, bleu(hypotheses, references), seed)
    folder = run_directory(workdir, row["name"], seed)
    write_record(folder, record)
    pairs = [("source", line) for line in references]
    path = folder / "translations" / "validation.txt"
    path.parent.mkdir(exist_ok=True)
    write_texts(path, "validation", hypotheses, pairs)


@pytest.fixture
def workdir(tmp_path):
    rows = written.paper_rows(("base", "A_h1", "B_dk16"))
    write_sweep(tmp_path, written.sweep(rows))
    references, hypotheses = texts()
    for row in rows:
        write_run(tmp_path, row, 0, hypotheses[row["name"]], references)
    return tmp_path


def table_of(workdir, settings=FAST, said=None):
    said = [] if said is None else said
    return read_table(workdir, Options(sentences=settings), said.append)


def found_in(table):
    return {row.name: row.tests for row in table.rows}


def by_sacrebleu(name, kind, samples, seed, monkeypatch):
    references, hypotheses = texts()
    monkeypatch.setenv("SACREBLEU_SEED", str(seed))
    systems = [("base", hypotheses["base"]), (name, hypotheses[name])]
    test = PairedTest(
        systems, {"BLEU": BLEU()}, [references], test_type=kind, n_samples=samples
    )
    signatures, scores = test()
    return scores["BLEU"][1].p_value, str(signatures["BLEU"])


def test_p_and_signature_are_sacrebleus(workdir, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    found = found_in(table_of(workdir))
    assert os.environ["SACREBLEU_SEED"] == "99"
    for name in ("A_h1", "B_dk16"):
        for kind, short in (("bootstrap", "bs"), ("randomization", "ar")):
            p, signature = by_sacrebleu(name, short, 120, 7, monkeypatch)
            test = found[name].sentences[0][kind]
            assert (test.p, test.signature) == (p, signature)
            assert f"{short}:120|seed:7" in test.signature
    assert found["base"].sentences == {}


def test_corrected_over_the_rows_and_told(workdir):
    table = table_of(workdir)
    found = found_in(table)
    clear, unclear = found["A_h1"].sentences[0], found["B_dk16"].sentences[0]
    for kind in clear:
        # Of two rows the smaller p counts twice.
        assert clear[kind].p < unclear[kind].p
        assert clear[kind].adjusted == pytest.approx(2 * clear[kind].p)
        assert unclear[kind].adjusted == pytest.approx(unclear[kind].p)
    assert found["A_h1"].distinguishable and found["A_h1"].basis == "sentences"
    assert found["B_dk16"].distinguishable is False
    text = " ".join(render(table).split())
    assert "not distinguishable from base at 5%: B_dk16." in text
    assert "paired bootstrap resampling (120 resamples)" in text
    assert "by sacreBLEU with seed 7, two-sided, corrected by Holm's method" in text
    assert "Power: how many seeds would show 0.3 BLEU is not known" in text
    line = next(line for line in render(table).splitlines() if "B_dk16" in line)
    assert " ns " in line


def test_second_call_tests_nothing_again(workdir, monkeypatch):
    said = []
    first = found_in(table_of(workdir, said=said))
    assert said == ["testing sentences: 4 tests, kept for the next call"]
    monkeypatch.setattr(module, "compute", None)
    monkeypatch.setattr(module, "_measured", None)
    assert found_in(table_of(workdir, said=said)) == first
    assert len(said) == 1
    with pytest.raises(TypeError):  # another seed is another test
        table_of(workdir, FAST._replace(seed=8))


def test_damaged_cache_is_made_again(workdir):
    first = found_in(table_of(workdir))
    (workdir / module.CACHE_FILE).write_text("{")
    assert found_in(table_of(workdir)) == first
    assert json.loads((workdir / module.CACHE_FILE).read_text())


def test_folder_in_the_place_of_the_cache_stops_nothing(workdir):
    (workdir / module.CACHE_FILE).mkdir()
    said = []
    table = read_table(workdir, Options(sentences=FAST), said.append)
    assert table.rows[1].tests.sentences
    assert any(f"{module.CACHE_FILE}: not kept" in line for line in said)


def test_workdir_that_cannot_be_written_still_gives_its_table(workdir, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "locked", refuse)
    said = []
    assert found_in(table_of(workdir, said=said))["A_h1"].distinguishable
    assert any("not kept for the next call (permission denied)" in s for s in said)


def test_many_tests_use_processes_and_give_the_same(workdir, monkeypatch):
    alone = found_in(table_of(workdir))
    (workdir / module.CACHE_FILE).unlink()
    monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.setattr(module.process, "cores", lambda: {0, 1})
    assert found_in(table_of(workdir)) == alone


def test_texts_that_do_not_give_the_score_are_not_tested(workdir):
    folder = run_directory(workdir, "A_h1", 0) / "translations"
    lines = (folder / "validation.txt").read_text().splitlines()
    (folder / "validation.txt").write_text("".join(f"{s} y\n" for s in lines))
    (
        run_directory(workdir, "B_dk16", 0) / "translations/validation.reference.txt"
    ).unlink()
    table = table_of(workdir)
    assert {
        name: t.sentences for name, t in found_in(table).items() if t.sentences
    } == {}
    text = " ".join(render(table).split())
    assert "A_h1/seed0: stale translations: they do not give the recorded BLEU" in text
    assert "B_dk16/seed0: no stored references" in text
    # Those of a later scoring do: they are found by their BLEU.
    (folder / "validation.update9-x.txt").write_text("".join(f"{s}\n" for s in lines))
    assert found_in(table_of(workdir))["A_h1"].sentences


def test_other_references_than_bases_are_not_tested(workdir):
    references, hypotheses = texts()
    row = written.paper_rows(("A_h1",))[0]
    other = ["w1 " + line for line in references]
    write_run(workdir, row, 0, hypotheses["A_h1"], other)
    table = table_of(workdir)
    assert found_in(table)["A_h1"].sentences == {}
    assert "A_h1/seed0: other references than base's" in " ".join(render(table).split())


def test_no_test_is_made_where_none_is_asked_for(workdir):
    assert found_in(table_of(workdir, None))["A_h1"].sentences == {}
    assert not (workdir / module.CACHE_FILE).exists()
    one = found_in(table_of(workdir, FAST._replace(kinds=("bootstrap",))))
    assert list(one["A_h1"].sentences[0]) == ["bootstrap"]


def test_too_few_samples_are_told(workdir):
    text = " ".join(render(table_of(workdir, Settings(samples=20))).split())
    assert "No p can come out below 0.095 with so few samples" in text  # 2 / 21


def test_words_in_two_normal_forms_are_counted_once_a_sentence(workdir):
    composed, apart = "caf\u00e9", "cafe\u0301"
    assert normal_form_mismatches([composed], [composed]) == 0
    assert normal_form_mismatches([apart], [apart]) == 0
    lines = [f"a {composed} {composed}", f"{apart} b", "cafe", ""]
    theirs = [f"{apart} a", composed, apart, apart]
    assert normal_form_mismatches(lines, theirs) == 2
    references, hypotheses = texts()
    references[3] += " " + composed
    hypotheses["A_h1"][3] += " " + apart
    for row in written.paper_rows(("base", "A_h1", "B_dk16")):
        write_run(workdir, row, 0, hypotheses[row["name"]], references)
    text = " ".join(render(table_of(workdir)).split())
    assert "which BLEU counts as wrong: A_h1/seed0 1." in text


def test_seeds_count_where_there_are_two(workdir):
    references, hypotheses = texts()
    for i, row in enumerate(written.paper_rows(("base", "A_h1", "B_dk16"))):
        changed = hypotheses[row["name"]][: -1 - i] + references[-1 - i :]
        write_run(workdir, row, 1, changed, references)
    table = table_of(workdir)
    found = found_in(table)
    assert found["A_h1"].basis == "seeds" and found["A_h1"].different_seeds == 2
    assert found["B_dk16"].different_seeds == 0
    text = render(table)
    lines = [line for line in text.splitlines() if " B_dk16 " in f"{line} "]
    assert any(" 0/2 " in line for line in lines)
    joined = " ".join(text.split())
    assert "paired t-test of the row's differences to base by seed" in joined
    assert "n = 2, corrected by Holm's method over 2 rows" in joined
    assert (
        "Power: " in joined and "seeds a row would show a difference of 0.3" in joined
    )


def test_equal_translations_are_not_called_different(workdir):
    """sacreBLEU's own p of them is 1 / (samples + 1): no sample is larger than 0."""
    references, hypotheses = texts()
    (row,) = written.paper_rows(("A_h1",))
    write_run(workdir, row, 0, hypotheses["base"], references)
    found = found_in(table_of(workdir))["A_h1"]
    assert {test.p for test in found.sentences[0].values()} == {1.0}
    assert found.distinguishable is False
    assert "ns: BLEU not distinguishable" in render(table_of(workdir), "text")


@pytest.mark.parametrize(
    ("differing", "least"),
    # One sentence, swapped or not: |difference| is the same. Of 2 x 2 ways two are.
    [(0, 1), (1, 1), (2, 0.5), (6, 1 / 32)],
)
def test_few_sentences_that_differ_allow_no_small_p(differing, least):
    base = ["a"] * 20
    row = ["b"] * differing + base[differing:]
    assert module.least_p(base, row) == least


@pytest.mark.parametrize("differing", [1, 4, 5])
def test_both_tests_have_the_least_p(workdir, differing):
    """All that differ are better, which a resample seldom exceeds twice: p is small.

    The count of them in a resample is about Poisson: P(more than 8 of 4) is 0.02.
    """
    draw = random.Random(3)
    references = [" ".join(draw.choices(WORDS, k=9)) for _ in range(200)]
    hypotheses = [f"x {line[3:]}" for line in references]
    changed = references[:differing] + hypotheses[differing:]
    base, row = written.paper_rows(("base", "A_h1"))
    write_run(workdir, base, 0, hypotheses, references)
    write_run(workdir, row, 0, changed, references)
    found = found_in(table_of(workdir))["A_h1"].sentences[0]
    least = {1: 1, 4: 0.125, 5: 0.0625}[differing]
    # No swap of some gives a larger difference than all of them on one side do.
    assert {kind: test.p for kind, test in found.items()} == dict.fromkeys(
        ("bootstrap", "randomization"), least
    )


def test_p_that_was_stored_without_a_least_one_is_made_again(workdir):
    first = found_in(table_of(workdir))
    path = workdir / module.CACHE_FILE
    digests = {
        name: module._digest(
            run_directory(workdir, name, 0) / "translations" / f"validation{end}.txt"
        )
        for name, end in (("base", ""), ("A_h1", ""), ("B_dk16", ".reference"))
    }
    references = digests.pop("B_dk16")
    how = ("least p", "bootstrap", "bleu", written.SIGNATURE, 120, 7)
    key = module.key_of(*how, *sorted(digests.values()), references)
    path.write_text(json.dumps({key: {"p": 0.5, "signature": "of before"}}))
    assert found_in(table_of(workdir)) == first


def test_one_sentence_that_differs_makes_no_difference(workdir):
    references, hypotheses = texts()
    (row,) = written.paper_rows(("A_h1",))
    changed = [references[0], *hypotheses["base"][1:]]
    assert changed != hypotheses["base"]
    write_run(workdir, row, 0, changed, references)
    found = found_in(table_of(workdir))["A_h1"].sentences[0]
    assert {test.p for test in found.values()} == {1.0}
