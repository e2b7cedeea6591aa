"""Sweeps of tiny models from text files to the table: killed, stopped, gone wrong."""

import json
import shutil

import numpy as np
import pytest

from experiments import command, prepare, sweep
from tests.experiments import tiny_sweeps as tiny
from tests.report.tensorboard_http import Board
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import devices

# What a worker does first in a child process: it notes where a run starts, and
# signals its launcher once ROW has logged update 61, 11 after a checkpoint.
WORKER = """
import os, signal, time
from experiments import sweep_worker
from transformer_ablation.data import batches
from transformer_ablation.report import metrics

iterate, write = batches.TrainBatches.iterate, metrics.MetricWriter.write


def iterating(self, start, *rest):
    with open(os.environ["STARTS"], "a") as file:
        file.write(f"{start}\\n")
    return iterate(self, start, *rest)


def writing(self, step, values, seconds):
    write(self, step, values, seconds)
    run = self._path.parent
    if (run.parent.name, step) == ("ROW", 61) and "train/loss" in values:
        while not (run / "checkpoints/50/sha256.json").exists():
            time.sleep(0.01)
        os.kill(os.getppid(), signal.SIGNAL)
        if signal.SIGNAL == signal.SIGKILL:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(2)  # the launcher has told this worker


batches.TrainBatches.iterate, metrics.MetricWriter.write = iterating, writing
sweep_worker.main()
"""
LAUNCHER = """
import os, sys
from experiments import sweep_launch

os.environ["STARTS"] = STARTS
sweep_launch.WORKER = (sys.executable, "-c", WORKER)
"""


@pytest.fixture(scope="module")
def straight(folder):
    return tiny.straight(folder)


@pytest.fixture
def copied(straight, tmp_path):
    """A workdir of a finished sweep that a test may change."""
    return shutil.copytree(straight, tmp_path / "copied")


@pytest.fixture(scope="module")
def interrupted(folder):
    """A sweep killed in smooth, stopped in narrow, then finished: the three
    processes, and what the workdir held after each."""
    workdir = folder / "interrupted"
    given = tiny.arguments(folder, workdir, f"--rows={','.join(tiny.ROWS)}")

    def go(row="", number="SIGTERM"):
        worker = WORKER.replace("ROW", row)
        worker = worker.replace("signal.SIGNAL", f"signal.{number}")
        starts = folder / "starts"
        starts.write_text("")
        before = LAUNCHER.replace("WORKER)", f"{worker!r})")
        before = before.replace("= STARTS", f"= {str(starts)!r}")
        done = tiny.process("sweep", given, before=before)
        runs = {row: workdir / "runs" / row / "seed0" for row in tiny.ROWS}
        return {
            "code": done.returncode,
            "text": done.stderr.decode(),
            "starts": starts.read_text().split(),
            "records": {row: read_record(run) for row, run in runs.items()},
            "stamps": {r: tiny.stamps(d) for r, d in runs.items() if d.exists()},
            "saved": {row: tiny.saved_steps(run) for row, run in runs.items()},
            "logged": {r: tiny.last_step(d) for r, d in runs.items() if d.exists()},
        }

    return workdir, [go("smooth", "SIGKILL"), go("narrow", "SIGTERM"), go()]


def test_sweep_ends_in_a_table_of_its_rows(straight):
    shown = tiny.process("tables", [f"--workdir={straight}", "--format=json"])
    rows = json.loads(shown.stdout)["rows"]
    assert [row["row"] for row in rows] == list(tiny.ROWS)
    for row in rows:
        record = read_record(straight / "runs" / row["row"] / "seed0")
        scores = {(s["split"], s["metric"]): s["value"] for s in record["scores"]}
        assert row["state"] == "finished" and row["steps"] == 150
        assert row["ppl"] == scores["validation", "ppl"]
        # Better than to know only which of 360 pieces are ever used: it has learned.
        assert 1 < row["ppl"] < 40


def test_killed_sweep_was_in_the_middle_of_a_row(interrupted):
    _, (killed, _, _) = interrupted
    assert killed["code"] == -9
    assert killed["records"]["base"]["status"] == "finished"
    assert killed["records"]["smooth"]["status"] == "running"
    assert killed["records"]["narrow"] is None
    assert killed["saved"]["smooth"] == [50] and killed["logged"]["smooth"] == 61


def test_killed_row_goes_on_from_its_checkpoint(interrupted):
    _, (killed, stopped, _) = interrupted
    assert killed["starts"] == ["0", "0"]
    assert stopped["starts"] == ["50", "0"]
    assert stopped["records"]["smooth"]["status"] == "finished"


def test_sigterm_saves_and_stops(interrupted):
    _, (_, stopped, _) = interrupted
    record, saved = stopped["records"]["narrow"], stopped["saved"]["narrow"]
    assert stopped["code"] == 75 and "Traceback" not in stopped["text"]
    assert "stopped: 1 of 3 runs has no result yet" in stopped["text"]
    # The signal came at update 61: the update at hand ends, and no more.
    assert record["status"] == "preempted" and 61 <= record["step"] <= 63
    assert record["reason"] == f"stopped after update {record['step']} (SIGTERM)"
    assert saved[-1] == record["step"] == stopped["logged"]["narrow"]


def test_stopped_row_goes_on_from_where_it_was_stopped(interrupted):
    _, (_, stopped, last) = interrupted
    where = stopped["records"]["narrow"]["step"]
    assert last["code"] == 0
    assert last["starts"] == [str(where)]


def test_finished_rows_are_not_touched_again(interrupted):
    _, (killed, stopped, last) = interrupted
    for before, after, rows in (
        (killed, stopped, ["base"]),
        (stopped, last, ["base", "smooth"]),
    ):
        for row in rows:
            assert len(before["stamps"][row]) > 4
            assert after["stamps"][row] == before["stamps"][row]


@pytest.mark.parametrize("row", tiny.ROWS)
def test_interrupted_run_equals_the_straight_one_bit_for_bit(
    straight, interrupted, row
):
    ours, theirs = (
        workdir / "runs" / row / "seed0" for workdir in (interrupted[0], straight)
    )
    assert tiny.saved_steps(ours) == tiny.saved_steps(theirs) == [100, 150]
    assert tiny.checkpoint(ours) == tiny.checkpoint(theirs)
    assert tiny.checkpoint(ours, 100) == tiny.checkpoint(theirs, 100)
    assert tiny.checkpoint(ours, 100) != tiny.checkpoint(ours, 150)
    values = tiny.values(ours)
    assert values == tiny.values(theirs)
    assert {step for step, tag in values if tag == "train/loss"} == set(range(1, 151))
    found, expected = read_record(ours), read_record(theirs)
    for key in ("identity", "scores", "tokens", "step", "parameters", "data"):
        assert found[key] == expected[key], key
    for name in ("validation", "test_2016_flickr"):
        path = f"translations/{name}.txt"
        assert (ours / path).read_bytes() == (theirs / path).read_bytes()


def test_tensorboard_shows_every_run_once_a_step_also_after_a_kill(interrupted):
    workdir, _ = interrupted
    board = Board(workdir)
    found = {name: (status, values) for name, status, _, values in board.sessions()}
    assert set(found) == {f"runs/{row}/seed0" for row in tiny.ROWS}
    for run, (status, shown) in found.items():
        scores = {
            (s["split"], s["metric"]): s["value"]
            for s in read_record(workdir / run)["scores"]
        }
        assert status == "SUCCESS"
        for split, tag in (("validation", "validation"), ("test_2016_flickr", "test")):
            for metric, name in (("ppl", "perplexity"), ("bleu", "bleu")):
                expected = np.float32(scores[split, metric])
                assert shown[f"{tag}/final_{name}"] == expected
        for tag in ("train/loss", "update_ratio/decoder", "gradient_norm/all"):
            steps = [step for step, _ in board.scalars(run, tag)]
            assert steps == list(range(1, 151))
        (final,) = board.scalars(run, "validation/final_bleu")
        assert final[0] == 150
    columns, _ = board.columns()
    smoothing, sizes = "regularization.label_smoothing", "model.d_ff"
    assert set(columns) == {"row", "group", "seed", smoothing, sizes}


def test_second_run_has_nothing_to_do_and_loads_no_jax(folder, copied):
    before = {row: tiny.stamps(copied / f"runs/{row}/seed0") for row in tiny.ROWS}
    check = (
        "import atexit, sys\n"
        "heavy = {'jax', 'flax', 'orbax', 'tensorflow_datasets'}\n"
        "atexit.register(lambda: print(heavy & set(sys.modules), file=sys.stderr))\n"
    )
    given = tiny.arguments(folder, copied, f"--rows={','.join(tiny.ROWS)}")
    done = tiny.process("sweep", given, before=check)
    text = done.stderr.decode()
    assert done.returncode == 0 and "nothing to do" in text
    assert text.splitlines()[-1] == "set()"
    after = {row: tiny.stamps(copied / f"runs/{row}/seed0") for row in tiny.ROWS}
    assert after == before


def test_rows_that_go_wrong_leave_the_others_finished(folder, copied):
    rows = ("base", "wild", "stuck", "late")
    directories = {row: copied / "runs" / row / "seed0" for row in rows}
    directories["stuck"].mkdir(parents=True)
    obstacle = directories["stuck"] / "checkpoints"
    obstacle.write_text("a file where a folder should be")
    given = tiny.arguments(folder, copied, f"--rows={','.join(rows)}")
    done = tiny.process("sweep", given)
    text = done.stderr.decode()
    assert done.returncode == 1 and "Traceback" not in text
    assert "stuck seed 0 failed: " in text and "1 of 4 runs has no result" in text
    records = {row: read_record(directory) for row, directory in directories.items()}
    states = ["finished", "diverged", "failed", "finished"]
    assert [record["status"] for record in records.values()] == states
    assert (
        f"loss is nan at update {records['wild']['step']}"
        in (records["wild"]["reason"])
    )
    assert records["wild"]["scores"] == records["stuck"]["scores"] == []
    assert records["stuck"]["reason"] in text
    listed = {name: status for name, status, *_ in Board(copied).sessions()}
    ends = ("SUCCESS", "FAILURE", "FAILURE", "SUCCESS")
    named = {f"runs/{row}/seed0": end for row, end in zip(rows, ends, strict=True)}
    assert named.items() <= listed.items()
    lines = done.stdout.decode().splitlines()
    assert any("wild" in line and "diverged" in line for line in lines)
    shown = tiny.process("tables", [f"--workdir={copied}", "--format=json"]).stdout
    table = {row["row"]: row for row in json.loads(shown)["rows"]}
    assert [table[row]["state"] for row in rows] == states
    assert [table[row]["ppl"] is None for row in rows] == [False, True, True, False]
    assert table["wild"]["bleu"] is table["stuck"]["bleu"] is None
    # Repaired, it is the only row that is run: what diverged would diverge again.
    before = {row: tiny.stamps(directories[row]) for row in ("base", "wild", "late")}
    obstacle.unlink()
    done = tiny.process("sweep", given)
    assert done.returncode == 1, done.stderr.decode()
    assert "1 of 4 runs diverged and would do so again" in done.stderr.decode()
    assert read_record(directories["stuck"])["status"] == "finished"
    ends = {name: status for name, status, *_ in Board(copied).sessions()}
    assert ends["runs/stuck/seed0"] == "SUCCESS"
    assert not (directories["stuck"] / "error.txt").exists()
    assert {row: tiny.stamps(directories[row]) for row in before} == before


def test_row_too_short_for_a_translation_is_refused_before_training(folder, copied):
    before = tiny.stamps(copied / "runs/base/seed0")
    given = tiny.arguments(folder, copied, "--rows=base,short,late")
    done = tiny.process("sweep", given)
    text = done.stderr.decode()
    assert done.returncode == 2 and done.stdout == b"" and "Traceback" not in text
    assert "row short: model.max_length: 64 learned positions are too few" in text
    assert not (copied / "runs/late").exists() and not (copied / "runs/short").exists()
    assert tiny.stamps(copied / "runs/base/seed0") == before


# Bad input: one message, exit 2, and nothing of it is used once it is repaired.


def cut(corpus):
    path = corpus / "train.en"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))


def garble(corpus):
    path = corpus / "val.de"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], b"m\xff" + lines[2], *lines[3:]]))


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (shutil.rmtree, ["data.directory: there is no folder"]),
        (lambda c: (c / "val.en").unlink(), ["data.directory: ", "lacks val.en"]),
        (cut, ["train.de.gz has 60 lines, but ", "train.en has 58; line n of one"]),
        (garble, ["val.de: line 3, byte 2 of the line: 0xff is not UTF-8"]),
    ],
    ids=["folder", "split", "counts", "bytes"],
)
def test_unusable_corpus_is_one_message_and_leaves_nothing(
    folder, straight, tmp_path, capsys, spoil, parts
):
    corpus, workdir = tmp_path / "corpus", tmp_path / "w"
    shutil.copytree(folder / "corpus", corpus)
    places = [f"--cache={tmp_path / 'cache'}", f"--config={folder / 'tiny.py'}"]
    places.append(f"--config.data.directory={corpus}")
    spoil(corpus)
    code = command.run(sweep.COMMAND, [*places, f"--workdir={workdir}"])
    out, error = capsys.readouterr()
    assert (code, out) == (2, "") and "Traceback" not in error
    message = error.replace("preparing the corpus multi30k ...\n", "")
    assert len(message.splitlines()) == 1
    for part in parts:
        assert part in message
    assert not (workdir / "sweep.json").exists() and not (workdir / "runs").exists()
    shutil.copytree(folder / "corpus", corpus, dirs_exist_ok=True)
    assert command.run(prepare.COMMAND, [*places, "--format=json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = read_record(straight / "runs/base/seed0")["data"]
    assert found["manifest_hash"] == expected["manifest_hash"]
    assert found["vocabulary"]["hash"] == expected["vocabulary_hash"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--rows=base,smoth", "unknown row 'smoth'; did you mean smooth?"),
        ("--config.model.d_modl=3", "model.d_modl: unknown field; did you mean"),
        ("--config.model.norm=mid", "model.norm: 'mid' is not allowed"),
    ],
)
def test_refused_request_is_one_message_and_makes_no_folder(
    folder, tmp_path, capsys, argument, message
):
    workdir = tmp_path / "w"
    given = tiny.arguments(folder, workdir, "--rows=base")
    assert command.run(sweep.COMMAND, [*given, argument]) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.startswith(message) and not workdir.exists()


def test_run_beside_another_is_the_run_alone(folder, straight, tmp_path):
    """With a core each, bit for bit; on two cores sums are rounded otherwise."""
    if len(devices.cores()) < 2:
        pytest.skip("two workers need two cores")
    two, one = tmp_path / "two", tmp_path / "one"
    for workdir, more in (
        (two, ["--rows=base,smooth", "--jobs=2"]),
        (one, ["--rows=base", "--devices_per_run=1"]),
    ):
        done = tiny.process("sweep", tiny.arguments(folder, workdir, *more))
        assert done.returncode == 0, done.stderr.decode()
    runs = [w / "runs/base/seed0" for w in (two, one, straight)]
    beside, alone, wide = map(read_record, runs)
    assert tiny.checkpoint(runs[0]) == tiny.checkpoint(runs[1])
    assert beside["scores"] == alone["scores"]
    first = {(s, "train/loss") for s in range(1, 6)}
    ours, theirs = tiny.values(runs[0]), tiny.values(runs[2])
    for key in first:
        assert ours[key] == pytest.approx(theirs[key], rel=1e-4)
    # The record says what the run had, and which command a user gave.
    assert beside["device"]["count"] == 1 and beside["identity"] == wide["identity"]
    assert beside["command"][1:3] == ["-m", "experiments.sweep"]
    assert beside["command"][-1] == "--jobs=2"
    other = read_record(two / "runs/smooth/seed0")
    assert other["process"]["pid"] != beside["process"]["pid"]
    assert f"process {beside['process']['pid']} on" in (runs[0] / "log.txt").read_text()
