"""Records: written whole, strict JSON, faults named with their file."""

import errno
import json
import os
import socket
import subprocess
import sys

import pytest

from tests.report import written_sweeps as written
from transformer_ablation.process import this_process
from transformer_ablation.report import json_file
from transformer_ablation.report.record import (
    RecordError,
    add_scores,
    live_status,
    new_record,
    new_score,
    read_record,
    read_records,
    read_sweep,
    restart_record,
    run_directory,
    update_record,
    write_record,
    write_sweep,
)

# The keys of the run directory's schema, as the design lists them.
KEYS = {
    *("results_version", "row", "group", "label", "seed", "status", "reason"),
    *("identity", "config", "command", "commit", "packages", "device", "process"),
    *("parameters", "flops", "data", "step", "seconds", "tokens"),
    *("tokens_per_second", "scores"),
}


def fresh(**known):
    return new_record(
        results_version=1,
        row="A_h1",
        group="A",
        label="one head",
        seed=3,
        identity="12ab",
        config=written.BASE,
        **known,
    )


def test_new_record_has_every_key_and_unknown_is_null():
    record = fresh(parameters={"total": 5})
    # Records of before there were these still load, so they are no needed keys.
    newer = {"trained_as", "sessions"}
    assert set(record) == KEYS | newer and not any(record[key] for key in newer)
    assert record["status"] == "pending"
    process = record["process"]
    assert (process["host"], process["pid"]) == (socket.gethostname(), os.getpid())
    assert record["parameters"] == {"total": 5}
    for key in ("reason", "commit", "device", "flops", "data", "step"):
        assert record[key] is None
    assert record["seconds"] == {"compile": None, "train": None, "evaluate": None}
    assert record["tokens_per_second"] is None


def test_record_comes_back_as_written(tmp_path):
    record = fresh(reason='Zeichen: äß€\u2028 and \\ "quotes"', step=0)
    write_record(tmp_path, record)
    assert read_record(tmp_path) == record
    assert os.listdir(tmp_path) == ["record.json"]


def test_absent_record_is_none(tmp_path):
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "nowhere") is None
    assert read_sweep(tmp_path) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_number_that_is_not_finite_becomes_null_with_a_reason(tmp_path, value):
    score = new_score("validation", "ppl", value, sentences=5, steps=[9])
    write_record(tmp_path, fresh(scores=[score], reason="stopped"))
    text = (tmp_path / "record.json").read_text()
    assert "NaN" not in text and "Infinity" not in text
    stored = read_record(tmp_path)
    assert stored["scores"][0]["value"] is None
    assert stored["reason"].startswith("stopped; ")
    assert "scores[0].value" in stored["reason"]


def test_numbers_of_numpy_are_stored_as_numbers(tmp_path):
    numpy = pytest.importorskip("numpy")
    write_record(tmp_path, fresh(step=numpy.int64(7), flops={"a": numpy.float32(0.5)}))
    stored = read_record(tmp_path)
    assert stored["step"] == 7 and stored["flops"] == {"a": 0.5}


def test_update_changes_only_what_it_names(tmp_path):
    write_record(tmp_path, fresh())
    returned = update_record(tmp_path, status="running", step=5)
    expected = {**fresh(), "status": "running", "step": 5}
    assert returned == read_record(tmp_path) == expected


def test_update_refuses_a_misspelt_key_and_keeps_the_record(tmp_path):
    write_record(tmp_path, fresh())
    with pytest.raises(RecordError, match="'stauts'; did you mean status"):
        update_record(tmp_path, stauts="finished")
    assert read_record(tmp_path) == fresh()


def test_update_needs_a_record(tmp_path):
    with pytest.raises(RecordError, match="record.json: missing"):
        update_record(tmp_path, step=1)


def test_added_score_takes_the_place_of_the_same_one(tmp_path):
    old, other, new = (
        new_score("validation", "ppl", value, sentences=5, steps=[step])
        for value, step in ((2.0, 9), (3.0, 8), (4.0, 9))
    )
    write_record(tmp_path, fresh(scores=[old, other]))
    add_scores(tmp_path, [new])
    assert read_record(tmp_path)["scores"] == [other, new]


def test_scores_added_at_once_are_all_kept(tmp_path):
    """Each process reads what those before it have written."""
    write_record(tmp_path, fresh())
    code = (
        "import sys\n"
        "from transformer_ablation.report.record import add_scores, new_score\n"
        "for step in range(20):\n"
        "    steps = [step, int(sys.argv[2])]\n"
        "    new = new_score('validation', 'ppl', 2.0, sentences=5, steps=steps)\n"
        "    add_scores(sys.argv[1], [new])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    started = [subprocess.Popen([*command, str(n)]) for n in range(3)]
    assert [process.wait(timeout=60) for process in started] == [0, 0, 0]
    found = sorted(score["steps"] for score in read_record(tmp_path)["scores"])
    assert found == [[step, n] for step in range(20) for n in range(3)]


def test_restart_keeps_what_of_the_stored_record_is_asked_for(tmp_path):
    restart_record(tmp_path, fresh(step=0), lambda old: {"step": old and old["step"]})
    assert read_record(tmp_path) == fresh(step=None)
    update_record(tmp_path, step=7, status="preempted")
    restart_record(
        tmp_path, fresh(step=9), lambda old: {"label": f"after {old['step']}"}
    )
    assert read_record(tmp_path) == fresh(step=9) | {"label": "after 7"}


def test_unknown_status_is_refused_with_those_allowed(tmp_path):
    with pytest.raises(RecordError, match="'done' is not allowed.*finished, failed"):
        write_record(tmp_path, {**fresh(), "status": "done"})
    assert read_record(tmp_path) is None


@pytest.mark.parametrize("text", ['{"row": ', "", '{"step": NaN}', '{"a": "\x01"}'])
def test_broken_json_is_refused_with_the_file_name(tmp_path, text):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(RecordError) as error:
        read_record(tmp_path)
    assert str(tmp_path / "record.json") in str(error.value)
    assert "not valid JSON" in str(error.value)
    assert (tmp_path / "record.json").read_text() == text  # nothing is lost


def test_bytes_that_are_no_utf8_are_refused_with_the_file_name(tmp_path):
    (tmp_path / "record.json").write_bytes(b'{"row": "\xff"}')
    with pytest.raises(RecordError, match="record.json: not valid JSON"):
        read_record(tmp_path)


@pytest.mark.parametrize("text", ["[]", "3", "null"])
def test_json_that_is_no_object_is_refused(tmp_path, text):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(RecordError, match="must be a JSON object"):
        read_record(tmp_path)


@pytest.mark.parametrize("key", sorted(KEYS))
def test_missing_key_is_named(tmp_path, key):
    record = fresh()
    del record[key]
    (tmp_path / "record.json").write_text(json.dumps(record))
    with pytest.raises(RecordError, match=f"record lacks {key}$"):
        read_record(tmp_path)


def test_missing_key_of_a_score_is_named(tmp_path):
    score = new_score("validation", "ppl", 3.0, sentences=5, steps=[9])
    del score["steps"]
    with pytest.raises(RecordError, match=r"scores\[0\] lacks steps"):
        write_record(tmp_path, fresh(scores=[score]))


def test_score_of_another_metric_is_refused():
    with pytest.raises(RecordError, match="'accuracy'.*ppl, bleu"):
        new_score("validation", "accuracy", 1.0, sentences=5, steps=[9])


def test_failed_write_keeps_the_old_record_and_leaves_nothing(tmp_path, monkeypatch):
    write_record(tmp_path, fresh())

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_record(tmp_path, fresh(step=99))
    assert read_record(tmp_path) == fresh()
    assert os.listdir(tmp_path) == ["record.json"]


def test_records_are_those_of_the_runs_in_order_of_seed(tmp_path):
    row = written.sweep_row("base", {})
    for seed in (10, 9, 2):
        write_record(run_directory(tmp_path, "base", seed), written.record(row, seed))
    (tmp_path / "runs" / "base" / "seed3").mkdir()  # begun, nothing written yet
    (tmp_path / "runs" / "notes.txt").write_text("not a run")
    assert [r["seed"] for r in read_records(tmp_path)] == [2, 9, 10]


def test_record_in_the_folder_of_another_run_is_refused(tmp_path):
    row = written.sweep_row("base", {})
    write_record(run_directory(tmp_path, "copy", 0), written.record(row, 0))
    with pytest.raises(RecordError, match="row 'base', seed 0; move the folder"):
        read_records(tmp_path)


def test_sweep_comes_back_as_written(tmp_path):
    sweep = written.sweep(written.paper_rows())
    write_sweep(tmp_path / "new", sweep)
    assert read_sweep(tmp_path / "new") == sweep


@pytest.mark.parametrize("key", ["title", "config", "rows", "seeds", "packages"])
def test_sweep_without_a_key_is_refused(tmp_path, key):
    sweep = written.sweep(written.paper_rows())
    del sweep[key]
    with pytest.raises(RecordError, match=f"sweep.json: sweep lacks {key}"):
        write_sweep(tmp_path, sweep)


def test_sweep_row_without_a_key_is_refused(tmp_path):
    sweep = written.sweep(written.paper_rows())
    del sweep["rows"][4]["paper"]
    (tmp_path / "sweep.json").write_text(json.dumps(sweep))
    with pytest.raises(RecordError, match=r"rows\[4\] lacks paper"):
        read_sweep(tmp_path)


@pytest.mark.parametrize("key", ["rows", "seeds"])
def test_sweep_without_runs_is_refused(tmp_path, key):
    sweep = {**written.sweep(written.paper_rows()), key: []}
    with pytest.raises(RecordError, match=f"{key} must be a list with at least one"):
        write_sweep(tmp_path, sweep)


def running(host, pid):
    row = written.sweep_row("base", {})
    return written.record(row, status="running", process={"host": host, "pid": pid})


def test_running_record_of_a_dead_process_is_interrupted():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    record = running(socket.gethostname(), child.pid)
    try:
        assert live_status(record) == "running"
    finally:
        child.communicate()
    assert live_status(record) == "interrupted"


def test_running_record_of_another_machine_is_believed():
    assert live_status(running("elsewhere.example", 2**22 + 1)) == "running"


def test_finished_record_stays_finished_when_its_process_has_ended():
    record = {**running(socket.gethostname(), 2**22 + 1), "status": "finished"}
    assert live_status(record) == "finished"


def test_process_number_given_to_another_process_is_interrupted():
    record = running(socket.gethostname(), os.getpid())
    record["process"] = this_process()
    assert live_status(record) == "running"
    record["process"]["started"] = "1"  # another start: another process
    assert live_status(record) == "interrupted"


def test_copy_that_was_put_aside_is_no_record(tmp_path):
    record = written.record(written.sweep_row("base", {}))
    write_record(tmp_path / "runs/base/seed0", record)
    (tmp_path / "runs/base/seed0.bak").mkdir()
    (tmp_path / "runs/base/seed0.bak/record.json").write_text("{")
    assert [r["seed"] for r in read_records(tmp_path)] == [0]


def test_record_whose_config_lacks_a_section_is_refused(tmp_path):
    record = written.record(written.sweep_row("base", {}))
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**record, "config": {}}))
    with pytest.raises(RecordError, match="record.json: config lacks model"):
        read_record(tmp_path)
    path.write_text(json.dumps({**record, "config": {**record["config"], "data": 3}}))
    with pytest.raises(RecordError, match="config.data must be a JSON object"):
        read_record(tmp_path)


def test_sweep_whose_config_lacks_a_section_is_refused(tmp_path):
    sweep = written.sweep(written.paper_rows())
    (tmp_path / "sweep.json").write_text(json.dumps({**sweep, "config": {}}))
    with pytest.raises(RecordError, match="sweep.json: config lacks model"):
        read_sweep(tmp_path)


def test_file_system_without_locks_ends_no_run(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(json_file.fcntl, "flock", flock)
    write_record(tmp_path, fresh())
    assert update_record(tmp_path, step=5)["step"] == 5
