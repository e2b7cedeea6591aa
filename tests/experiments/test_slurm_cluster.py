"""A sweep on a real Slurm: runs that are killed, preempted and that fail.

It takes minutes and a queue of its own, so it is skipped unless ``SLURM_TESTS=1`` and
where no Slurm answers with a partition ``main`` and one ``high`` that preempts it by
requeueing. The runs are those of ``tiny_sweeps``, longer, so that there is time
to disturb them.
"""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.report.record import read_record

ROWS = ("base", "smooth", "narrow", "stuck")
STEPS = 3000
PATIENCE_SECONDS = 300


def cluster():
    """Why there is none that this test can use, or None."""
    if os.environ.get("SLURM_TESTS") != "1":
        return "submits to the Slurm of this machine for minutes; set SLURM_TESTS=1"
    if shutil.which("sbatch") is None:
        return "Slurm is not installed (no sbatch)"
    command = ["sinfo", "--noheader", "--format=%R"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return "Slurm does not answer"
    if not {"main", "high"} <= set(done.stdout.split()):
        return "Slurm has no partitions main and high here"
    return None


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout.strip()


def until(condition):
    """Wait for a condition; its value."""
    for _ in range(PATIENCE_SECONDS * 2):
        if found := condition():
            return found
        time.sleep(0.5)
    raise AssertionError("waited in vain")


@pytest.fixture
def sweep(folder, tmp_path):
    """``sweep(*flags)`` on the cluster; what is left in the queue is cancelled."""
    why = cluster()
    if why:
        pytest.skip(why)
    given = tiny.arguments(folder, tmp_path / "w", f"--rows={','.join(ROWS)}")
    slurm = ["--launcher=slurm", "--slurm=partition=main", "--slurm=cpus=1"]
    slurm += ["--slurm=signal_seconds=30", f"--config.train.steps={STEPS}"]
    slurm += ["--config.train.checkpoint_every_steps=500"]
    slurm += ["--config.train.evaluate_every_steps=1500"]

    def sweep(*more):
        done = tiny.process("sweep", [*given, *slurm, *more], text=True)
        return done.returncode, done.stdout, done.stderr

    yield sweep
    tiny.process("sweep", [f"--workdir={tmp_path / 'w'}", "--cancel"])


def states(workdir):
    """``{row: status}`` as the command tells it."""
    done = tiny.process("status", [f"--workdir={workdir}", "--format=json"], text=True)
    assert done.returncode == 0, done.stderr
    return {row["row"]: row for row in json.loads(done.stdout)["rows"]}


def training(workdir, row):
    """The process of a run that has a checkpoint and goes on."""
    record = read_record(workdir / "runs" / row / "seed0")
    if record is None or record["status"] != "running":
        return None
    saved = tiny.saved_steps(workdir / "runs" / row / "seed0")
    return record["process"]["pid"] if saved else None


def hurry():
    """Requeued tasks wait two minutes of their own; not here."""
    for line in call("squeue", "-h", "-r", "-t", "PD", "-o", "%i %r").splitlines():
        task, _, reason = line.partition(" ")
        if reason == "BeginTime":
            subprocess.run(
                ["scontrol", "update", f"JobId={task}", "StartTime=now"], check=False
            )


def test_array_survives_kills_preemption_and_a_failing_row(sweep, tmp_path):
    workdir = tmp_path / "w"
    broken = workdir / "runs" / "narrow" / "seed0" / "checkpoints"
    broken.parent.mkdir(parents=True)
    broken.touch()  # no checkpoint can be written: the run fails
    code, out, error = sweep()
    assert code == 0, error
    assert "4 of 4 runs to submit" in error and "submitted job" in out
    code, out, error = sweep()  # at once again: nothing is sent twice
    assert code == 0 and "0 of 4 runs to submit; 0 finished, 4 in the queue" in error

    os.kill(until(lambda: training(workdir, "base")), signal.SIGKILL)
    until(lambda: states(workdir)["base"]["state"] == "requeued")
    record = read_record(workdir / "runs" / "base" / "seed0")
    assert record["status"] == "failed" and "SIGKILL" in record["reason"]

    until(lambda: training(workdir, "smooth"))
    job = call(
        "sbatch", "--parsable", "--partition=high", "--nodes=2", "--exclusive",
        "--output=/dev/null", "--wrap=sleep 600",
    )  # fmt: skip
    until(lambda: states(workdir)["smooth"]["state"] == "requeued")
    record = read_record(workdir / "runs" / "smooth" / "seed0")
    assert record["status"] == "preempted" and record["step"] < STEPS
    assert states(workdir)["narrow"]["state"] == "failed"
    call("scancel", job)

    def over():
        hurry()
        found = [run["state"] for run in states(workdir).values()]
        return {*found} <= {"finished", "failed"}

    until(over)
    found = states(workdir)
    assert {row: run["state"] for row, run in found.items()} == {
        "base": "finished",
        "smooth": "finished",
        "narrow": "failed",
        "stuck": "finished",
    }
    assert "checkpoints" in found["narrow"]["reason"]
    # What fails is sent again, alone; it is mended meanwhile.
    broken.unlink()
    code, out, error = sweep("--wait")
    assert "1 of 4 runs to submit; 3 finished, 0 in the queue" in error
    assert code == 0, error
    done = tiny.process("tables", [f"--workdir={workdir}", "--format=json"], text=True)
    table = {row["row"]: row["ppl"] for row in json.loads(done.stdout)["rows"]}
    assert set(table) == set(ROWS) and None not in table.values()
    for row in ROWS:  # every update once, whatever happened on the way
        values = tiny.values(workdir / "runs" / row / "seed0")
        steps = [step for step, tag in values if tag == "train/loss"]
        assert sorted(steps) == list(range(1, STEPS + 1))


def test_cancel_saves_what_runs_and_the_sweep_goes_on(sweep, tmp_path):
    workdir = tmp_path / "w"
    assert sweep("--slurm=array_limit=1")[0] == 0
    row = until(lambda: next((r for r in ROWS if training(workdir, r)), None))
    done = tiny.process("sweep", [f"--workdir={workdir}", "--cancel"], text=True)
    assert done.returncode == 0 and "3 waiting runs, 1 running" in done.stdout
    until(lambda: states(workdir)[row]["state"] == "preempted")
    until(lambda: not call("squeue", "-h", f"--name={job_name(workdir)}"))
    found = states(workdir)
    others = [found[name] for name in ROWS if name != row]
    assert {run["state"] for run in others} == {"cancelled"}, others
    code, _, error = sweep()
    assert code == 0 and "4 of 4 runs to submit; 0 finished, 0 in the queue" in error


def job_name(workdir):
    """Of the only array that was submitted."""
    (folder,) = (workdir / "slurm").iterdir()
    return folder.name
