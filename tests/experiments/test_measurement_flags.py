"""Numbers that are too large, files that nothing may replace, what is under way."""

import os

import pytest
from absl import flags

from experiments import bench, command, complexity, gradients, growth, pace

COMMANDS = [each.COMMAND for each in (complexity, gradients, growth)]


def numbers():
    """Every numeric flag of the three commands."""
    for each in COMMANDS:
        values = flags.FlagValues()
        each.define(values)
        for name in values:
            if values[name].flag_type() in ("int", "float"):
                yield pytest.param(each, name, id=f"{each.name}-{name}")


@pytest.mark.parametrize("value", ["9" * 20, "-1"])
@pytest.mark.parametrize(("asked", "name"), list(numbers()))
def test_number_out_of_its_bounds_is_one_message(
    asked, name, value, repository, monkeypatch, capsys
):
    monkeypatch.chdir(repository)
    assert command.run(asked, [f"--{name}={value}"]) == 2
    error = capsys.readouterr().err
    assert f"--{name}=" in error and len(error.splitlines()) == 2
    assert "must be" in error or " is not " in error or "range" in error


FILES = [
    (bench, "json", "x.json"),
    (growth, "json", "x.json"),
    (growth, "figure", "x.svg"),
    (gradients, "figure", "x.svg"),
    (gradients, "out", "x.txt"),
    (complexity, "figure", "x.svg"),
    (complexity, "out", "x.txt"),
]


@pytest.fixture
def refused(repository, monkeypatch, capsys):
    """Message of a request whose file is refused before anything is measured."""
    monkeypatch.chdir(repository)

    def message(asked, flag, path):
        monkeypatch.setattr(asked, "measure", lambda *_: pytest.fail("it was measured"))
        given = [f"--{flag}={path}"]
        if asked is bench:
            given.append("--config=configs/table3.py:grammar")
        assert command.run(asked.COMMAND, given) == 2
        return capsys.readouterr().err

    return message


@pytest.mark.parametrize(("asked", "flag", "name"), FILES)
def test_only_a_plain_file_is_replaced(asked, flag, name, refused, tmp_path):
    """A pipe stands for devices too: to replace these takes rights, as root has."""
    os.mkfifo(pipe := tmp_path / name)
    assert f"--{flag}={pipe}: is no file; name" in refused(asked, flag, pipe)
    assert pipe.is_fifo()
    (folder := tmp_path / f"folder_{name}").mkdir()
    assert f"--{flag}={folder}: is a folder; name" in refused(asked, flag, folder)


@pytest.mark.parametrize(("asked", "flag", "name"), FILES)
def test_place_that_takes_no_file_is_refused(asked, flag, name, refused, tmp_path):
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / name
    assert "file is no folder; name another place" in refused(asked, flag, below)


@pytest.mark.parametrize(("asked", "flag"), [(bench, "json"), (growth, "json")])
def test_record_of_a_run_is_not_replaced(asked, flag, refused, tmp_path):
    (record := tmp_path / "record.json").write_text("{}")
    assert "is a file of a sweep, and would be lost" in refused(asked, flag, record)
    assert record.read_text() == "{}"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.1, "10 seconds"),
        (61, "70 seconds"),
        (91, "2 minutes"),
        (3601, "61 minutes"),
        (5401, "2 hours"),
    ],
)
def test_time_is_rounded_up(seconds, words):
    assert pace.span(seconds) == words


def test_steps_are_told_with_what_is_to_go():
    """Three steps of 30 s in the first of two parts, then four more of 5 s."""
    now, told = [0.0], []
    steps = pace.Pace(6, told.append, lambda: now[0])
    for name, length in (("a", 30), ("b", 5)):
        steps.begin(name)
        for _ in range(3):
            now[0] += length
            steps.done()
    assert told == [
        "a",
        "a: about 3 minutes to go",  # 30 s for each of five
        "a: about 2 minutes to go",
        "a: about 90 seconds to go",
        "b: about 90 seconds to go",
    ]
