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
    # Not the command's own time, most of which is the program's start.
    assert out.endswith(" seconds for the data, without the program's start\n")
    assert " 0.0 seconds" not in out


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
    assert "val.de has 1 line, " in err and "val.en has 30" in err
    assert "Traceback" not in err


def test_no_network_is_one_message_and_exit_1(run, monkeypatch):
    def refuse(url, **_):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    code, out, err = run()
    assert (code, out) == (1, "")
    assert "--config.data.directory=DIR" in err and "Traceback" not in err


def test_findings_are_listed_with_line_and_excerpt(run, folder):
    (folder / "val.en").write_text("\n".join(["\x1b[2J", *ENGLISH[1:]]))
    (folder / "test_2016_flickr.de").write_text("\n".join(["U\u0308ber", *GERMAN[1:]]))
    code, out, _ = run(f"--config.data.directory={folder}")
    assert code == 0
    assert "\x1b" not in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert r'validation en 1 1 control characters: "\x1b[2J"' in lines
    expected = "test_2016_flickr de 1 1 not in Unicode's form NFC: "
    expected += '"U\u0308ber"'
    assert expected in lines
    # Lines 2 to 30 of training are those of the scored splits.
    assert (
        'train pair 29 2 also in validation: "dog 1 runs after cat 1" and '
        '"Hund 1 läuft hinter Katze 1 her"' in lines
    )
    assert 'train en 29 2 also in validation: "dog 1 runs after cat 1"' in lines
    assert (
        'train de 30 1 also in validation: "Hund 0 läuft hinter Katze 0 her"' in lines
    )
    assert not any("more than 100 words" in line for line in lines)
    assert any(line.startswith("language mix-ups: not judged") for line in lines)


def test_findings_stand_in_json_with_kinds_that_do_not_occur(run, folder):
    (folder / "val.en").write_text("\n".join(["a &amp; b", *ENGLISH[1:]]))
    _, out, _ = run(f"--config.data.directory={folder}", "--format=json")
    manifest = json.loads(out)["manifest"]
    found = manifest["splits"]["validation"]["checks"]["en"]
    assert found["character_reference"] == {
        "count": 1,
        "line": 1,
        "excerpt": "a &amp; b",
    }
    assert found["tag"] == {"count": 0, "line": None, "excerpt": None}
    assert found["other_language"]["count"] is None
    assert manifest["overlaps"]["validation"]["pair"]["count"] == 29


def test_filters_are_counted_in_the_order_applied(run, folder):
    english, german = ["a a", "a a", "dog", *ENGLISH], ["b", "b", "x y z", *GERMAN]
    (folder / "train.en").write_text("\n".join(english))
    (folder / "train.de").write_text("\n".join(german))
    filters = [
        "--config.data.filter_duplicates=True",
        "--config.data.filter_max_length_ratio=2.5",
    ]
    code, out, _ = run(f"--config.data.directory={folder}", *filters)
    assert code == 0
    assert (
        "33 read, 1 equal to an earlier one, 1 out of proportion, "
        "0 with an empty side, 0 too long, 31 kept" in out
    )
