"""``compare`` as a command: its formats and files, and what it refuses."""

import collections
import gzip
import json
import pathlib
import shutil
import sys

import pytest
from sacrebleu.metrics import BLEU

from experiments import command, compare, compare_flags
from tests.report.comparison.written_runs import NAMES, write_workdir
from transformer_ablation.report.comparison import words
from transformer_ablation.report.record import (
    read_record,
    run_directory,
    update_record,
)
from transformer_ablation.report.translations import read_lines

QUICK = ("--samples=20", "--noter")


@pytest.fixture
def written(tmp_path):
    return write_workdir(tmp_path / "written")


def run(workdir, *arguments):
    given = [f"--workdir={workdir}", f"--rows={','.join(NAMES)}", *QUICK, *arguments]
    cache = f"--cache={pathlib.Path(workdir).parent / 'cache'}"
    return command.run(compare.COMMAND, [*given, cache])


def test_text_is_printed_and_progress_told_apart(written, capsys):
    assert run(written) == 0
    out, err = capsys.readouterr()
    assert out.startswith("A_h1 against base: split validation, 4 sentences")
    assert "testing sentences: 2 tests" in err and "testing" not in out
    assert "TER nrefs" not in out
    flat = " ".join(out.split())
    assert "those in the references (the run's config is of another version" in flat


def test_json_and_html_go_to_a_file(written, tmp_path, capsys):
    out = tmp_path / "new" / "c.json"
    assert run(written, "--format=json", f"--out={out}") == 0
    assert json.loads(out.read_text("utf-8"))["second"] == "A_h1"
    assert run(written, "--format=html", f"--out={out}", "--sentences=1") == 0
    assert out.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert capsys.readouterr().out == f"wrote {out}\n" * 2


def test_page_is_printed_to_a_pipe_but_not_to_a_terminal(
    written, capsysbinary, monkeypatch
):
    assert run(written, "--format=html") == 0
    assert capsysbinary.readouterr().out.startswith(b"<!DOCTYPE html>")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(written, "--format=html") == 2
    assert b"name its file: --out=report.html" in capsysbinary.readouterr().err


def test_options_reach_the_comparison(written, capsys):
    given = ("--length_buckets=2,7", "--frequency_buckets=3", "--ngrams=1")
    given += ("--ngram_kind=over", "--sentence_metric=bleu", "--test=bootstrap")
    assert run(written, *given, "--test_metrics=chrf", "--format=json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [x["length"] for x in found["lengths"]] == ["0-1", "2-6", "7+"]
    assert [x["frequency"] for x in found["f1"]] == ["0-2", "3+"]
    assert [len(found["ngrams"][side]) for side in ("first", "second")] == [1, 1]
    assert found["ngrams"]["kind"] == "over"
    assert found["sentence_metric"] == "bleu"
    assert list(found["pairs"][0]["tests"]) == ["chrf"]
    assert list(found["pairs"][0]["tests"]["chrf"]) == ["bootstrap"]
    assert run(written, "--test=none", "--length_unit=characters", "--ter") == 0
    out = capsys.readouterr().out
    assert "in characters" in out and "p bootstrap" not in out and "TER" in out
    assert "Paired tests" not in out


def test_two_runs_by_their_folders(written, capsys):
    folders = [str(run_directory(written, name, 0)) for name in NAMES]
    given = [f"--runs={','.join(folders)}", *QUICK, "--frequencies=references"]
    assert command.run(compare.COMMAND, given) == 0
    out = capsys.readouterr().out
    assert "A_h1 against base" in out and "as --frequencies asks" in out
    assert command.run(compare.COMMAND, [*given, "--seeds=0"]) == 2
    assert "leave --seeds away" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows=base"], "names 1, but two rows"),
        (["--rows=base,A_h7"], "unknown row 'A_h7'; did you mean A_h1"),
        (["--seeds=x"], "--seeds=x: it must be whole numbers"),
        (["--split=tset"], "unknown split 'tset'; did you mean test?"),
        (["--length_buckets=10,5"], "--length_buckets=10,5: it must be whole numbers"),
        (["--length_buckets=0,5"], "from 1 that ascend"),
        (["--frequency_buckets=a"], "--frequency_buckets=a: it must"),
        (["--test_metrics=bleu,meteor"], "must be of bleu, chrf, ter"),
        (["--frequencies=training"], "leave the flag away to count in the references"),
        (["--format=xml"], "format"),
        (["--sentences=-1"], "sentences"),
        (["--out="], "name a file"),
    ],
)
def test_request_that_cannot_be_met_is_refused(written, capsys, arguments, message):
    assert run(written, *arguments) == 2
    out, err = capsys.readouterr()
    assert message in err and "Traceback" not in err and out == ""


def test_file_that_cannot_be_written_is_refused_before_the_work(written, capsys):
    assert run(written, f"--out={written}") == 2
    assert "is a folder" in capsys.readouterr().err
    assert run(written, f"--out={written / 'sweep.json' / 'x.txt'}") == 2
    err = capsys.readouterr().err
    assert "sweep.json is no folder" in err and "testing" not in err


@pytest.mark.parametrize("missing", ["workdir", "rows"])
def test_missing_flag_is_named(capsys, missing):
    given = {"workdir": "--workdir=w", "rows": "--rows=a,b"}
    del given[missing]
    assert command.run(compare.COMMAND, list(given.values())) == 2
    assert f"--{missing} is missing" in capsys.readouterr().err


def test_folder_without_runs_is_refused(tmp_path, capsys):
    assert run(tmp_path) == 2
    assert "holds neither sweep.json nor a run" in capsys.readouterr().err
    assert run(tmp_path / "x") == 2
    assert "no such folder" in capsys.readouterr().err


def test_buckets_of_help_are_the_defaults():
    assert compare_flags.options(_values()).lengths == (10, 20, 30, 40, 50, 60)


def _values():
    from absl import flags

    values = flags.FlagValues()
    compare_flags.define(values)
    values(["compare"])
    return values


def test_trained_runs_are_compared_by_words_of_their_training_text(
    folder, workdir, tmp_path, capsys, monkeypatch
):
    cache = shutil.copytree(folder / "cache", tmp_path / "cache")
    given = [f"--workdir={workdir}", "--rows=base,narrow", "--split=test", *QUICK]
    given += [f"--cache={cache}", "--frequencies=training", "--format=json"]
    assert command.run(compare.COMMAND, given) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["split"] == "test_2016_flickr" and found["sentences"] == 5
    assert found["frequencies"]["origin"] == "the de side of 60 training pairs"
    # Their words have no marks in them, so BLEU's are those between spaces.
    (train,) = (folder / "corpus").glob("train.de*")
    lines = gzip.decompress(train.read_bytes()).decode().splitlines()
    counts = collections.Counter(word for line in lines for word in line.split())
    run_folder = run_directory(workdir, "base", found["pairs"][0]["seeds"][0])
    place = run_folder / "translations" / "test_2016_flickr.reference.txt"
    often = [10 <= counts[word] < 100 for word in " ".join(read_lines(place)).split()]
    groups = found["pairs"][0]["words"]
    (bucket,) = [x for x in groups if x["frequency"] == "10-99"]
    assert bucket["references"] == sum(often) > 0
    hypotheses = read_lines(run_folder / "translations" / "test_2016_flickr.txt")
    expected = BLEU().corpus_score(hypotheses, [read_lines(place)]).score
    assert found["pairs"][0]["scores"]["bleu"]["first"] == pytest.approx(expected)

    # The counts are kept; those of other text are not taken.
    monkeypatch.setattr(words, "frequencies", None)
    assert command.run(compare.COMMAND, given) == 0
    assert json.loads(capsys.readouterr().out)["f1"] == found["f1"]
    monkeypatch.undo()
    for name in ("base", "narrow"):
        run_place = run_directory(workdir, name, 0)
        known = read_record(run_place)["data"]
        update_record(run_place, data={**known, "manifest_hash": "0"})
    assert command.run(compare.COMMAND, given) == 2
    assert "is not what the run was trained on" in capsys.readouterr().err
    shutil.rmtree(cache)
    assert command.run(compare.COMMAND, given) == 2
    assert "where python -m experiments.prepare puts it" in capsys.readouterr().err
