"""``attention``: pictures of sentences, tables of heads, and what is refused."""

import csv
import io
import itertools
import json
import re
import shutil
import types
from pathlib import Path

import numpy as np
import pytest

from experiments import attention, command
from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.evaluate import head_importance
from transformer_ablation.evaluate.attention import Attention, Recorder
from transformer_ablation.report.record import read_record, update_record


@pytest.fixture(scope="module")
def base(folder, tmp_path_factory):
    """A finished run, of 1 layer of 2 heads, free to have pictures in it."""
    copy = tmp_path_factory.mktemp("attention") / "model"
    return shutil.copytree(tiny.straight(folder) / "runs/base/seed0", copy)


@pytest.fixture
def run(base, folder, capsys):
    """``run(*arguments)``: exit code, stdout, stderr."""

    def run(*arguments, of=base):
        given = [f"--run={of}"] * (of is not None) + [f"--cache={folder / 'cache'}"]
        code = command.run(attention.COMMAND, [*given, *map(str, arguments)])
        return (code, *capsys.readouterr())

    return run


def wrote(out):
    return re.findall("^wrote (.*)$", out, re.MULTILINE)


def test_sentence_becomes_three_sheets_and_a_page(run, base):
    code, out, _ = run("--source=red dog", "--target=rot hund")
    assert code == 0
    assert out.startswith("the sentence\n  source: red dog\n  target: rot hund\n")
    paths = wrote(out)
    assert len(paths) == 4 and all(
        p.startswith(f"{base}/attention/red_dog-") for p in paths
    )
    kinds = [re.search(r"-(encoder|decoder|cross)\.png$", p) for p in paths]
    assert [k and k[1] for k in kinds] == ["encoder", "decoder", "cross", None]
    contents = [Path(p).read_bytes() for p in paths]
    assert all(c.startswith(b"\x89PNG") for c in contents[:3])
    assert b"The target is the one given." in contents[3]
    # The same again has the same names; another target has others.
    assert wrote(run("--source=red dog", "--target=rot hund")[1]) == paths
    others = wrote(run("--source=red dog", "--target=rot")[1])
    assert not set(others) & set(paths)
    assert [Path(p).read_bytes() for p in paths] == contents


def test_target_is_the_runs_translation_unless_given(run, base, folder, tmp_path):
    """The third validation sentence; as its reference, and as the run translates it."""
    split = (folder / "corpus/val.en").read_text().splitlines()
    _, out, _ = run("--validation=3", f"--out={tmp_path}")
    reference = (folder / "corpus/val.de").read_text().splitlines()[2]
    assert f"validation line 3\n  source: {split[2]}\n  target: {reference}\n" in out
    _, out, _ = run(f"--source={split[2]}", f"--out={tmp_path}")
    expected = (base / "translations/validation.txt").read_text().splitlines()[2]
    assert f"  source: {split[2]}\n  target: {expected}\n" in out
    (page,) = [p for p in wrote(out) if p.endswith(".html")]
    assert "own translation, with a beam of 3" in Path(page).read_text("utf-8")


def test_several_sentences_are_on_one_page(run, tmp_path, monkeypatch):
    lines = b"red dog\nold man sees ball\n"
    stdin = types.SimpleNamespace(buffer=io.BytesIO(lines))
    monkeypatch.setattr("sys.stdin", stdin)
    code, out, _ = run("--source=-", f"--out={tmp_path}/new")
    assert code == 0 and "line 2\n  source: old man sees ball\n" in out
    assert len(wrote(out)) == 2 * 3 + 1
    code, out, _ = run("--validation=2:3", f"--out={tmp_path}/new")
    assert code == 0 and len(wrote(out)) == 2 * 3 + 1


def test_summary_is_a_row_a_head_in_each_format(run, tmp_path):
    """Their contents in detail are those of ``tests/report/test_head_table.py``."""
    code, text, error = run("--summary", "--format=csv")
    assert code == 0 and "summing up the attention in 7 sentences" in error
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["kind"], r["layer"], r["head"]) for r in rows] == [
        (kind, "1", head) for kind in ("encoder", "decoder", "cross") for head in "12"
    ]
    for row in rows:
        assert 0 <= float(row["entropy_share"]) <= 1
        assert float(row["maximum"]) >= float(row["first"]) > 0
        # Nothing later is seen by a decoder, so that is no number.
        assert (row["next"] == "") == (row["kind"] == "decoder")
    _, text, _ = run("--summary", "--format=json", "--sentences=2")
    (facts,) = json.loads(text)["runs"].values()
    assert facts["sentences"] == 2 and facts["updates"] == [150]
    page = tmp_path / "heads.html"
    code, out, _ = run("--summary", "--format=html", f"--out={page}")
    assert (code, out) == (0, f"wrote {page}\n")
    tables = page.read_text().split("<table")[1:]
    assert [table.count("<tr>") for table in tables] == [1 + 3, 1 + 6]


def test_importance_is_what_is_lost_of_the_runs_own_scores(run, base):
    code, out, error = run("--importance", "--bleu", "--format=json")
    assert code == 0
    assert "scoring without each of 6 heads: at most " in error
    assert "translating without each of 6 heads: at most " in error
    made = json.loads(out)
    (facts,) = made["runs"].values()
    scores = read_record(base)["scores"]
    recorded = {
        s["metric"]: s["value"] for s in scores
        if s["split"] == "validation" and len(s["steps"]) == 1
    }  # fmt: skip
    assert facts["ppl"] == pytest.approx(recorded["ppl"], rel=1e-4)
    assert facts["bleu"] == pytest.approx(recorded["bleu"], rel=1e-4)
    assert len(made["rows"]) == 6
    for row in made["rows"]:
        lost = facts["ppl"] * (2.718281828459045 ** row["loss_lost"] - 1)
        assert row["ppl_lost"] == pytest.approx(lost, rel=1e-6, abs=1e-9)
        assert row["bleu_lost"] <= facts["bleu"]


def test_interrupted_table_has_what_was_known(run, monkeypatch, tmp_path):
    """Ctrl-C while the second head's translations are made: the losses and the BLEU of
    the first are kept, and the exit code says that something is missing."""
    complete = head_importance.translations

    def interrupted(*arguments):
        yield from itertools.islice(complete(*arguments), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(head_importance, "translations", interrupted)
    place = tmp_path / "heads.json"
    flags = ("--importance", "--bleu", "--format=json", f"--out={place}")
    code, _, error = run(*flags)
    assert code == 1
    assert error.endswith("interrupted; the table has what was known by then\n")
    made = json.loads(place.read_text())
    (facts,) = made["runs"].values()
    assert facts["interrupted"] == "what is missing was not computed"
    known = [row["bleu_lost"] is not None for row in made["rows"]]
    assert known == [True] + 5 * [False]
    assert all(row["loss_lost"] is not None for row in made["rows"])


def test_runs_stand_beside_each_other(run, folder):
    runs = [tiny.straight(folder) / f"runs/{row}/seed0" for row in ("base", "narrow")]
    code, out, _ = run(
        "--summary", f"--runs={runs[0]},{runs[1]}", "--format=csv", of=None
    )
    assert code == 0
    names = [row["run"] for row in csv.DictReader(io.StringIO(out))]
    assert names == ["base/seed0"] * 6 + ["narrow/seed0"] * 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing is asked for: name a sentence"),
        (["--source=a", "--summary"], "--source and --summary: ask for one after"),
        (["--source=a", "--validation=1"], "--source and --validation: ask for one"),
        (["--validation=1", "--target=b"], "--target goes with --source"),
        (["--summary", "--bleu"], "--bleu goes with --importance"),
        (["--source=a", "--format=json"], "--format is of the tables"),
        (["--source=a", "--runs=x"], "--runs is of the tables"),
        (["--summary", "--runs=x"], "--runs names all runs"),
        (["--summary", "--runs="], "--runs names all runs"),
        (["--source= "], "the sentence: the source is blank"),
        (["--source=a", "--source="], "sentence 2: the source is blank"),
        (["--source=a", "--target="], "the sentence: the target is blank"),
        (["--source=a", "--target=b", "--target=c"], "1 --source, but 2 --target"),
        (["--source=a", "--source=-"], "--source=- reads all from stdin"),
        (["--source=" + "dog " * 200], "pieces with the end of sentence, more than the "
         "128 that a page shows; shorten it"),
        (["--source=a\nb"], "a line end in the middle of a line"),
        (["--validation=8"], "there is no line 8; the split has 7"),
        (["--validation=0"], "--validation=0: name a line from 1 on"),
        (["--validation=3:2"], "--validation=3:2: name a line"),
        (["--validation=1:21"], "a page shows from 1 to 20 sentences; more"),
        (["--summary", "--sentences=0"], "sentences"),
        (["--source=a", "--step=7"], "no checkpoint of update 7; there are [100, 150]"),
        (["--source=a", "--out=/proc/x"], "--out=/proc/x: cannot write there"),
        (["--summary", "--format=html", "--out=/proc"], "--out=/proc: is a folder"),
    ],
)  # fmt: skip
def test_refused_request_is_one_message(run, arguments, said):
    code, out, error = run(*arguments)
    assert (code, out) == (2, "") and said in error and "Traceback" not in error


@pytest.mark.parametrize("names", ["", ",", "x,"])
def test_runs_without_names_are_one_message(run, names):
    code, _, error = run("--summary", f"--runs={names}", of=None)
    assert code == 2 and f"--runs={names}: must name folders of runs" in error


def test_unfit_runs_are_refused(run, base, tmp_path):
    moved = shutil.copytree(base, tmp_path / "moved")
    update_record(moved, results_version=0)
    for asked in ("--source=a", "--summary"):
        code, _, error = run(asked, of=moved)
        assert code == 2 and "of results version 0, this program's of 1" in error
    (moved / "record.json").unlink()
    code, _, error = run("--summary", of=moved)
    assert code == 2 and "no record says which data it was trained on" in error
    assert run("--source=red", f"--out={tmp_path}", of=moved)[0] == 0
    shutil.rmtree(moved / "checkpoints")
    code, _, error = run("--source=a", of=moved)
    assert code == 2 and "no checkpoint yet" in error
    assert "the first comes by update 50" in error


def test_diverged_run_is_named(run, tmp_path, monkeypatch):
    def nothing(self, params, sources, targets):
        weights = np.full((1, 2, 3, 3), np.nan)
        return [Attention(weights, weights, weights)]

    monkeypatch.setattr(Recorder, "__call__", nothing)
    code, _, error = run("--source=a", "--target=b", f"--out={tmp_path}")
    assert code == 2 and "no finite attention: the run has diverged" in error
    assert not any(tmp_path.iterdir())


def test_no_run_is_worked_on_before_all_are_found_fit(run, base, tmp_path):
    broken = shutil.copytree(base, tmp_path / "broken")
    shutil.rmtree(broken / "checkpoints")
    code, _, error = run("--summary", f"--runs={base},{broken}", of=None)
    assert code == 2 and "no complete checkpoint" in error and "summing up" not in error
