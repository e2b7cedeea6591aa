"""Presets: the paper and its authors' codes, field by field."""

import json

import pytest

from configs import base as base_file
from configs import presets, table3
from experiments import command, plan
from transformer_ablation.config import ConfigError, differences, from_mapping, replace
from transformer_ablation.sweep.rows import expand

BASE = from_mapping(base_file.get_config())
# tensor2tensor at 3d9c62f2, and at 8dad16ee for the hyperparameters of later ones.
FIRST = {
    "model.sinusoids": "halves",
    "model.projection_biases": True,
    "regularization.label_smoothing_convention": "other_classes",
    "regularization.label_smoothing_entropy": "subtracted",
}
LATER = {
    "model.sinusoids": "halves",
    "model.norm": "pre",
    "regularization.label_smoothing_convention": "other_classes",
    "regularization.label_smoothing_entropy": "subtracted",
    "regularization.attention_dropout_rate": 0.1,
    "regularization.activation_dropout_rate": 0.1,
    "optimizer.beta2": 0.997,
    "optimizer.warmup_steps": 8000,
    "optimizer.learning_rate_scale": 2.0,
}


def laid_over(config, name):
    return replace(config, presets.get_preset(name)(config))


@pytest.mark.parametrize(
    "name, expected",
    [("paper", {}), ("tensor2tensor_2017_06", FIRST), ("tensor2tensor_later", LATER)],
)
def test_preset_over_the_papers_base_changes_what_that_code_did(name, expected):
    changed = differences(BASE, laid_over(BASE, name))
    assert {path: new for path, (_, new) in changed.items()} == expected


@pytest.mark.parametrize("name", presets.PRESETS)
def test_presets_say_nothing_of_sizes_data_or_length(name):
    allowed = ("model.", "regularization.", "optimizer.", "decode.length_penalty")
    sizes = {"num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v", "max_length"}
    for path in presets.get_preset(name)(BASE):
        assert path.startswith(allowed) and path.partition(".")[2] not in sizes


@pytest.mark.parametrize("name", presets.PRESETS)
@pytest.mark.parametrize("scale", table3.SCALES)
def test_every_preset_keeps_all_rows_apart(scale, name):
    config = laid_over(from_mapping(table3.get_config(scale)), name)
    assert len(expand(config, table3.get_rows())) == 20


def test_peak_rates_are_those_of_the_codes():
    """Paper 6.99e-4 for d_model 512 and 4,000 steps; later 9.88e-4 (2 / sqrt 2)."""
    paper, later = (laid_over(BASE, n) for n in ("paper", "tensor2tensor_later"))
    peaks = [
        c.optimizer.learning_rate_scale
        * (c.model.d_model * c.optimizer.warmup_steps) ** -0.5
        for c in (paper, later)
    ]
    assert peaks == pytest.approx([6.9877e-4, 9.8821e-4], rel=1e-4)


def run(capsys, *arguments):
    code = command.run(plan.COMMAND, ["--config=configs/base.py", *arguments])
    return (code, *capsys.readouterr())


@pytest.fixture
def at_root(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_flag_lays_a_preset_under_the_overrides(at_root, capsys):
    arguments = ("--preset=tensor2tensor_later", "--config.optimizer.beta2=0.5")
    code, out, _ = run(capsys, *arguments, "--format=json")
    (row,) = json.loads(out)["rows"]
    assert code == 0
    assert row["config"]["model"]["norm"] == "pre"
    assert row["config"]["optimizer"]["warmup_steps"] == 8000
    assert row["config"]["optimizer"]["beta2"] == 0.5


def test_unknown_preset_is_refused_with_the_nearest(at_root, capsys):
    code, out, err = run(capsys, "--preset=tensor2tensor_latr")
    assert (code, out) == (2, "")
    assert err.startswith(
        "unknown preset 'tensor2tensor_latr'; did you mean tensor2tensor_later? "
        "The presets are: paper, tensor2tensor_2017_06, tensor2tensor_later"
    )
    with pytest.raises(ConfigError):
        presets.get_preset("")


def test_preset_over_an_incomplete_config_is_the_schemas_to_refuse(
    at_root, capsys, tmp_path
):
    path = tmp_path / "half.py"
    path.write_text(
        "import ml_collections\n\ndef get_config():\n"
        "    return ml_collections.ConfigDict({'model': {}})\n"
    )
    code = command.run(plan.COMMAND, [f"--config={path}", "--preset=paper"])
    assert code == 2
    assert "optimizer: missing section" in capsys.readouterr().err


def test_comparison_shows_exactly_the_fields_that_differ(at_root, capsys):
    names = "--compare_presets=paper,tensor2tensor_later"
    code, out, _ = run(capsys, names, "--format=json")
    found = json.loads(out)
    assert code == 0 and found["presets"] == ["paper", "tensor2tensor_later"]
    assert {path: new for path, (_, new) in found["differences"].items()} == LATER
    code, out, _ = run(capsys, names)
    head, *lines = (line.split() for line in out.splitlines())
    assert head == ["field", "paper", "tensor2tensor_later"]
    assert ["optimizer.beta2", "0.98", "0.997"] in lines and len(lines) == len(LATER)


def test_comparison_without_a_config_is_over_the_papers(at_root, capsys):
    names = "--compare_presets=paper,tensor2tensor_later"
    assert command.run(plan.COMMAND, [names]) == 0
    out = capsys.readouterr().out
    assert ["optimizer.warmup_steps", "4000", "8000"] in map(
        str.split, out.splitlines()
    )
    assert command.run(plan.COMMAND, []) == 2
    assert "--config is missing" in capsys.readouterr().err


def test_presets_that_do_not_differ_are_said_to(at_root, capsys):
    code, out, _ = run(capsys, "--compare_presets=paper,paper")
    assert (code, out) == (0, "paper and paper: no field differs\n")


@pytest.mark.parametrize(
    "arguments", [("paper",), ("paper,tensor2tensor_later", "--preset=paper")]
)
def test_comparison_of_less_than_two_is_refused(at_root, capsys, arguments):
    names, *more = arguments
    code, out, err = run(capsys, f"--compare_presets={names}", *more)
    assert (code, out) == (2, "") and "needs two names or more" in err
