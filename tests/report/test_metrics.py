"""Metrics: one value a step in the file and in TensorBoard, also after a kill."""

import errno
import json
import math
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from transformer_ablation.report.metrics import (
    MetricsError,
    MetricWriter,
    last_metrics,
    read_metrics,
)


def lines(directory):
    text = (directory / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def board(directory, tag):
    """[(step, value)] as TensorBoard shows them."""
    accumulator = EventAccumulator(str(directory))
    accumulator.Reload()
    if tag not in accumulator.Tags()["scalars"]:
        return []
    return [(e.step, e.value) for e in accumulator.Scalars(tag)]


def fill(directory, steps, resume_step=None, value=lambda step: step / 2):
    with MetricWriter(directory, resume_step) as writer:
        for step in steps:
            writer.write(step, {"train/loss": value(step)}, seconds=10.0 * step)


def test_values_are_in_the_file_and_in_tensorboard(tmp_path):
    with MetricWriter(tmp_path) as writer:
        writer.write(4, {"train/loss": 2.5, "validation/ppl": 8.0}, seconds=1.5)
    assert lines(tmp_path) == [
        {"step": 4, "tag": "train/loss", "value": 2.5, "seconds": 1.5},
        {"step": 4, "tag": "validation/ppl", "value": 8.0, "seconds": 1.5},
    ]
    assert board(tmp_path, "train/loss") == [(4, 2.5)]
    assert board(tmp_path, "validation/ppl") == [(4, 8.0)]


def test_lines_can_be_read_before_the_writer_closes(tmp_path):
    with MetricWriter(tmp_path) as writer:
        writer.write(1, {"train/loss": 2.5}, seconds=1.5)
        assert [e["step"] for e in read_metrics(tmp_path)] == [1]


def test_resume_drops_later_values_and_shows_one_value_a_step(tmp_path):
    fill(tmp_path, [1, 2, 3, 4])
    fill(tmp_path, [3, 4, 5], resume_step=2, value=lambda step: 100.0 + step)
    expected = [(1, 0.5), (2, 1.0), (3, 103.0), (4, 104.0), (5, 105.0)]
    assert [(e["step"], e["value"]) for e in lines(tmp_path)] == expected
    assert board(tmp_path, "train/loss") == expected


def test_resume_without_later_values_keeps_all(tmp_path):
    fill(tmp_path, [1, 2])
    fill(tmp_path, [], resume_step=2)
    assert board(tmp_path, "train/loss") == [(1, 0.5), (2, 1.0)]
    assert [e["step"] for e in lines(tmp_path)] == [1, 2]


def test_start_afresh_drops_everything(tmp_path):
    fill(tmp_path, [0, 1, 2])
    fill(tmp_path, [0, 1], value=lambda step: 7.0)
    assert [(e["step"], e["value"]) for e in lines(tmp_path)] == [(0, 7.0), (1, 7.0)]
    assert board(tmp_path, "train/loss") == [(0, 7.0), (1, 7.0)]


def test_torn_last_line_is_dropped_on_resume(tmp_path):
    fill(tmp_path, [1, 2])
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 2, "tag": "train/')
    assert [e["step"] for e in read_metrics(tmp_path)] == [1, 2]
    fill(tmp_path, [3], resume_step=2)
    assert [e["step"] for e in lines(tmp_path)] == [1, 2, 3]


def test_broken_line_is_named_and_nothing_is_lost(tmp_path):
    fill(tmp_path, [1, 2])
    path = tmp_path / "metrics.jsonl"
    path.write_text("oops\n" + path.read_text())
    before = path.read_text()
    with pytest.raises(MetricsError, match=r"metrics.jsonl, line 1: not a metric"):
        MetricWriter(tmp_path, resume_step=2)
    assert path.read_text() == before


def test_torn_event_file_does_not_hide_what_comes_after(tmp_path):
    fill(tmp_path, [1, 2, 3])
    (path,) = tmp_path.glob("events.out.tfevents.*")
    path.write_bytes(path.read_bytes()[:-5])
    fill(tmp_path, [4], resume_step=3)
    expected = [(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)]
    assert sorted(board(tmp_path, "train/loss")) == expected


def test_killed_process_loses_no_value_up_to_the_resumed_step(tmp_path):
    # A kill takes what TensorBoard's writer still held; metrics.jsonl has it.
    program = textwrap.dedent("""
        import os, signal, sys
        from transformer_ablation.report.metrics import MetricWriter
        writer = MetricWriter(sys.argv[1])
        for step in range(1, 40):
            writer.write(step, {"train/loss": step / 2}, seconds=step)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    child = subprocess.run([sys.executable, "-c", program, tmp_path])
    assert child.returncode == -signal.SIGKILL
    assert len(board(tmp_path, "train/loss")) < 39  # else this tests nothing
    fill(tmp_path, [31], resume_step=30)
    expected = [(step, step / 2) for step in range(1, 32)]
    assert board(tmp_path, "train/loss") == expected
    assert [(e["step"], e["value"]) for e in lines(tmp_path)] == expected


def test_several_resumes_in_one_second_keep_their_files(tmp_path):
    for step in range(1, 6):
        fill(tmp_path, [step], resume_step=step - 1)
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 5
    assert board(tmp_path, "train/loss") == [(s, s / 2) for s in range(1, 6)]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_value_that_is_not_finite_is_null(tmp_path, value):
    with MetricWriter(tmp_path) as writer:
        writer.write(1, {"train/loss": value}, seconds=1.0)
    assert lines(tmp_path)[0]["value"] is None
    ((step, shown),) = board(tmp_path, "train/loss")
    assert step == 1 and not math.isfinite(shown)


@pytest.mark.parametrize("tag", ["loss", "/loss", "train/", "train loss/x", ""])
def test_tag_that_is_not_split_and_quantity_is_refused(tmp_path, tag):
    with (
        MetricWriter(tmp_path) as writer,
        pytest.raises(MetricsError, match="<split>/<quantity>"),
    ):
        writer.write(1, {"train/loss": 1.0, tag: 2.0}, seconds=1.0)
    assert lines(tmp_path) == []  # a refused call writes none of its values


def test_newest_values_of_a_long_file(tmp_path):
    entry = {"tag": "train/loss", "value": 1.0, "seconds": 2.0}
    with open(tmp_path / "metrics.jsonl", "w") as file:
        for step in range(5000):
            file.write(json.dumps({"step": step, **entry}) + "\n")
        file.write('{"step": 5000')
    steps = [e["step"] for e in last_metrics(tmp_path)]
    assert steps[-1] == 4999
    assert steps == list(range(steps[0], 5000)) and len(steps) > 100


def test_no_file_has_no_values(tmp_path):
    assert read_metrics(tmp_path) == last_metrics(tmp_path) == []


def test_close_twice_is_harmless(tmp_path):
    writer = MetricWriter(tmp_path)
    writer.close()
    writer.close()
    assert os.path.getsize(tmp_path / "metrics.jsonl") == 0


def test_full_disk_that_ends_tensorboards_thread_is_an_error(tmp_path):
    """Without a reader of its queue, writing would wait for ever once it is full."""
    writer = MetricWriter(tmp_path)
    worker = writer._board.file_writer.event_writer._worker
    worker.stop()
    with pytest.raises(OSError) as error:
        writer.write(1, {"train/loss": 1.0}, 0.0)
    assert error.value.errno == errno.ENOSPC and error.value.filename == str(tmp_path)
    with pytest.raises(OSError):
        writer.close()
    writer.close()  # has been closed
    # What tensorboardX has registered for the end of the process does nothing more.
    writer._board.file_writer.event_writer.close()
    assert worker.is_alive() is False
