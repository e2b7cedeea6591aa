"""The command of gradients: of rows and of runs, its formats, what it refuses."""

import csv
import importlib.util
import json

import pytest

from experiments import command, gradients, gradients_figure, gradients_text
from tests.experiments import tiny_sweeps

AS_TRAINED = "--runs are measured as they were trained; leave it away"
POINTS = [(0, 0.5), (1, 0.25), (4, 0.0)]


def found():
    """Two models in two states, drawn up by hand."""
    points = [
        {"k": k, "norm": norm, "relative": norm / 0.5, "count": 3} for k, norm in POINTS
    ]
    curves = [
        {"model": model, "state": state, "target": points, "source": points[1:]}
        for model in ("base/seed0", "recurrent/seed0")
        for state in ("at initialisation", "trained")
    ]
    return {"curves": curves, "seconds": 3.0}


def test_every_format_and_the_figure_have_every_curve(tmp_path):
    text = gradients_text.FORMATS["text"](found())
    assert text.count("0.25 (0.5)") == 8 and text.count("0.5 (1)") == 4
    assert "| base/seed0 | trained | 0.5 (1) |" in gradients_text.FORMATS["markdown"](
        found()
    )
    lines = list(csv.DictReader(gradients_text.FORMATS["csv"](found()).splitlines()))
    assert len(lines) == 4 * 5 and lines[1]["norm"] == "0.25"
    assert json.loads(gradients_text.FORMATS["json"](found())) == found()
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")
    gradients_figure.draw(found(), tmp_path / "g.svg")
    assert (tmp_path / "g.svg").read_text().count("recurrent/seed0") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows=basis"], "unknown row 'basis'"),
        (["--runs=nowhere"], "nowhere: there is no such folder"),
        (["--runs=nowhere"], "folder; name a run's, for example runs/table3/runs/"),
        (["--runs=x", "--rows=base"], f"--rows: {AS_TRAINED}"),
        (["--runs=x", "--config=configs/table3.py:grammar"], f"--config: {AS_TRAINED}"),
        (["--runs=x", "--config=configs/table1.py:grammar"], f"--config: {AS_TRAINED}"),
        (["--runs=x", "--preset=paper"], f"--preset: {AS_TRAINED}"),
        (
            ["--runs=x", "--config.model.d_model=128", "--config.train.seed=0"],
            f"--config.model.d_model, --config.train.seed: {AS_TRAINED}",
        ),
        (["--runs="], "--runs=: must name folders of runs"),
        (["--runs=,"], "--runs=,: must name folders of runs"),
        (["--runs=x,"], "--runs=x,: must name folders of runs"),
        (["--seed=99999999999999999999"], "--seed=99999999999999999999: "),
        (["--figure=g.gif"], "--figure=g.gif: must be a file that ends in"),
        (["--probes=0"], "probes"),
    ],
)
def test_request_that_cannot_be_measured_is_refused(
    arguments, message, repository, monkeypatch, capsys
):
    monkeypatch.chdir(repository)
    assert command.run(gradients.COMMAND, arguments) == 2
    assert message in capsys.readouterr().err


def test_run_is_measured_as_it_began_and_as_it_ended(workdir, folder, capsys):
    """As it began it is its row: the same seed, sentences and probes."""
    asked = "--sentences=3 --joined=2 --positions=2 --probes=1 --format=json".split()
    asked.append(f"--cache={folder / 'cache'}")
    run = workdir / "runs/base/seed0"
    assert command.run(gradients.COMMAND, [f"--runs={run}", *asked]) == 0
    began, ended = json.loads(capsys.readouterr().out)["curves"]
    given = tiny_sweeps.arguments(folder, "none")
    given = [a for a in given if not a.startswith(("--workdir", "--cache"))]
    assert command.run(gradients.COMMAND, [*given, "--rows=base", *asked]) == 0
    (row,) = json.loads(capsys.readouterr().out)["curves"]
    states = [(x["model"], x["state"]) for x in (began, ended, row)]
    assert states == [
        ("base/seed0", "at initialisation"),
        ("base/seed0", "trained"),
        ("base", "at initialisation"),
    ]
    for side in ("target", "source"):
        norms = [[p["norm"] for p in x[side]] for x in (began, ended, row)]
        assert norms[0] == pytest.approx(norms[2], rel=1e-4)
        assert norms[0] != pytest.approx(norms[1], rel=1e-1)
        assert len({p["k"] for p in began[side]}) == len(norms[0]) > 5


LEARNED = "--config.model.positions=learned --config.model.max_length=32".split()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sentences=4"], "validation split has 7 sentences, and 8 are needed"),
        (["--sentences=1", *LEARNED], "more than model.max_length = 32 learned"),
    ],
)
def test_sentences_that_there_are_not_are_refused(more, message, folder, capsys):
    given = tiny_sweeps.arguments(folder, "none", "--rows=base")
    given = [a for a in given if not a.startswith("--workdir")]
    joined = "--joined=2" if "--sentences=4" in more else "--joined=7"
    assert command.run(gradients.COMMAND, [*given, *more, joined]) == 2
    assert message in capsys.readouterr().err
