"""Work in several processes: in order, few results at a time, no hang when one dies."""

import os
import signal
import subprocess
import sys
import time

import pytest

from transformer_ablation.data import workers
from transformer_ablation.data.workers import WorkerError, in_order


def times(shared, task):
    return shared * task


def process_of(shared, task):
    return os.getpid()


def refuse_three(shared, task):
    if task == 3:
        raise KeyError("three")
    return task


def die_at_three(shared, task):
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_work(processes):
    assert list(in_order(times, 10, range(20), processes)) == list(range(0, 200, 10))
    assert list(in_order(times, 10, [], processes)) == []


def test_work_is_done_elsewhere_or_here():
    assert set(in_order(process_of, None, range(3), 1)) == {os.getpid()}
    elsewhere = set(in_order(process_of, None, range(9), 2))
    assert os.getpid() not in elsewhere and 1 <= len(elsewhere) <= 2


@pytest.mark.parametrize("processes", [1, 2])
def test_failure_of_the_work_arrives(processes):
    results = in_order(refuse_three, None, range(9), processes)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="three"):
        next(results)


def test_process_that_is_killed_is_an_error_not_a_wait():
    with pytest.raises(WorkerError, match="one of 2 processes .* died"):
        list(in_order(die_at_three, None, range(9), 2))
    assert WorkerError.exit_code == 1


def test_work_is_handed_out_only_a_little_ahead(monkeypatch):
    taken = []

    class Tasks:
        def __iter__(self):
            for i in range(100):
                taken.append(i)
                yield i

    results = in_order(times, 1, Tasks(), 2)
    assert next(results) == 0
    assert len(taken) == workers._AHEAD * 2
    results.close()


def test_cores_are_those_of_this_process(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 7}, raising=False)
    assert workers.core_count() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(200)))
    assert workers.core_count() == workers.MAX_PROCESSES


PARENT = """
from tests.data.test_workers import process_of
from transformer_ablation.data.workers import in_order
results = in_order(process_of, None, range(10**6), 2)
print(next(results), flush=True)
input()
"""


def test_processes_end_with_a_killed_parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        child = int(parent.stdout.readline())
        os.kill(child, 0)
        parent.kill()
    for _ in range(600):  # a minute at most
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if _state(child) == "Z":  # dead, and nobody has asked yet
            return
        time.sleep(0.1)
    pytest.fail(f"process {child} goes on without its parent")


def _state(process):
    """Its state as Linux tells it, or None."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return None
