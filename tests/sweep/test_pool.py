"""The launcher: nothing is lost, nothing is run twice, nothing is mixed."""

import dataclasses
import errno
import io
import json
import os
import shutil
import signal
import threading

import pytest

from transformer_ablation.config import replace, to_mapping
from transformer_ablation.sweep import claims, pool, runs
from transformer_ablation.sweep.progress import Reporter
from transformer_ablation.sweep.worker_thread import WorkerThread


def read_record(directory):
    path = directory / "record.json"
    return json.loads(path.read_text()) if path.exists() else None


def write_record(run, status, reason=None):
    run.directory.mkdir(parents=True, exist_ok=True)
    record = {"identity": run.identity, "status": status, "reason": reason}
    record["config"] = to_mapping(run.config)
    (run.directory / "record.json").write_text(json.dumps(record))


class Trainer:
    """A ``run_one`` that takes what each row is told to do."""

    def __init__(self, **actions):
        self.actions, self.ran = actions, []

    def __call__(self, run, stop, progress):
        self.ran.append(run.name)
        write_record(run, "running")
        progress({"step": 1, "steps": 6, "loss": 2.5, "tokens_per_second": 100.0})
        action = self.actions.get(run.row)
        status = (action(run, stop) if action else None) or "finished"
        write_record(run, status)
        return status


def launch(todo, run_one, **kwargs):
    return pool.launch(
        todo,
        lambda share, hear: WorkerThread(
            lambda: run_one, hear, read_record=read_record, mark_stopped=write_record
        ),
        read_record=read_record,
        mark_stopped=write_record,
        reporter=kwargs.pop("reporter", None) or Reporter(stream=io.StringIO()),
        **kwargs,
    )


def fail(run, stop):
    raise RuntimeError("no luck")


def stop_by(number):
    def action(run, stop):
        os.kill(os.getpid(), number)
        assert stop.wait(5)
        return "preempted"

    return action


def test_second_launch_runs_nothing_and_touches_no_file(make, tmp_path):
    launch(make(), Trainer())
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    again = Trainer()
    outcome = launch(make(), again)
    assert again.ran == []
    assert set(outcome.states.values()) == {"finished"} and outcome.complete
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


def test_failing_run_is_recorded_and_the_sweep_goes_on(make):
    trainer = Trainer(small=fail)
    todo = make()
    outcome = launch(todo, trainer)
    assert trainer.ran == ["base seed 0", "small seed 0", "wide seed 0"]
    assert list(outcome.states.values()) == ["finished", "failed", "finished"]
    record = read_record(todo[1].directory)
    assert (record["status"], record["reason"]) == ("failed", "RuntimeError: no luck")
    kept = (todo[1].directory / "error.txt").read_text()
    assert "Traceback" in kept and "in fail" in kept
    assert "small seed 0 failed: RuntimeError: no luck" in outcome.message()
    assert "1 of 3 runs has no result" in outcome.message()


def test_failed_and_interrupted_runs_are_tried_again(make):
    launch(make(), Trainer(small=fail, wide=lambda run, stop: "preempted"))
    again = Trainer()
    assert launch(make(), again).complete
    assert again.ran == ["small seed 0", "wide seed 0"]


def test_diverged_run_is_not_repeated_and_has_no_result(make):
    outcome = launch(make(), Trainer(wide=lambda run, stop: "diverged"))
    again = Trainer()
    repeated = launch(make(), again)
    assert again.ran == []
    for each in (outcome, repeated):
        assert (each.left, each.diverged, each.complete) == (0, 1, False)
        assert "1 of 3 runs diverged and would do so again" in each.message()
        assert "same command" not in each.message()


class Closed(io.StringIO):
    """A stream whose reader has gone after some lines."""

    def __init__(self, lines, error):
        super().__init__()
        self.left, self.error = lines, error

    def write(self, text):
        if self.left <= 0:
            raise self.error
        self.left -= 1
        return len(text)


@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(5, "Input/output error"), ValueError("closed")]
)
def test_a_reader_that_goes_away_ends_no_run(make, error):
    """Each line is a write of its text and one of its end."""
    reporter = Reporter(stream=Closed(2, error), every_seconds=0.0)
    trainer = Trainer()
    outcome = launch(make(), trainer, reporter=reporter)
    assert outcome.complete and len(trainer.ran) == 3


def test_folder_of_another_run_is_refused_before_anything_starts(make, tmp_path):
    launch(make(), Trainer())
    before = (tmp_path / "runs/wide/seed0/record.json").read_text()
    trainer = Trainer()
    changed = make(seeds=(1, 0), changes={"train.steps": 9})
    with pytest.raises(runs.SweepError) as caught:
        launch(changed, trainer)
    message = str(caught.value)
    assert trainer.ran == []
    assert str(tmp_path / "runs/wide/seed0") in message
    assert "train.steps is 6 there and 9 now" in message
    assert "--workdir" in message
    assert (tmp_path / "runs/wide/seed0/record.json").read_text() == before


def test_folder_of_the_same_config_on_other_data_is_refused(make):
    launch(make(), Trainer())
    with pytest.raises(runs.SweepError, match="the data or the version"):
        launch(make(manifest="other"), Trainer())


def test_moved_data_is_the_same_run(make):
    launch(make(), Trainer())
    again = Trainer()
    launch(make(changes={"data.directory": "/moved"}), again)
    assert again.ran == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_after_the_run_has_saved(make, number):
    handler = signal.getsignal(number)
    trainer = Trainer(small=stop_by(number))
    todo = make()
    outcome = launch(todo, trainer)
    assert trainer.ran == ["base seed 0", "small seed 0"]
    assert outcome.interrupted and outcome.left == 2
    assert outcome.states["wide seed 0"] == "pending"
    assert read_record(todo[1].directory)["status"] == "preempted"
    assert "same command again" in outcome.message()
    assert signal.getsignal(number) is handler


def test_run_that_another_launcher_took_meanwhile_is_left_to_it(make, monkeypatch):
    """It lacked memory here; before it is tried again, alone, somebody else has it."""
    monkeypatch.setattr(pool, "POLL_SECONDS", 0.02)
    todo = make()
    small = todo[1]

    def lack(run, stop):
        raise MemoryError

    def take(run, stop):
        claim = claims.acquire(small.directory, 1)

        def finish():
            write_record(small, "finished")
            claim.release(final=True)

        threading.Timer(0.5, finish).start()

    trainer = Trainer(small=lack, wide=take)
    assert launch(todo, trainer).complete
    assert trainer.ran == ["base seed 0", "small seed 0", "wide seed 0"]


def test_full_disk_ends_the_sweep(make):
    def full(run, stop):
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/x/y")
        except OSError as error:
            raise RuntimeError("checkpoint not written") from error

    trainer = Trainer(small=full)
    with pytest.raises(OSError) as caught:
        launch(make(), trainer)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/x/y")
    assert trainer.ran == ["base seed 0", "small seed 0"]


def test_vanished_folder_ends_the_sweep_and_is_named(make, tmp_path):
    """Nothing is trained again into a folder that stands where the disk was."""

    def vanish(run, stop):
        shutil.rmtree(tmp_path / "runs")
        raise claims.ClaimLost("another process has taken this run over")

    todo, trainer = make((0,)), Trainer(base=vanish)
    with pytest.raises(runs.SweepError, match="the folder has gone, or its disk has"):
        launch(todo, trainer)
    assert trainer.ran == ["base seed 0"] and not (tmp_path / "runs").exists()


def test_run_stopped_by_another_of_its_processes_asks_for_another_start(make):
    outcome = launch(make((0,))[:1], Trainer(base=lambda run, stop: "preempted"))
    assert outcome.exit_code == 75 and outcome.left == 1


def test_unwritable_places_are_told_without_a_traceback(make):
    """error.txt or log.txt cannot be written: the reason is told all the same."""

    def fails(run, stop):
        (run.directory / "error.txt").mkdir()
        raise RuntimeError("no luck")

    outcome = launch(make((0,)), Trainer(small=fails))
    reason = outcome.reasons["small seed 0"]
    assert "RuntimeError: no luck (of which nothing could be kept: " in reason
    assert "Is a directory" in reason
    assert sorted(outcome.states.values()) == ["failed", "finished", "finished"]


def beam(run, size):
    """A run that differs from another in decoding alone."""
    name = f"beam{size}"
    return dataclasses.replace(
        run,
        row=name,
        config=replace(run.config, {"decode.beam_size": size}),
        identity=name,
        directory=run.directory.parents[1] / name / run.directory.name,
    )


def test_run_waits_for_one_that_trains_the_same(make):
    """Of rows that differ in decoding alone one goes alone, then the others at once."""
    going, seen, pairs = set(), [], threading.Barrier(2)

    def train(run, stop):
        going.add(run.row)
        if run.row != "wide":
            pairs.wait(20)
            seen.append(set(going))
            pairs.wait(20)
        going.discard(run.row)

    base, small, wide = make()
    todo = [base, beam(base, 7), beam(base, 8), small, wide]
    actions = {run.row: train for run in todo}
    outcome = launch(todo, Trainer(**actions), shares=(pool.Share(),) * 2)
    assert outcome.complete
    assert [set(rows) - {"wide"} for rows in seen] == [
        *[{"base", "small"}] * 2,
        *[{"beam7", "beam8"}] * 2,
    ]


class Elsewhere:
    """Another launcher has a run, and ends it some time later."""

    def __init__(self, run, recorded=True):
        self.run, self.ended = run, threading.Event()
        self.claim = claims.acquire(run.directory, 0)
        if recorded:
            write_record(run, "running")

    def end(self, status, seconds=0.5):
        def finish():
            write_record(self.run, status)
            self.ended.set()
            self.claim.release(final=status == "finished")

        threading.Timer(seconds, finish).start()


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("status", ["finished", "failed"])
def test_run_waits_for_another_launcher_that_trains_the_same(
    make, monkeypatch, together, status
):
    """Known by the record, or by what this launcher has to do, too."""
    monkeypatch.setattr(pool, "POLL_SECONDS", 0.02)
    base, small, _ = make()
    other, seen = Elsewhere(base, recorded=not together), {}

    def note(run, stop):
        seen[run.row] = other.ended.is_set()

    todo = [*([base] if together else []), beam(base, 7), small]
    trainer, said = Trainer(beam7=note, small=note), io.StringIO()
    other.end(status)
    outcome = launch(todo, trainer, reporter=Reporter(stream=said))
    assert seen == {"beam7": True, "small": False}
    retried = together and status == "failed"  # what was going at the start
    first, *others = trainer.ran
    assert first == "small seed 0"
    # Either first, as the other launcher ends between a look at one and at the other.
    assert sorted(others) == [*(["base seed 0"] if retried else []), "beam7 seed 0"]
    assert outcome.states["beam7 seed 0"] == "finished"
    told = f"beam7 seed 0 (trained as base/seed0 by process {os.getpid()} on "
    assert "of other launchers: " in said.getvalue() and told in said.getvalue()


def test_run_waits_for_nobody_where_its_training_is_there(make, monkeypatch):
    """Neither for one that trains another seed, nor for one that has begun to search
    with checkpoints of a run that has finished."""
    monkeypatch.setattr(pool, "POLL_SECONDS", 0.02)
    base, later = make()[0], make(seeds=(1,))[0]
    write_record(later, "finished")
    others = [Elsewhere(base), Elsewhere(beam(later, 8))]
    trainer = Trainer()
    assert launch([beam(later, 7)], trainer).complete
    for other in others:
        other.claim.release(final=False)


def test_dead_claim_of_the_same_training_is_no_reason_to_wait(make, monkeypatch):
    monkeypatch.setattr(pool, "POLL_SECONDS", 0.02)
    base, *_ = make()
    Elsewhere(base).claim.release(final=False)
    assert launch([beam(base, 7)], Trainer()).complete


def test_launcher_that_holds_devices_trains_at_once(make):
    base, *_ = make()
    other, trainer = Elsewhere(base), Trainer()
    assert launch([beam(base, 7)], trainer, wait_for_training=False).complete
    other.claim.release(final=False)
