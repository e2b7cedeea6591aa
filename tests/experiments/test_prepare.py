"""The command that prepares data: its report, its exit codes, a clean stdout."""

import json
import urllib.error
import urllib.request

import pytest

from experiments import command, prepare

ENGLISH = [f"dog {i} runs after cat {i}" for i in range(30)]
GERMAN = [f"Hund {i} läuft hinter Katze {i} her" for i in range(30)]


@pytest.fixture
def run(capfd, monkeypatch, repository, tmp_path):
    """Runs the command; gives exit code, stdout, stderr."""
    monkeypatch.chdir(repository)

    def run(*arguments):
        code = command.run(
            prepare.COMMAND,
            [
                "--config=configs/table3.py:multi30k",
                f"--cache={tmp_path / 'cache'}",
                "--config.data.vocabulary_size=310",
                *arguments,
            ],
        )
        return (code, *capfd.readouterr())

    return run


@pytest.fixture
def folder(tmp_path):
    for name in ("train", "val", "test_2016_flickr"):
        for language, lines in (("en", ENGLISH), ("de", GERMAN)):
            text = "".join(f"{line}\n" for line in lines)
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8")
    return tmp_path


def test_report_is_one_json_object(run, folder):
    code, out, _ = run(f"--config.data.directory={folder}", "--format=json")
    assert code == 0
    found = json.loads(out)
    assert found["filters"] == {"read": 30, "kept": 30, "empty_side": 0, "too_long": 0}
    assert found["tokens"]["validation"]["pairs"] == 30
    # Six words, 30 times, and in German one more.
    train = found["manifest"]["splits"]["train"]
    assert (train["en"]["words"], train["de"]["words"]) == (180, 210)
    assert found["vocabulary"]["size"] == 310


def test_report_for_people_warns_of_other_text(run, folder):
    code, out, _ = run(f"--config.data.directory={folder}")
    assert code == 0
    assert "en to de, not the published text" in out
    assert "30 read, 0 with an empty side, 0 too long, 30 kept" in out


def test_own_text_is_prepared_and_the_report_says_what_was_held_out(run, tmp_path):
    rows = zip(GERMAN, ENGLISH, strict=True)
    text = "".join(f"{german}\t{english}\n" for german, english in rows)
    (tmp_path / "train.de-en.tsv").write_text(text, encoding="utf-8")
    code, out, err = run(
        "--config.data.corpus=parallel_files",
        f"--config.data.directory={tmp_path}",
        "--config.data.test_split=final",
        "--config.data.holdout_pairs=4",
        "--config.data.holdout_seed=3",
    )
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "parallel_files 1.0.0, en to de"
    assert lines[1] == (
        "held out of the 30 pairs of train: 4 each for validation and final (seed 3), "
        "and their copies"
    )
    counts = {line.split()[0]: line.split()[1] for line in lines if line}
    assert [counts[x] for x in ("train", "validation", "final")] == ["22", "4", "4"]
    assert "22 read, 0 with an empty side, 0 too long, 22 kept" in out


def test_own_text_without_a_split_is_refused_with_the_ways_out(run, tmp_path):
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        (tmp_path / f"train.{language}").write_text("\n".join(lines), "utf-8")
    code, out, err = run(
        "--config.data.corpus=parallel_files",
        f"--config.data.directory={tmp_path}",
        "--config.data.test_split=None",
    )
    assert (code, out) == (2, "")
    assert "has no split 'validation'; it needs validation.de and validation.en" in err
    assert "--config.data.holdout_pairs=1000" in err and "Traceback" not in err


def test_fault_is_one_message_and_exit_2(run, folder):
    (folder / "val.de").write_text("Hund\n")
    code, out, err = run(f"--config.data.directory={folder}")
    assert (code, out) == (2, "")
    assert "val.de has 1 lines" in err and "val.en has 30" in err
    assert "Traceback" not in err


def test_no_network_is_one_message_and_exit_1(run, monkeypatch):
    def refuse(url, **_):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    code, out, err = run()
    assert (code, out) == (1, "")
    assert "--config.data.directory=DIR" in err and "Traceback" not in err
