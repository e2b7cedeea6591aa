"""Launchers and workers as processes: killed, stopped, in pairs. No JAX in them."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from experiments import sweep_launch
from tests.sweep import light_launcher
from transformer_ablation.config import replace
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import claims, devices, runs
from transformer_ablation.sweep.devices import Share
from transformer_ablation.sweep.identity import run_identity
from transformer_ablation.sweep.rows import BASE, Row, expand

LAUNCHER = str(pathlib.Path(light_launcher.__file__))
WIDTHS = {"small": 16, "wide": 24, "wider": 32}


class Sweep:
    """Runs in a workdir, the journal of those begun, and launchers on them."""

    def __init__(self, folder, base, count=0, seeds=(0,)):
        named = {**WIDTHS, **{f"r{i}": 40 + i for i in range(count)}}
        rows = [BASE] + [
            Row(name, "C", name, lambda b, width=width: {"model.d_ff": width})
            for name, width in named.items()
        ]
        self.folder, self.journal = folder, folder / "journal"
        self.runs = runs.make_runs(
            expand(base, rows if count else rows[:4]),
            seeds,
            folder,
            lambda config: run_identity(config, "m", 1),
        )
        self.path = folder / "runs.json"
        self.path.write_text(json.dumps(list(map(runs.run_to_mapping, self.runs))))
        self.children = []

    def start(self, jobs=1, environment=None, **actions):
        """A launcher as a process of a group of its own."""
        child = subprocess.Popen(
            [sys.executable, LAUNCHER, str(self.path), str(jobs)],
            env={
                **os.environ,
                "JOURNAL": str(self.journal),
                "ACTIONS": json.dumps(actions),
                **(environment or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.children.append(child)
        return child

    def launch(self, jobs=1, environment=None, **actions):
        """States of the runs by row, and what was said."""
        out, error = self.start(jobs, environment, **actions).communicate(timeout=120)
        assert out, error
        return {name.split()[0]: s for name, s in json.loads(out).items()}, error

    def begun(self):
        """Rows in the order in which they were begun, and by which process."""
        text = self.journal.read_text() if self.journal.exists() else ""
        return [(line.split()[0], int(line.split()[-1])) for line in text.splitlines()]

    def until_begun(self, count):
        deadline = time.monotonic() + 120
        while len(self.begun()) < count:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return self.begun()

    def record(self, row):
        return read_record(self.folder / "runs" / row / "seed0")

    def end(self):
        for child in self.children:
            for process in (child.pid, *(pid for _, pid in self.begun())):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            child.wait()


@pytest.fixture
def sweep(tmp_path, tiny_config):
    sweep = Sweep(tmp_path, tiny_config)
    yield sweep
    sweep.end()


def until_said(child, text):
    """Reads what a launcher says up to a line with the text."""
    line = " "
    while text not in line:
        line = child.stderr.readline()
        assert line, f"it ended without {text!r}"


def rows_of(begun):
    return [row for row, _ in begun]


def test_one_worker_does_all_runs_in_order(sweep):
    states, _ = sweep.launch()
    assert rows_of(sweep.begun()) == ["base", "small", "wide", "wider"]
    assert len({pid for _, pid in sweep.begun()}) == 1
    assert set(states.values()) == {"finished"}
    assert not list(sweep.folder.rglob("claim-*.json"))


def test_two_workers_do_the_longest_runs_first(sweep):
    """A wider feed-forward network costs more: wider, wide, base (20), small."""
    sweep.launch(2, **dict.fromkeys(["base", *WIDTHS], "sleep 0.3"))
    begun = sweep.begun()
    assert len({pid for _, pid in begun}) == 2
    assert set(rows_of(begun)[:2]) == {"wide", "wider"}
    assert set(rows_of(begun)[2:]) == {"base", "small"}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("signal SIGSEGV", "its process was killed by SIGSEGV"),
        ("exit 3", "its process ended with exit code 3"),
    ],
)
def test_dead_worker_fails_its_run_only(sweep, jobs, action, reason):
    states, error = sweep.launch(jobs, small=action)
    assert states.pop("small") == "failed"
    assert set(states.values()) == {"finished"}
    record = sweep.record("small")
    assert (record["status"], record["reason"]) == ("failed", reason)
    log = sweep.folder / "runs/small/seed0/log.txt"
    assert f"small seed 0 failed: {reason} (what it printed: {log})" in error
    if "SEGV" in action:  # where it was
        assert "Fatal Python error: Segmentation fault" in log.read_text()


@pytest.mark.parametrize("action", ["signal SIGKILL", "memory"])
def test_run_without_memory_is_tried_once_more_alone(sweep, action):
    states, error = sweep.launch(2, wide=action)
    assert states.pop("wide") == "failed" and set(states.values()) == {"finished"}
    begun = sweep.begun()
    # Twice, the second time after all others and in a process of its own.
    assert rows_of(begun).count("wide") == 2 and len(begun) == 5
    assert begun[-1][0] == "wide"
    assert begun[-1][1] not in [pid for _, pid in begun[:-1]]
    assert "tried once more later, alone" in error
    reason = sweep.record("wide")["reason"]
    killed = "its process was killed by SIGKILL, perhaps out of memory: see dmesg"
    assert reason == (killed if "KILL" in action else "MemoryError: a tensor too many")


def test_run_that_has_memory_alone_finishes(sweep):
    states, _ = sweep.launch(2, wide="once signal SIGKILL")
    assert set(states.values()) == {"finished"}


def test_what_libraries_print_goes_to_the_log(sweep):
    states, error = sweep.launch(small="noise")
    assert set(states.values()) == {"finished"} and "library" not in error
    text = (sweep.folder / "runs/small/seed0/log.txt").read_text()
    assert text.splitlines()[1:] == [
        '{"ended": "diverged"}',
        "of a library",
        "by print",
    ]


def test_stop_saves_every_run_at_hand_and_starts_none(sweep):
    child = sweep.start(2, wide="wait", wider="wait")
    sweep.until_begun(2)
    # As a terminal does: to the launcher and to its workers.
    os.killpg(child.pid, signal.SIGINT)
    out, error = child.communicate(timeout=120)
    states = {name.split()[0]: state for name, state in json.loads(out).items()}
    assert states == {
        "base": "pending", "small": "pending", "wide": "preempted", "wider": "preempted"
    }  # fmt: skip
    assert child.returncode == 1 and "stopped: 4 of 4 runs have no result" in error
    assert "stopping: 2 runs will be saved" in error
    assert sweep.record("wide")["reason"] == "saved"


def test_second_interrupt_waits_for_nobody(sweep):
    child = sweep.start(1, base="sleep 100")
    sweep.until_begun(1)
    child.send_signal(signal.SIGINT)
    until_said(child, "stopping")
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    record = sweep.record("base")
    assert record["status"] == "preempted"
    assert record["reason"] == "interrupted at once, nothing was saved"


def test_worker_of_a_killed_launcher_saves_and_ends(sweep):
    child = sweep.start(1, base="wait")
    ((_, worker),) = sweep.until_begun(1)
    child.kill()
    child.wait()
    deadline = time.monotonic() + 60
    while pathlib.Path(f"/proc/{worker}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert sweep.record("base")["reason"] == "saved"
    # Nothing is held: the next launcher goes on at once.
    assert set(sweep.launch()[0].values()) == {"finished"}


def test_signal_to_a_worker_stops_its_run_alone(sweep):
    child = sweep.start(1, base="wait")
    ((_, worker),) = sweep.until_begun(1)
    os.kill(worker, signal.SIGTERM)
    out, _ = child.communicate(timeout=60)
    assert list(json.loads(out).values()) == ["preempted"] + ["finished"] * 3


def test_two_launchers_share_a_sweep(tmp_path, tiny_config):
    """24 runs, two launchers of two workers: every run is begun once, all see all."""
    sweep = Sweep(tmp_path, tiny_config, count=20)
    try:
        children = [sweep.start(2) for _ in range(2)]
        outs = [child.communicate(timeout=120) for child in children]
        begun = sweep.begun()
        assert sorted(rows_of(begun)) == sorted(run.row for run in sweep.runs)
        for (out, error), child in zip(outs, children, strict=True):
            assert child.returncode == 0, error
            assert set(json.loads(out).values()) == {"finished"}
        assert not list(tmp_path.rglob("claim-*.json"))
    finally:
        sweep.end()


def test_launcher_waits_for_runs_of_another_and_takes_what_that_leaves(sweep):
    gate = sweep.folder / "gate"
    first = sweep.start(2, wider=f"gate {gate}", wide="wait")
    begun = dict(sweep.until_begun(2))
    second = sweep.start(1)
    until_said(second, "waiting for 2 runs of other launchers")
    assert second.poll() is None
    os.kill(begun["wide"], signal.SIGTERM)  # gives wide back, preempted
    gate.touch()
    assert set(json.loads(second.communicate(timeout=60)[0]).values()) == {"finished"}
    first.communicate(timeout=60)
    assert rows_of(sweep.begun()).count("wide") == 2
    assert rows_of(sweep.begun()).count("wider") == 1


def test_failure_in_one_launcher_is_not_repeated_by_the_other(sweep):
    """It waits for the run, which fails there, and says so."""
    gate = sweep.folder / "gate"
    first = sweep.start(1, base=f"gate {gate}", small="exit 3")
    sweep.until_begun(1)
    second = sweep.start(1, small="sleep 1", wide=f"gate {gate}", wider=f"gate {gate}")
    sweep.until_begun(2)
    gate.touch()
    outs = [json.loads(c.communicate(timeout=60)[0]) for c in (first, second)]
    assert outs[0] == outs[1]
    assert rows_of(sweep.begun()).count("small") == 1


def test_stopped_launcher_writes_nothing_into_a_run_it_has_lost(sweep):
    """Stopped with its worker for longer than a claim lives; another takes over."""
    times = {"BEAT": "0.05", "SILENT": "0.6"}
    gate = sweep.folder / "gate"
    first = sweep.start(1, times, base=f"gate {gate}")
    until_said(first, "step 1 of 6")  # what it writes next comes after the gate
    os.killpg(first.pid, signal.SIGSTOP)
    states, _ = sweep.launch(1, times)
    assert set(states.values()) == {"finished"}
    assert rows_of(sweep.begun()).count("base") == 2
    path = sweep.folder / "runs/base/seed0/record.json"
    before = path.stat().st_mtime_ns, path.read_bytes()
    gate.touch()
    os.killpg(first.pid, signal.SIGCONT)
    out, error = first.communicate(timeout=60)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert "base seed 0: taken over by another launcher" in error
    assert set(json.loads(out).values()) == {"finished"} and first.returncode == 0


def test_finished_runs_are_never_touched(sweep):
    sweep.launch()
    before = {p: p.stat().st_mtime_ns for p in (sweep.folder / "runs").rglob("*")}
    assert set(sweep.launch(2)[0].values()) == {"finished"}
    after = {p: p.stat().st_mtime_ns for p in (sweep.folder / "runs").rglob("*")}
    assert after == before and len(sweep.begun()) == 4


@pytest.mark.skipif(len(devices.cores()) < 2, reason="one core")
def test_workers_are_bound_to_their_cores(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_launch, "WORKER", light_launcher.WORKER)
    monkeypatch.setenv("JOURNAL", str(sweep.journal))
    monkeypatch.setenv("ACTIONS", json.dumps({"base": "cores", "small": "cores"}))
    cores = devices.cores()[:2]
    for run, core in zip(sweep.runs, cores, strict=False):
        start = sweep_launch.worker_starter(tmp_path)
        sweep_launch.launch([run], start, [Share((core,))])
        assert (run.directory / "cores").read_text() == f"[{core}]"


def asked(sweep, run):
    """The one answer of a worker that is given a run by a launcher that looked late."""
    message = json.dumps({"run": runs.run_to_mapping(run), "after": 0})
    done = subprocess.run(
        light_launcher.WORKER,
        input=json.dumps({"cache": "", "cores": None}) + "\n" + message + "\n",
        env={**os.environ, "JOURNAL": str(sweep.journal)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    (answer,) = map(json.loads, done.stdout.splitlines())
    return answer


def test_worker_looks_again_once_it_has_the_claim(sweep, tiny_config):
    sweep.launch()
    run = sweep.runs[0]
    assert asked(sweep, run) == {"ended": "finished", "already": True}
    assert claims.current(run.directory) is None
    other = run_identity(replace(tiny_config, {"train.steps": 9}), "m", 1)
    answer = asked(sweep, dataclasses.replace(run, identity=other))
    assert answer["ended"] == "failed" and "holds another run" in answer["reason"]
    assert claims.current(run.directory).released
    assert sweep.record("base")["status"] == "finished" and len(sweep.begun()) == 4
