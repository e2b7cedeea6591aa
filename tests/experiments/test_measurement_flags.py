"""Numbers that are too large, and how what is under way is told."""

import pytest
from absl import flags

from experiments import command, complexity, gradients, growth, pace

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
