"""``evaluate``: a run's checkpoints scored again, into its record."""

import json
import shutil

import pytest

from experiments import command, evaluate, tables
from experiments.scoring import score as score_splits
from tests.experiments.tiny_sweeps import COUNTS
from transformer_ablation.report.record import add_scores, read_record, update_record


@pytest.fixture
def run(workdir, folder, capsys):
    """``run(*arguments)``: exit code, stdout, stderr for base."""

    def run(*arguments):
        given = [f"--run={workdir / 'runs/base/seed0'}", f"--cache={folder / 'cache'}"]
        code = command.run(evaluate.COMMAND, [*given, *arguments])
        return (code, *capsys.readouterr())

    return run


def by_kind(scores):
    return {(s["split"], s["metric"], len(s["steps"])): s for s in scores}


def test_scores_with_the_runs_own_settings_are_the_runs(run, workdir):
    directory = workdir / "runs/base/seed0"
    before = by_kind(read_record(directory)["scores"])
    code, out, _ = run("--format=json")
    assert code == 0
    found = by_kind(json.loads(out)["scores"])
    assert found.keys() == before.keys() and len(found) == 6
    for key, score in found.items():
        # Other devices than the sweep's sum in another order.
        assert score["value"] == pytest.approx(before[key]["value"], rel=1e-4), key
    # The same scores take the place of the old.
    assert len(read_record(directory)["scores"]) == 6


def test_averaged_scores_stand_beside_the_single_ones(run, workdir, capsys):
    code, out, error = run("--average=2", "--split=validation")
    assert code == 0
    assert error.startswith("loading checkpoint 100, 150 of ")
    assert error.endswith(" ...\nscoring validation ...\n")
    lines = out.splitlines()
    assert lines[0].startswith("validation ppl ") and len(lines) == 3
    assert "average of 2 checkpoints 100, 150" in lines[0]
    record = read_record(workdir / "runs/base/seed0")
    assert len(record["scores"]) == 6 + 3
    assert command.run(tables.COMMAND, [f"--workdir={workdir}"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "averaged" in text and "the average of 2 checkpoints (100, 150)" in text


def test_translations_are_kept_beside_the_runs_own(run, workdir):
    folder = workdir / "runs/base/seed0/translations"
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert run("--beam_size=1", "--split=validation")[0] == 0
    after = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert before.items() <= after.items()
    (new,) = after.keys() - before.keys()
    assert new.startswith("validation.update150-") and "beam_size1" in new
    assert after[new].count(b"\n") == 7


@pytest.mark.parametrize(
    "argument, said",
    [
        ("--split=train", "--split=train: the run scores validation and test_2016"),
        ("--split=test", "another, train with --config.data.test_split=NAME in anoth"),
        ("--average=9", "--average=9: the run has 2 checkpoints at most (train.keep_"),
        ("--average=0", "--average: 0 is not allowed"),
        ("--length_penalty=google", "--length_penalty: 'google' is not allowed"),
        ("--run=", "--run is missing"),
    ],
)
def test_refused_request_leaves_the_record(run, workdir, argument, said):
    before = (workdir / "runs/base/seed0/record.json").read_bytes()
    code, out, error = run(argument)
    assert (code, out) == (2, "") and said in error
    assert (workdir / "runs/base/seed0/record.json").read_bytes() == before


def test_run_that_still_goes_on_is_refused(run, workdir):
    from transformer_ablation.process import this_process

    directory = workdir / "runs/base/seed0"
    update_record(directory, status="running", process=this_process())
    code, _, error = run()
    assert code == 2 and "is still running" in error


def reversed_words(lines):
    return [" ".join(reversed(line.split())) for line in lines]


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"en": reversed_words}, "split validation: the text of en differs"),
        (
            {"en": lambda lines: lines[:-1], "de": lambda lines: lines[:-1]},
            f"split validation: {COUNTS['val']} pairs, {COUNTS['val'] - 1} now",
        ),
    ],
)
def test_text_changed_since_the_training_is_refused_by_its_split(
    run, workdir, folder, tmp_path, changed, said
):
    """The training text, and so the vocabulary, is as it was."""
    corpus = shutil.copytree(folder / "corpus", tmp_path / "corpus")
    for language, change in changed.items():
        lines = (corpus / f"val.{language}").read_text().splitlines()
        text = "".join(f"{line}\n" for line in change(lines))
        (corpus / f"val.{language}").write_text(text)
    directory = workdir / "runs/base/seed0"
    config = json.loads((directory / "config.json").read_text())
    config["data"]["directory"] = str(corpus)
    (directory / "config.json").write_text(json.dumps(config))
    before = (directory / "record.json").read_bytes()
    code, out, error = run("--split=validation")
    assert (code, out) == (2, "") and said in error and "test_2016" not in error
    assert f"put the text it was trained on back (data.directory = {corpus})" in error
    assert (directory / "record.json").read_bytes() == before


def test_run_of_another_results_version_is_refused(run, workdir):
    update_record(workdir / "runs/base/seed0", results_version=0)
    code, _, error = run()
    assert code == 2 and "are of results version 0, this program's of 1" in error


def test_scores_added_meanwhile_are_kept(run, workdir, monkeypatch):
    """Another process scores the run with a beam of 1 while this one is scoring."""
    directory = workdir / "runs/base/seed0"
    (other,) = (
        s
        for s in read_record(directory)["scores"]
        if (s["split"], s["metric"]) == ("validation", "bleu")
    )
    other = {**other, "decode": {**other["decode"], "beam_size": 1}}

    def slowly(*arguments, **more):
        add_scores(directory, [other])
        return score_splits(*arguments, **more)

    monkeypatch.setattr("experiments.scoring.score", slowly)
    assert run("--average=2", "--split=validation")[0] == 0
    scores = read_record(directory)["scores"]
    assert len(scores) == 6 + 1 + 3 and other in scores
