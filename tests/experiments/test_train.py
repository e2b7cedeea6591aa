"""``train``: one run of a sweep's workdir, and its scores."""

import gzip
import json

import pytest

from experiments import command, train
from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.report.record import (
    new_record,
    read_record,
    read_sweep,
    update_record,
    write_record,
)


@pytest.fixture
def run(folder, workdir, capsys):
    """``run(*arguments)``: exit code, stdout and stderr of ``train`` in the workdir."""

    def run(*more):
        code = command.run(train.COMMAND, tiny.arguments(folder, workdir, *more))
        return (code, *capsys.readouterr())

    return run


def test_finished_run_is_not_run_again_and_its_scores_are_shown(run, workdir):
    directory = workdir / "runs/narrow/seed0"
    before = tiny.stamps(directory)
    code, out, error = run("--row=narrow", "--format=json")
    assert code == 0 and "nothing to do" in error
    assert tiny.stamps(directory) == before
    found, record = json.loads(out), read_record(directory)
    assert (found["row"], found["seed"], found["state"]) == ("narrow", 0, "finished")
    assert found["scores"] == record["scores"] and found["config"] == record["config"]
    assert found["steps"] == found["step"] == 150


def test_text_shows_every_score_of_the_record(run, workdir):
    record = read_record(workdir / "runs/base/seed0")
    code, out, _ = run()
    assert code == 0 and out.startswith("base seed 0: finished\n")
    assert len(record["scores"]) == 6  # PPL and two BLEUs of two splits
    for score in record["scores"]:
        shown = f"{score['split']} {score['metric']} {score['value']:.2f} "
        assert shown + f"({score['sentences']} sentences, checkpoint 150)" in out


# Parts that a trace tells apart.
SCOPES = (
    "Transformer.encode Transformer.decode Transformer._embed self_attention "
    "cross_attention feed_forward norm projection_and_loss sum_over_devices optimizer"
).split()


def test_run_of_one_row_equals_that_row_of_the_sweep(folder, tmp_path):
    """Same identity, numbers and folder, in a workdir of its own; traced besides."""
    workdir = tmp_path / "one"
    more = ("--row=smooth", "--profile=2:3", "--format=json")
    given = tiny.arguments(folder, workdir, *more)
    done = tiny.process("train", given)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    ours = workdir / "runs/smooth/seed0"
    theirs = tiny.straight(folder) / "runs/smooth/seed0"
    assert found["directory"] == str(ours)
    assert read_record(ours)["identity"] == read_record(theirs)["identity"]
    assert found["scores"] == read_record(theirs)["scores"]
    assert tiny.checkpoint(ours) == tiny.checkpoint(theirs)
    assert [r["name"] for r in read_sweep(workdir)["rows"]] == ["smooth"]
    assert [p.name for p in (workdir / "runs").iterdir()] == ["smooth"]
    assert f"updates 2 to 3 traced: {ours}" in done.stderr.decode()
    (trace,) = ours.glob("plugins/profile/*/*.xplane.pb")
    held = trace.read_bytes()
    assert [name for name in SCOPES if name.encode() not in held] == []
    (events,) = ours.glob("plugins/profile/*/*.trace.json.gz")
    events = json.loads(gzip.decompress(events.read_bytes()))["traceEvents"]
    numbers = {e["args"]["step_num"] for e in events if "step_num" in e.get("args", {})}
    assert numbers == {"2", "3"}


def test_run_without_scores_is_a_failure_with_its_reason(run, workdir):
    """A diverged run is not run again, and has no result."""
    reason = "loss is nan at update 7"
    directory = workdir / "runs/base/seed0"
    update_record(directory, status="diverged", reason=reason, scores=[])
    code, out, error = run()
    assert code == 1 and "nothing to do" in error
    assert out.startswith(f"base seed 0: diverged ({reason})\n")


def test_seed_is_the_flag_s_else_the_config_s(run, workdir):
    """Marked diverged, so that nothing is trained."""
    record = read_record(workdir / "runs/base/seed0")
    asked = []
    for more in (["--seed=3"], ["--config.train.seed=2"]):
        code, out, error = run(*more, "--row=unknown")
        assert (code, out) == (2, "") and error.startswith("unknown row 'unknown'")
    from experiments import sweep_launch, sweep_runs
    from transformer_ablation.sweep.outcome import Outcome

    def launch(todo, *given):
        asked.extend(todo)
        for each in todo:
            known = {"identity": each.identity, "config": record["config"]}
            known["config"]["train"]["seed"] = each.seed
            write_record(
                each.directory,
                new_record(
                    results_version=record["results_version"],
                    row=each.row,
                    group=each.group,
                    label=each.label,
                    seed=each.seed,
                    **known,
                ),
            )
        return Outcome({each.name: "preempted" for each in todo}, {}, True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_launch, "launch", launch)
        patch.setattr(sweep_runs.sweep_data, "check", lambda todo, cache: None)
        code, out, error = run("--seed=3", "--format=json")
        assert code == 75 and "1 of 1 run has no result yet" in error
        assert json.loads(out)["seed"] == 3 and json.loads(out)["scores"] == []
        run("--config.train.seed=2")
    assert [(each.name, each.config.train.seed) for each in asked] == [
        ("base seed 3", 3),
        ("base seed 2", 2),
    ]
    assert read_sweep(workdir)["seeds"] == [0, 2, 3]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--row=narow"], "unknown row 'narow'; did you mean narrow?"),
        (["--seed=-1"], "flag --seed=-1"),
        (["--seed=two"], "--seed=two: must be a whole number"),
        (["--config.train.steps=7"], "holds another sweep: train.steps is 150 there"),
        (["--workdir="], "--workdir is missing"),
    ],
)
def test_refused_request_is_one_message(run, workdir, more, message):
    before = (workdir / "sweep.json").read_bytes()
    code, out, error = run(*more)
    assert (code, out) == (2, "") and message in error and "Traceback" not in error
    assert (workdir / "sweep.json").read_bytes() == before


@pytest.mark.parametrize("text", ["", "3", "a:b", "0:2", "5:4", "-1:2", "1:2:3", "²:3"])
def test_malformed_range_of_a_trace_is_refused(run, text):
    code, _, error = run(f"--profile={text}")
    assert code == 2 and f"--profile={text}: must be FROM:TO, two numbers" in error


def test_trace_of_updates_that_are_not_left_is_refused(run, workdir):
    code, _, error = run("--profile=150:151")
    assert code == 2 and "--profile=150:151: the run has 150 updates" in error
    code, _, error = run("--profile=150:150")
    assert code == 2 and "150 updates; none is left: name another --workdir" in error
    update_record(workdir / "runs/base/seed0", status="preempted", step=50)
    code, _, error = run("--profile=50:60")
    assert code == 2 and "50 updates; those from 51 to 150 are left" in error
