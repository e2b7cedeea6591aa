"""Progress: the time left, lines in a file, bars on a terminal."""

import io

import pytest

from transformer_ablation.sweep.progress import Clock, Reporter


def lines_of(stream):
    return stream.getvalue().splitlines()


def test_clock_extrapolates_from_finished_work(make):
    """Costs 1, 1, 2: after 10 s for a cost of 1, half of the second took 4 s."""
    now = [0.0]
    todo = make()
    costs = dict(zip([run.name for run in todo], [1.0, 1.0, 2.0], strict=True))
    clock = Clock(lambda run: costs[run.name], lambda: now[0])
    clock.start(todo)
    clock.run_started(todo[0])
    now[0] = 10.0
    clock.run_ended(todo[0], completed=True)
    assert clock.sweep_left() == 10.0 * 3
    clock.run_started(todo[1])
    assert clock.update(todo[1], 1, 6) is None  # one sighting has no speed
    now[0] = 14.0
    left = clock.update(todo[1], 3, 6)
    assert left == 4.0 / 2 * 3
    # 14 s for a cost of 1.5 so far; a cost of 2 remains after this run.
    assert clock.sweep_left() == pytest.approx(left + 2 * 14.0 / 1.5)


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
    clock.run_ended(todo[0], completed=True)
    return clock


def test_run_that_only_compiles_yet_takes_what_others_took(clock):
    clock.run_started(clock.todo[0])
    clock.at(13.0)
    assert clock.update(clock.todo[0], None, None) is None
    assert clock.sweep_left() == 7.0 + 10.0
    clock.at(20.0)
    clock.run_ended(clock.todo[0], completed=True)
    clock.run_started(clock.todo[1])
    clock.at(24.0)  # the last: nothing after it, but 6 s of its own
    assert clock.sweep_left() == 6.0


def test_time_left_is_unknown_in_a_first_run_and_in_one_that_takes_longer(clock, make):
    first = Clock(lambda run: 1.0, lambda: 5.0)
    first.start(make())
    first.run_started(make()[0])
    assert first.sweep_left() is None
    clock.run_started(clock.todo[0])
    clock.at(21.0)
    assert clock.sweep_left() is None


def test_scoring_is_not_forgotten_after_the_last_update(clock):
    clock.run_started(clock.todo[0])
    clock.update(clock.todo[0], 1, 6)
    clock.at(14.0)
    left = clock.update(clock.todo[0], 5, 6)
    # 1 s of training by its speed, 6 s in all by the run before; 14 s for 11/6 runs.
    assert left == 1.0
    assert clock.sweep_left() == pytest.approx(6.0 + 14.0 / (1 + 5 / 6))
    assert clock.update(clock.todo[0], 6, 6) is None
    assert clock.sweep_left() == 6.0 + 10.0


def test_what_an_earlier_process_did_is_no_work_of_this_one(make):
    """Half of the steps in 10 s: a whole run takes 20 s, and two are to come.

    Once it has ended it says nothing of them: it was compiled and scored as a whole.
    """
    now, todo = [0.0], make()
    clock = Clock(lambda run: 1.0, lambda: now[0])
    clock.start(todo)
    clock.run_started(todo[0])
    assert clock.update(todo[0], 41, 80) is None
    now[0] = 10.0
    clock.update(todo[0], 79, 80)
    assert clock.sweep_left() == pytest.approx(10 / 38 + 2 * 10.0 / (39 / 80))
    clock.run_ended(todo[0], completed=True)
    assert clock.sweep_left() is None


def test_each_phase_of_a_run_is_told_once_in_a_file(make):
    stream = io.StringIO()
    reporter = Reporter(stream=stream, every_seconds=30, now=lambda: 0.0)
    (run, *_) = todo = make()
    reporter.start(todo, 0)
    reporter.run_started(run)
    phases = ["compiling", "training", "validation", "training", "validation"]
    for phase in [*phases, "scoring validation"]:
        reporter.update(run, {"phase": phase})
    reporter.update(run, {"step": 6, "steps": 6})
    told = [line.partition(f"{run.name}: ")[2] for line in lines_of(stream)]
    assert told == [
        "started", "compiling", "training", "validation", "scoring validation"
    ]  # fmt: skip


def test_time_left_of_two_jobs_is_that_of_the_later(make):
    """Costs 4, 2, 1 and 1; after 10 s for the first half of 4, all else follows."""
    now, todo = [0.0], [*make(), *make(seeds=(1,))][:4]
    costs = dict(zip([run.name for run in todo], [4.0, 2.0, 1.0, 1.0], strict=True))
    clock = Clock(lambda run: costs[run.name], lambda: now[0], jobs=2)
    clock.start(todo)
    clock.run_started(todo[0])
    clock.run_started(todo[1])
    for run in todo[:2]:
        clock.update(run, 1, 1001)
    now[0] = 10.0
    clock.update(todo[0], 501, 1001)
    clock.update(todo[1], 501, 1001)
    # 10 s each are left; 20 s bought half of 6, so 1 takes 6.67 s; the two that wait
    # go to one worker each.
    assert clock.sweep_left() == pytest.approx(10 + 20 / 3, rel=2e-3)
    clock.run_put_back(todo[0])
    # It waits, last in line: its worker takes both of 1, the other, free at 10, it.
    rate = 10.0 / 1.0
    assert clock.sweep_left() == pytest.approx(10 + 4 * rate, rel=2e-3)


def test_bars_of_several_runs_come_and_go(make):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    todo = make()
    with Reporter(stream=stream, jobs=2) as reporter:
        reporter.start(todo, 0)
        for run in todo[:2]:
            reporter.run_started(run)
            reporter.update(run, {"step": 2, "steps": 6, "phase": "training"})
        shown = [task.description for task in reporter.live.tasks]
        assert shown == ["sweep", todo[0].name, todo[1].name]
        assert [task.completed for task in reporter.live.tasks] == [0, 2, 2]
        reporter.run_ended(todo[0], "finished", 3.0)
        shown = [task.description for task in reporter.live.tasks]
        assert shown == ["sweep", todo[1].name]
        reporter.run_put_back(todo[1], "killed")
        assert [task.completed for task in reporter.live.tasks] == [1]
        reporter.run_started(todo[2])
        reporter.run_ended(todo[2], "preempted", 1.0)
        assert [task.completed for task in reporter.live.tasks] == [1]  # it goes on
    text = stream.getvalue()
    assert "finished after 3 s" in text and "killed" in text and "\x1b[" in text


def test_progress_in_a_file_is_plain_lines(make):
    stream = io.StringIO()
    now = iter(range(0, 10_000, 40))
    reporter = Reporter(stream=stream, every_seconds=30, now=lambda: float(next(now)))
    todo = make()
    reporter.start(todo, 0)
    for run, status in zip(todo, ["finished", "failed"], strict=False):
        reporter.run_started(run)
        values = {"step": 1, "steps": 6, "loss": 2.5, "tokens_per_second": 100.0}
        reporter.update(run, values)
        reporter.update(run, {"note": "a checkpoint is damaged"})
        reporter.run_ended(run, status, 1.0)
    reporter.run_elsewhere(todo[2], "finished")
    text = stream.getvalue()
    assert "\x1b" not in text
    assert "[1/3] base seed 0: step 1 of 6, loss 2.500, 100 tokens/s" in text
    assert "[1/3] base seed 0: a checkpoint is damaged\n" in text
    assert "[2/3] small seed 0: failed" in text
    assert "[3/3] wide seed 0: finished, by another launcher" in text
