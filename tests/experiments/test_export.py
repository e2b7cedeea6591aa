"""``export``: a finished run as a folder, or one message."""

import json
import os
import shutil

import pytest

from experiments import command, export
from tests.experiments import tiny_sweeps as tiny


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tiny.folder_of(tmp_path_factory)
    return tiny.straight(folder) / "runs/base/seed0"


@pytest.fixture
def call(capsys):
    def call(*arguments):
        code = command.run(export.COMMAND, list(map(str, arguments)))
        return (code, *capsys.readouterr())

    return call


@pytest.fixture
def square(run_folder, tmp_path):
    """The run with its config's d_k and d_v made d_model / h; its weights are not."""
    copied = shutil.copytree(run_folder, tmp_path / "square")
    config = json.loads((copied / "config.json").read_text())
    config["model"] |= {"d_k": 6, "d_v": 6}
    (copied / "config.json").write_text(json.dumps(config))
    return copied


def test_row_that_marian_cannot_say_is_refused_by_its_fields(
    call, run_folder, tmp_path
):
    code, out, error = call(f"--run={run_folder}", f"--out={tmp_path / 'out'}")
    assert (code, out) == (2, "")
    assert "model.d_k: 7 cannot be said in the format marian" in error
    assert "d_model / num_heads = 6" in error and "model.d_v: 5" in error
    assert not (tmp_path / "out").exists()


def test_folder_with_files_is_refused_before_anything_is_loaded(call, square, tmp_path):
    code, _, error = call(f"--run={square}", f"--out={tmp_path}")
    assert code == 2 and f"{tmp_path}: is not empty" in error


def test_what_is_no_folder_is_refused_before_anything_is_loaded(call, square, tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    code, _, error = call(f"--run={square}", f"--out={pipe}")
    assert code == 2 and f"{pipe}: is no folder; name a new one" in error


def test_weights_of_another_shape_are_refused(call, square, tmp_path):
    code, _, error = call(f"--run={square}", f"--out={tmp_path / 'out'}")
    assert code == 2 and "was trained with model.d_k = 7, this run has 6" in error


@pytest.mark.parametrize("left_out", ["run", "out"])
def test_what_is_missing_is_named(call, square, tmp_path, left_out):
    given = {"run": square, "out": tmp_path / "out"}
    given.pop(left_out)
    code, _, error = call(*(f"--{name}={path}" for name, path in given.items()))
    assert code == 2 and f"--{left_out} is missing" in error


def test_converter_that_is_not_installed_is_named(call, square, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "CONVERTER_NEEDS", ("no_such_package",))
    where = (f"--run={square}", f"--out={tmp_path / 'out'}")
    code, _, error = call(*where, "--format=ctranslate2")
    assert code == 2 and "needs no_such_package" in error
    assert "requirements-parity.txt" in error
