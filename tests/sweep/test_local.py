"""The launcher: nothing is lost, nothing is run twice, nothing is mixed."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from transformer_ablation.config import replace, to_mapping
from transformer_ablation.sweep import local, runs, stopping
from transformer_ablation.sweep.identity import run_identity
from transformer_ablation.sweep.progress import Clock, Reporter
from transformer_ablation.sweep.rows import BASE, Row, expand

SMALL = Row("small", "C", "small", lambda b: {"model.num_layers": 1})
WIDE = Row("wide", "C", "wide", lambda b: {"model.d_ff": 24})


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


@pytest.fixture
def make(tiny_config, tmp_path):
    """Runs of base, small and wide for the seeds given, in a workdir."""

    def make(seeds=(0,), changes=None, manifest="m"):
        base = replace(tiny_config, changes or {})
        return runs.make_runs(
            expand(base, [BASE, SMALL, WIDE]),
            seeds,
            tmp_path,
            lambda config: run_identity(config, manifest, 1),
        )

    return make


def launch(todo, run_one, **kwargs):
    return local.launch(
        todo,
        run_one,
        read_record=read_record,
        mark_stopped=write_record,
        reporter=kwargs.pop("reporter", None) or Reporter(stream=io.StringIO()),
        **kwargs,
    )


def lines_of(stream):
    return stream.getvalue().splitlines()


def fail(run, stop):
    raise RuntimeError("no luck")


def stop_by(number):
    def action(run, stop):
        os.kill(os.getpid(), number)
        assert stop.wait(5)
        return "preempted"

    return action


def test_runs_go_seed_by_seed_into_their_own_folders(make, tmp_path):
    todo = make(seeds=(3, 5))
    assert [run.name for run in todo] == [
        "base seed 3", "small seed 3", "wide seed 3",
        "base seed 5", "small seed 5", "wide seed 5",
    ]  # fmt: skip
    assert todo[4].directory == tmp_path / "runs" / "small" / "seed5"
    assert todo[4].config.train.seed == 5 and todo[4].config.model.num_layers == 1
    assert len({run.identity for run in todo}) == 6


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
    assert "1 of 3 runs have no result" in outcome.message()


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


def test_interrupting_at_once_marks_the_run_preempted(make):
    def interrupt(run, stop):
        write_record(run, "running", None)
        raise KeyboardInterrupt

    todo = make()
    outcome = launch(todo, Trainer(small=interrupt))
    assert outcome.interrupted and outcome.states["small seed 0"] == "preempted"
    record = read_record(todo[1].directory)
    assert record["status"] == "preempted" and "interrupted" in record["reason"]


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


def test_workdir_that_is_a_file_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    message = "file: is a file; name a folder"
    with pytest.raises(runs.SweepError, match=message), local.locked(path):
        pass


@pytest.mark.parametrize("text", ["1_0", "0-3", "a", "", "1,,2", "-1", "9" * 30, "٣"])
def test_seeds_that_are_no_plain_numbers_are_refused(text):
    with pytest.raises(runs.SweepError, match="must be whole numbers"):
        runs.parse_seeds(text, 0)


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


@pytest.mark.parametrize("number", stopping.SIGNALS)
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


def test_second_interrupt_does_not_wait_for_the_run(make):
    def deaf(run, stop):
        os.kill(os.getpid(), signal.SIGINT)
        stop.wait(5)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)  # interrupted
        return "finished"

    outcome = launch(make(), Trainer(small=deaf))
    assert outcome.interrupted and outcome.states["small seed 0"] == "preempted"


def test_full_disk_ends_the_sweep(make):
    def full(run, stop):
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/x/y")
        except OSError as error:
            raise RuntimeError("checkpoint not written") from error

    trainer = Trainer(small=full)
    with pytest.raises(RuntimeError) as caught:
        launch(make(), trainer)
    assert local.out_of_space(caught.value).filename == "/x/y"
    assert trainer.ran == ["base seed 0", "small seed 0"]


def test_out_of_space_is_told_from_other_errors():
    assert local.out_of_space(OSError(errno.ENOENT, "no such file")) is None
    assert local.out_of_space(ValueError("space")) is None
    foreign = RuntimeError("write failed: No space left on device [x.cc:3]")
    assert local.out_of_space(foreign).errno == errno.ENOSPC


def test_workdir_is_held_by_one_process(tmp_path):
    code = (
        "import pathlib, sys\n"
        "from transformer_ablation.sweep import local\n"
        "with local.locked(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "held\n"
        with (
            pytest.raises(runs.SweepError, match=f"process {child.pid}"),
            local.locked(tmp_path),
        ):
            pass
    finally:
        child.kill()
        child.wait()
    with local.locked(tmp_path):  # a killed process holds nothing
        assert (tmp_path / "sweep.lock").read_text().strip() == str(os.getpid())


def test_workdir_of_another_base_is_refused(tiny_config, tmp_path):
    previous = {"config": to_mapping(tiny_config)}
    now = replace(tiny_config, {"model.d_ff": 21, "train.seed": 4})
    runs.check_base(tmp_path, previous, replace(tiny_config, {"train.seed": 4}))
    runs.check_base(tmp_path, None, now)
    with pytest.raises(runs.SweepError) as caught:
        runs.check_base(tmp_path, previous, now)
    assert str(caught.value) == (
        f"{tmp_path}: holds another sweep: model.d_ff is 20 there and 21 now; "
        "use another --workdir"
    )


@pytest.mark.parametrize("text", ["", "a", "1,,2", "-1", "0,0", "1.5", str(2**31)])
def test_seeds_that_are_no_numbers_are_refused(text):
    with pytest.raises(runs.SweepError, match="--seeds="):
        runs.parse_seeds(text, 0)


def test_seeds_default_to_the_one_of_base():
    assert runs.parse_seeds(None, 9) == (9,)
    assert runs.parse_seeds("2,0", 9) == (2, 0)


def test_clock_extrapolates_from_finished_work(make):
    """Costs 1, 1, 2: after 10 s for a cost of 1, half of the second took 4 s."""
    now = [0.0]
    todo = make()
    costs = dict(zip([run.name for run in todo], [1.0, 1.0, 2.0], strict=True))
    clock = Clock(lambda run: costs[run.name], lambda: now[0])
    clock.start(todo)
    clock.run_started(todo[0])
    now[0] = 10.0
    clock.run_ended(completed=True)
    assert clock.sweep_left(None) == 10.0 * 3
    clock.run_started(todo[1])
    assert clock.update(1, 6) is None  # one sighting has no speed
    now[0] = 14.0
    left = clock.update(3, 6)
    assert left == 4.0 / 2 * 3
    # 14 s for a cost of 1.5 so far; a cost of 2 remains after this run.
    assert clock.sweep_left(left) == pytest.approx(left + 2 * 14.0 / 1.5)


@pytest.fixture
def clock(make):
    """Three runs of equal cost, and ``clock.at(seconds)``; the first took 10 s."""
    now, todo = [0.0], make()
    clock = Clock(lambda run: 1.0, lambda: now[0])
    clock.at = lambda seconds: now.__setitem__(0, seconds)
    clock.start(todo)
    clock.todo = todo[1:]
    clock.run_started(todo[0])
    clock.at(10.0)
    clock.run_ended(completed=True)
    return clock


def test_run_that_only_compiles_yet_takes_what_others_took(clock):
    clock.run_started(clock.todo[0])
    clock.at(13.0)
    assert clock.update(None, None) is None
    assert clock.sweep_left(None) == 7.0 + 10.0
    clock.at(20.0)
    clock.run_ended(completed=True)
    clock.run_started(clock.todo[1])
    clock.at(24.0)  # the last: nothing after it, but 6 s of its own
    assert clock.sweep_left(None) == 6.0


def test_time_left_is_unknown_in_a_first_run_and_in_one_that_takes_longer(clock, make):
    first = Clock(lambda run: 1.0, lambda: 5.0)
    first.start(make())
    first.run_started(make()[0])
    assert first.sweep_left(None) is None
    clock.run_started(clock.todo[0])
    clock.at(21.0)
    assert clock.sweep_left(None) is None


def test_scoring_is_not_forgotten_after_the_last_update(clock):
    clock.run_started(clock.todo[0])
    clock.update(1, 6)
    clock.at(14.0)
    left = clock.update(5, 6)
    # 1 s of training by its speed, 6 s in all by the run before; 14 s for 11/6 runs.
    assert left == 1.0
    assert clock.sweep_left(left) == pytest.approx(6.0 + 14.0 / (1 + 5 / 6))
    assert clock.update(6, 6) is None
    assert clock.sweep_left(None) == 6.0 + 10.0


def test_what_an_earlier_process_did_is_no_work_of_this_one(make):
    """Half of the steps in 10 s: a whole run takes 20 s, and two are to come.

    Once it has ended it says nothing of them: it was compiled and scored as a whole.
    """
    now, todo = [0.0], make()
    clock = Clock(lambda run: 1.0, lambda: now[0])
    clock.start(todo)
    clock.run_started(todo[0])
    assert clock.update(41, 80) is None
    now[0] = 10.0
    clock.update(79, 80)
    assert clock.sweep_left(1.0) == pytest.approx(1.0 + 2 * 10.0 / (39 / 80))
    clock.run_ended(completed=True)
    assert clock.sweep_left(None) is None


def test_each_phase_of_a_run_is_told_once_in_a_file(make):
    stream = io.StringIO()
    reporter = Reporter(stream=stream, every_seconds=30, now=lambda: 0.0)
    (run, *_) = todo = make()
    reporter.start(todo, 0)
    reporter.run_started(run)
    phases = ["compiling", "training", "validation", "training", "validation"]
    for phase in [*phases, "scoring validation"]:
        reporter.update({"phase": phase})
    reporter.update({"step": 6, "steps": 6})
    told = [line.partition(f"{run.name}: ")[2] for line in lines_of(stream)]
    assert told == [
        "started", "compiling", "training", "validation", "scoring validation"
    ]  # fmt: skip


def test_progress_in_a_file_is_plain_lines(make):
    stream = io.StringIO()
    now = iter(range(0, 10_000, 40))
    reporter = Reporter(stream=stream, every_seconds=30, now=lambda: float(next(now)))
    launch(make(), Trainer(small=fail), reporter=reporter)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert "[1/3] base seed 0: step 1 of 6, loss 2.500, 100 tokens/s" in text
    assert "[2/3] small seed 0: failed" in text
    assert "[3/3] wide seed 0: finished" in text


def test_progress_on_a_terminal_is_live(make):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with Reporter(stream=stream) as reporter:
        launch(make(), Trainer(), reporter=reporter)
    text = stream.getvalue()
    assert "wide seed 0: finished" in text and "\x1b[" in text
