"""``tables`` and ``status`` on workdirs written by hand."""

import io
import json
import os
import socket
import subprocess
import sys
import time

import pytest
from rich.console import Console

from experiments import (
    command,
    compare,
    status,
    status_text,
    table2,
    tables,
    telling,
)
from tests.report import written_sweeps as written
from transformer_ablation.report.damage import damage_named
from transformer_ablation.report.record import (
    run_directory,
    update_record,
    write_record,
    write_sweep,
)
from transformer_ablation.sweep import claims


@pytest.fixture
def workdir(tmp_path):
    """Three rows of Table 3, one seed: one finished, one failed, one not begun."""
    folder = tmp_path / "work"
    rows = written.paper_rows(("base", "A_h1", "C_N2"))
    write_sweep(folder, written.sweep(rows, title="Table 3"))
    done = written.scored(rows[0], 4.75, 25.375)
    failed = written.record(rows[1], status="failed", reason="no memory", step=None)
    for record in (done, failed):
        write_record(run_directory(folder, record["row"], 0), record)
    return folder


def metrics(workdir, row, entries):
    """Writes metrics.jsonl: (step, tag, value, seconds) each."""
    keys = ("step", "tag", "value", "seconds")
    text = "".join(json.dumps(dict(zip(keys, e, strict=True))) + "\n" for e in entries)
    (run_directory(workdir, row, 0) / "metrics.jsonl").write_text(text)


def running(workdir, pid):
    row = written.sweep_row("C_N2", {"model.num_layers": 2}, "C")
    process = {"host": socket.gethostname(), "pid": pid}
    record = written.record(row, status="running", step=None, process=process)
    record |= {"tokens_per_second": None, "seconds": None}
    write_record(run_directory(workdir, "C_N2", 0), record)


def status_rows(workdir, capsys):
    code = command.run(status.COMMAND, [f"--workdir={workdir}", "--format=json"])
    assert code == 0
    return {r["row"]: r for r in json.loads(capsys.readouterr().out)["rows"]}


def test_table_of_an_unfinished_sweep_is_printed(workdir, capsys):
    assert command.run(tables.COMMAND, [f"--workdir={workdir}"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Table 3\n")
    assert "4.75" in out and "25.4" in out
    assert "failed: no memory" in out and "pending" in out


def test_json_holds_every_row_of_the_sweep(workdir, capsys):
    assert command.run(tables.COMMAND, [f"--workdir={workdir}", "--format=json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["row"] for r in rows] == ["base", "A_h1", "C_N2"]
    assert [r["state"] for r in rows] == ["finished", "failed", "pending"]
    assert [r["bleu"] for r in rows] == [25.375, None, None]
    assert [r["paper"]["ppl"] for r in rows] == [4.92, 5.29, 6.11]


def test_table_goes_to_a_file(workdir, tmp_path, capsys):
    out = tmp_path / "new" / "table.md"
    arguments = [f"--workdir={workdir}", "--format=markdown", f"--out={out}"]
    assert command.run(tables.COMMAND, arguments) == 0
    assert "| A_h1 |" in out.read_text(encoding="utf-8")
    assert "| A_h1 |" not in capsys.readouterr().out


def test_refused_table_keeps_the_old_file(workdir, tmp_path, capsys):
    out = tmp_path / "table.tex"
    out.write_text("old")
    arguments = [f"--workdir={workdir}", "--format=pdf", f"--out={out}"]
    assert command.run(tables.COMMAND, arguments) == 2
    assert "must be one of text, markdown, latex" in capsys.readouterr().err
    assert out.read_text() == "old"


def test_report_goes_to_a_file_or_to_a_pipe(workdir, tmp_path, capsysbinary):
    out = tmp_path / "new" / "report.html"
    arguments = [f"--workdir={workdir}", "--format=html"]
    assert command.run(tables.COMMAND, [*arguments, f"--out={out}"]) == 0
    assert out.read_bytes().startswith(b"<!DOCTYPE html>")
    capsysbinary.readouterr()
    assert command.run(tables.COMMAND, arguments) == 0
    printed = capsysbinary.readouterr().out
    assert printed.startswith(b"<!DOCTYPE html>") and "Δ".encode() in printed


def test_report_is_not_printed_to_a_terminal(workdir, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert command.run(tables.COMMAND, [f"--workdir={workdir}", "--format=html"]) == 2
    assert "--out=report.html" in capsys.readouterr().err


def test_figures_go_to_a_folder_beside_the_table(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    rows = written.paper_rows(("base", "E_learned_pos"))
    write_sweep(tmp_path, written.sweep(rows))
    for row in rows:
        record = written.scored(row, 5.0, 25.0)
        write_record(run_directory(tmp_path, row["name"], 0), record)
    folder = tmp_path / "new" / "figures"
    arguments = [f"--workdir={tmp_path}", f"--figures={folder}"]
    assert command.run(tables.COMMAND, arguments) == 0
    names = {path.name for path in folder.iterdir()}
    assert {"group-E.pdf", "group-E.png", "agreement.pdf"} <= names
    told = capsys.readouterr()
    assert told.out.startswith("a sweep\n") and f"files in {folder}" in told.err


@pytest.mark.parametrize("figures", ["file", "file/below", ""])
def test_figures_that_cannot_be_written_are_refused_first(
    figures, tmp_path, capsys, monkeypatch
):
    """Before anything is read: this workdir has no sweep."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    code = command.run(tables.COMMAND, ["--workdir=.", f"--figures={figures}"])
    error = capsys.readouterr().err
    assert code == 2 and f"--figures={figures}: cannot write there (" in error
    assert "sweep.json" not in error


def test_mixed_records_are_shown_on_request(workdir, capsys):
    path = run_directory(workdir, "base", 0) / "record.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "step": 5}))
    assert command.run(tables.COMMAND, [f"--workdir={workdir}"]) == 2
    assert "base/seed0: is finished after 5 of 100000" in capsys.readouterr().err
    assert command.run(tables.COMMAND, [f"--workdir={workdir}", "--mixed"]) == 0
    assert "base §" in capsys.readouterr().out


def test_tests_are_those_asked_for(workdir, capsys):
    def asked(*flags):
        arguments = [f"--workdir={workdir}", "--format=json", *flags]
        assert command.run(tables.COMMAND, arguments) == 0
        return json.loads(capsys.readouterr().out)["tests"]

    assert asked() == {
        "level": 0.05,
        "correction": "holm",
        "seeds": "paired-t",
        "sentences": {
            "samples": {"bootstrap": 1000, "randomization": 10_000},
            "seed": 12345,
        },
    }
    flags = ("--test=bootstrap", "--samples=50", "--test_seed=3")
    found = asked(*flags, "--seed_test=sign-flip")
    assert found["sentences"] == {"samples": {"bootstrap": 50}, "seed": 3}
    assert found["seeds"] == "sign-flip"
    assert asked("--test=none")["sentences"] is None


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--test=anova", "both|bootstrap|randomization|none"),
        ("--samples=0", "[1, 1000000]"),
        ("--test_seed=0", "[1, 4294967295]"),
        ("--seed_test=t", "paired-t|sign-flip"),
    ],
)
def test_wrong_test_is_refused_with_what_is_allowed(workdir, flag, told, capsys):
    assert command.run(tables.COMMAND, [f"--workdir={workdir}", flag]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("which", "flag", "more"),
    [
        (tables.COMMAND, "--workdir", []),
        (status.COMMAND, "--workdir", []),
        (compare.COMMAND, "--workdir", ["--rows=base,A_h1"]),
        (table2.COMMAND, "--workdirs", []),
    ],
)
def test_missing_workdir_is_refused_with_its_name(which, flag, more, tmp_path, capsys):
    """And with the name of the flag that the command has."""
    for folder, what in (("nowhere", "no such folder"), ("", "holds neither sweep")):
        assert command.run(which, [f"{flag}={tmp_path / folder}", *more]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"{flag}: {tmp_path / folder}: {what}")
        assert len(error.splitlines()) == 1


@pytest.mark.parametrize("which", [tables.COMMAND, status.COMMAND])
def test_folder_without_a_sweep_is_refused(which, tmp_path, capsys):
    assert command.run(which, [f"--workdir={tmp_path}"]) == 2
    assert "sweep.json" in capsys.readouterr().err


@pytest.mark.parametrize("which", [tables.COMMAND, status.COMMAND])
def test_workdir_not_given_is_refused(which, capsys):
    assert command.run(which, []) == 2
    assert "--workdir is missing" in capsys.readouterr().err


@pytest.mark.parametrize("which", [tables.COMMAND, status.COMMAND])
def test_broken_record_is_refused_with_its_file(which, workdir, capsys):
    path = run_directory(workdir, "base", 0) / "record.json"
    path.write_text(path.read_text()[:100])
    assert command.run(which, [f"--workdir={workdir}"]) == 2
    assert f"{path}: not valid JSON" in capsys.readouterr().err


def test_mixed_records_are_refused_without_a_table(workdir, capsys):
    path = run_directory(workdir, "base", 0) / "record.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "results_version": 2}))
    assert command.run(tables.COMMAND, [f"--workdir={workdir}"]) == 2
    captured = capsys.readouterr()
    assert "results_version" in captured.err and captured.out == ""


def test_table_prints_where_the_terminal_lacks_its_letters(workdir):
    child = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "experiments.tables"]
        + [f"--workdir={workdir}"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert child.returncode == 0
    assert b"?PPL" in child.stdout  # the delta is not ASCII
    imported = child.stderr.decode()
    for slow in ("jax", "flax", "tensorboardX", "tensorflow_datasets"):
        assert f" {slow}\n" not in imported


def test_one_run_is_told_in_the_singular(tmp_path, capsys):
    write_sweep(tmp_path, written.sweep(written.paper_rows(("base",))))
    assert command.run(status.COMMAND, [f"--workdir={tmp_path}"]) == 0
    assert capsys.readouterr().out.endswith("\n1 run: 1 pending\n")


def test_status_shows_every_run_of_the_sweep(workdir, capsys):
    assert command.run(status.COMMAND, [f"--workdir={workdir}"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert ["base", "0", "finished", "100000/100000"] in [line[:4] for line in lines]
    assert ["C_N2", "0", "pending", "-/100000"] in lines
    assert "    no memory" in out.splitlines()
    assert "3 runs: 1 finished, 1 failed, 1 pending" in out


def test_status_of_a_running_row_tells_speed_and_time_left(workdir, capsys):
    running(workdir, os.getpid())
    entries = [(100, "train/loss", 5.0, 70.0), (100, "validation/ppl", 9.0, 75.0)]
    entries += [(300, "train/loss", 4.0, 110.0)]
    entries += [(300, "train/tokens_per_second", 4200.0, 110.0)]
    metrics(workdir, "C_N2", entries)
    row = status_rows(workdir, capsys)["C_N2"]
    assert row["state"] == "running" and row["step"] == 300
    assert row["steps_per_second"] == 5.0  # 200 updates in 40 s
    assert row["seconds_left"] == 19_940.0  # 99,700 updates to go
    assert row["tokens_per_second"] == 4200.0
    assert row["config"]["model"]["num_layers"] == 2


def test_status_of_a_row_that_is_scored_says_so_and_no_time(workdir, capsys):
    """The steps are done: what is left is not 0 s, it is not known."""
    running(workdir, os.getpid())
    update_record(run_directory(workdir, "C_N2", 0), reason="scoring validation")
    entries = [(s, "train/loss", 5.0, s / 5) for s in (99_900, 100_000)]
    metrics(workdir, "C_N2", entries)
    row = status_rows(workdir, capsys)["C_N2"]
    assert (row["state"], row["step"], row["seconds_left"]) == (
        "running",
        100_000,
        None,
    )
    assert command.run(status.COMMAND, [f"--workdir={workdir}"]) == 0
    assert "\n    scoring validation\n" in capsys.readouterr().out
    assert command.run(tables.COMMAND, [f"--workdir={workdir}"]) == 0
    assert "running: scoring validation" in capsys.readouterr().out


def test_speed_is_not_taken_across_a_restart(workdir, capsys):
    running(workdir, os.getpid())
    entries = [(900, "train/loss", 5.0, 500.0), (910, "train/loss", 5.0, 2.0)]
    entries += [(930, "train/loss", 5.0, 7.0)]
    metrics(workdir, "C_N2", entries)
    row = status_rows(workdir, capsys)["C_N2"]
    assert row["steps_per_second"] == 4.0  # 20 updates in 5 s


def test_status_of_a_dead_process_is_interrupted(workdir, capsys):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    running(workdir, child.pid)
    row = status_rows(workdir, capsys)["C_N2"]
    assert row["state"] == "interrupted" and row["seconds_left"] is None
    command.run(tables.COMMAND, [f"--workdir={workdir}"])
    assert "interrupted" in capsys.readouterr().out


def test_status_lists_a_single_run_without_a_sweep(tmp_path, capsys):
    row = written.sweep_row("base", {})
    write_record(run_directory(tmp_path, "base", 4), written.record(row, 4))
    row = status_rows(tmp_path, capsys)["base"]
    assert row["seed"] == 4 and row["state"] == "finished"
    assert row["seconds"] == 150.0  # 20 + 100 + 30


@pytest.mark.parametrize("name", ["sweep.json", "runs/base/seed0/record.json"])
def test_out_takes_the_place_of_no_record(workdir, name, capsys):
    path = workdir / name
    before = path.read_bytes()
    code = command.run(tables.COMMAND, [f"--workdir={workdir}", f"--out={path}"])
    assert code == 2 and "is a file of a sweep" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_rate_that_is_no_number_is_refused(workdir, capsys):
    given = [f"--workdir={workdir}", "--sustained_flops=nan", "--format=json"]
    assert command.run(tables.COMMAND, given) == 2
    assert "--sustained_flops=nan: must be" in capsys.readouterr().err


def test_score_that_is_no_number_is_named(workdir, capsys):
    path = workdir / "runs/base/seed0/record.json"
    record = json.loads(path.read_text())
    record["scores"][0]["value"] = "25.8"
    path.write_text(json.dumps(record))
    assert command.run(tables.COMMAND, [f"--workdir={workdir}"]) == 2
    assert "scores[0].value must be a number or null" in capsys.readouterr().err


@pytest.mark.parametrize("found", [tables.COMMAND, status.COMMAND])
@pytest.mark.parametrize("name", ["sweep.json", "runs/base/seed0/record.json"])
def test_stored_config_that_lacks_a_field_is_named(workdir, found, name, capsys):
    """As after a flipped bit in a name: no field of it may be missed in silence."""
    path = workdir / name
    text = path.read_text()
    path.write_text(text.replace('"steps": 100000', '"stepr": 100000'))
    assert path.read_text() != text
    code = command.run(found, [f"--workdir={workdir}"])
    error = capsys.readouterr().err
    assert code in (0, 2)  # one that is not looked at does no harm
    if code:
        assert f"{path}: train.steps: missing" in error or "train.stepr" in error


def test_failure_that_no_config_explains_stays_one(workdir):
    with pytest.raises(KeyError, match="bug"), damage_named(workdir):
        raise KeyError("bug")


def test_messages_move_no_cursor_and_turn_no_line(capsys):
    telling.complain("row \x1b[2J\u202eesrever:\n  it is\x07 wrong")
    assert capsys.readouterr().err == "row [2Jesrever:\n  it is wrong\n"


@pytest.mark.parametrize("out", ["", "."])
def test_out_that_is_no_file_is_refused(workdir, out, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code = command.run(tables.COMMAND, [f"--workdir={workdir}", f"--out={out}"])
    assert code == 2 and f"--out={out}: is " in capsys.readouterr().err


def test_link_keeps_its_place(workdir, tmp_path):
    target, link = tmp_path / "target.md", tmp_path / "link.md"
    target.write_text("old")
    link.symlink_to(target)
    assert command.run(tables.COMMAND, [f"--workdir={workdir}", f"--out={link}"]) == 0
    assert link.is_symlink() and "BLEU" in target.read_text()


def test_output_that_cannot_be_written_is_one_message(workdir):
    call = [sys.executable, "-m", "experiments.tables", f"--workdir={workdir}"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            call, stdout=full, stderr=subprocess.PIPE, env=environment, text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith("cannot write the output: no space left")


def seen(workdir, row, seconds):
    """As if a run had last written something so long ago."""
    for path in run_directory(workdir, row, 0).iterdir():
        then = time.time() - seconds
        os.utime(path, (then, then))


def test_status_of_a_silent_run_is_stale(workdir, capsys):
    """Its process is there, or on another machine, but has written nothing."""
    running(workdir, os.getpid())
    metrics(workdir, "C_N2", [(300, "train/loss", 4.125, 110.0)])
    seen(workdir, "C_N2", 200)
    row = status_rows(workdir, capsys)["C_N2"]
    assert row["state"] == "running" and 200 <= row["sign_seconds"] < 260
    seen(workdir, "C_N2", 720)
    row = status_rows(workdir, capsys)["C_N2"]
    assert (row["state"], row["step"], row["loss"]) == ("stale", 300, 4.125)
    assert row["seconds_left"] is None
    assert command.run(status.COMMAND, [f"--workdir={workdir}"]) == 0
    line = capsys.readouterr().out.splitlines()[-3]
    assert line.split()[:5] == ["C_N2", "0", "stale", "300/100000", "4.125"]
    assert line.endswith("12 min ago")


def test_status_tells_who_holds_a_run(workdir, capsys):
    folder = run_directory(workdir, "C_N2", 0)
    claim = claims.acquire(folder, 0)
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    assert status_rows(workdir, capsys)["C_N2"]["held_by"] == holder
    assert command.run(status.COMMAND, [f"--workdir={workdir}"]) == 0
    assert f"    held by {holder}\n" in capsys.readouterr().out
    claim.release(final=False)
    assert status_rows(workdir, capsys)["C_N2"]["held_by"] is None


def test_status_shows_the_last_lines_of_a_failed_run_s_log(workdir, capsys):
    log = run_directory(workdir, "A_h1", 0) / "log.txt"
    log.write_text("".join(f"line {i}\n" for i in range(9)) + "\x1b[2Jend\n\n")
    assert command.run(status.COMMAND, [f"--workdir={workdir}"]) == 0
    out = capsys.readouterr().out.splitlines()
    where = out.index("    no memory")
    shown = [f"    | line {i}" for i in range(5, 9)] + ["    |  [2Jend"]
    assert out[where + 1 : where + 6] == shown


@pytest.mark.parametrize(
    ("more", "message"),
    [([], "--watch needs a terminal"), (["--format=json"], "--watch shows text")],
)
def test_watch_without_a_terminal_is_refused(workdir, capsys, more, message):
    assert command.run(status.COMMAND, [f"--workdir={workdir}", "--watch", *more]) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.startswith(message)


def test_watch_shows_what_changes_until_ctrl_c(monkeypatch):
    texts, slept = iter(["first\n", "second\n", "third\n"]), []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) > 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=40)
    status_text.watch(lambda: next(texts), 2.0, console)
    text = stream.getvalue()
    assert text.index("first") < text.index("second") < text.index("third")
    assert slept == [2.0] * 3
