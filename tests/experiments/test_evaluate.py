"""``evaluate``: a run's checkpoints scored again, into its record."""

import json

import pytest

from experiments import command, evaluate, tables
from transformer_ablation.report.record import read_record, update_record


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
        ("--average=9", "decode.average_checkpoints: 9 are averaged, but"),
        ("--length_penalty=google", "decode.length_penalty: 'google' is not allowed"),
        ("--run=", "--run is missing"),
    ],
)
def test_refused_request_leaves_the_record(run, workdir, argument, said):
    before = (workdir / "runs/base/seed0/record.json").read_bytes()
    code, out, error = run(argument)
    assert (code, out) == (2, "") and said in error
    assert (workdir / "runs/base/seed0/record.json").read_bytes() == before


def test_run_that_still_goes_on_is_refused(run, workdir):
    from transformer_ablation.report.record import this_process

    directory = workdir / "runs/base/seed0"
    update_record(directory, status="running", process=this_process())
    code, _, error = run()
    assert code == 2 and "is still running" in error
