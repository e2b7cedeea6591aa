"""Runs killed at random moments end as if nothing had happened.

Fifty kills instead of three: ``KILLS=50 pytest tests/experiments/test_kills.py``.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.report.record import read_record
from transformer_ablation.train import integrity

KILLS = int(os.environ.get("KILLS", "3"))
STEPS = max(100, 20 * KILLS)
SETTINGS = (
    f"--config.train.steps={STEPS}",
    "--config.train.evaluate_every_steps=25",
    "--config.train.checkpoint_every_steps=10",
    "--config.data.test_split=None",
)
# Updates slow enough that a kill comes in the middle of something; the mark says that
# imports and compiling are over.
SLOW = """
import os, pathlib, time
from transformer_ablation.data import batches

iterate = batches.TrainBatches.iterate


def iterating(self, *rest):
    for number, batch in enumerate(iterate(self, *rest)):
        if number == 1:
            pathlib.Path(os.environ["MARK"]).touch()
        time.sleep(0.02)
        yield batch


batches.TrainBatches.iterate = iterating
from experiments import sweep_worker

sweep_worker.main()
"""
# The launcher gets a signal to stop in the first validation, which is given up.
STOPPED = """
import os, signal, time
from experiments import run_hooks

perplexity = run_hooks.perplexity


def signalled(*given):
    os.kill(os.getppid(), signal.SIGUSR2)
    time.sleep(2)  # the launcher has told this worker
    return perplexity(*given)


run_hooks.perplexity = signalled
"""
LAUNCHER = """
import os, sys
from experiments import command, sweep_launch, train

sweep_launch.WORKER = (sys.executable, "-c", os.environ["WORKER"])
sys.exit(command.run(train.COMMAND, sys.argv[1:]))
"""


def command(folder, workdir):
    return tiny.arguments(folder, workdir, *SETTINGS)


@pytest.fixture(scope="module")
def undisturbed(folder):
    """The run directory of a run without a pause."""
    workdir = folder / "undisturbed"
    done = tiny.process("train", command(folder, workdir))
    assert done.returncode == 0, done.stderr.decode()
    return workdir / "runs/base/seed0"


def started(folder, workdir, mark, before=""):
    given = [sys.executable, "-c", LAUNCHER, *map(str, command(folder, workdir))]
    asked = {"MARK": str(mark), "WORKER": f"{before}{SLOW}"}
    return subprocess.Popen(
        given,
        env={**os.environ, **tiny.ENVIRONMENT, **asked},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def killed(folder, workdir, mark, delay, saved):
    """Starts or goes on with the run, and kills all of it so long after an update, and
    not before there is a checkpoint where ``saved``; its exit code and stderr."""
    run = workdir / "runs/base/seed0"
    mark.unlink(missing_ok=True)
    child = started(folder, workdir, mark)
    while child.poll() is None and not (
        mark.exists() and (tiny.saved_steps(run) or not saved)
    ):
        time.sleep(0.01)
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):  # it has finished
        os.killpg(child.pid, signal.SIGKILL)
    text = child.communicate()[1].decode()
    return child.returncode, text


def spoil(run, choose):
    """One flipped bit in a file of the newest checkpoint, or half of the file."""
    step = tiny.saved_steps(run)[-1]
    files = [p for p in (run / f"checkpoints/{step}").rglob("*") if p.stat().st_size]
    path = choose.choice(sorted(p for p in files if p.is_file()))
    content = bytearray(path.read_bytes())
    if choose.random() < 0.5 or len(content) < 2:
        content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
    else:
        content = content[: len(content) // 2]
    path.write_bytes(content)
    return step


def scalars(run):
    """``{tag: steps}`` as TensorBoard shows them."""
    board = EventAccumulator(str(run), size_guidance={"scalars": 0})
    board.Reload()
    tags = board.Tags()["scalars"]
    return {tag: [event.step for event in board.Scalars(tag)] for tag in tags}


def test_stopped_killed_and_damaged_run_ends_as_the_undisturbed_one(
    folder, undisturbed, tmp_path
):
    choose, workdir = random.Random(os.environ.get("SEED", "1")), tmp_path / "w"
    run, mark = workdir / "runs/base/seed0", tmp_path / "mark"
    child = started(folder, workdir, mark, STOPPED)
    text = child.communicate()[1].decode()
    assert child.returncode == 75, text
    reason = "stopped after update 25 (SIGUSR2)"
    assert read_record(run)["reason"] == reason and tiny.saved_steps(run)[-1] == 25
    assert not any(tag.startswith("validation/") for _, tag in tiny.values(run))
    kills = spoiled = 0
    for number in range(KILLS):
        damage = number % 3 == 1
        code, text = killed(folder, workdir, mark, choose.uniform(0, 0.7), damage)
        kills += code == -signal.SIGKILL
        if damage:
            spoil(run, choose)
            spoiled += 1
        assert "Traceback" not in text, text
    done = tiny.process("train", command(folder, workdir))
    assert done.returncode == 0, done.stderr.decode()
    print(f"{kills} of {KILLS} starts killed in training, {spoiled} files damaged")
    assert kills > 0.8 * KILLS and spoiled and (run / "damaged_checkpoints").is_dir()
    assert tiny.checkpoint(run) == tiny.checkpoint(undisturbed)
    assert tiny.saved_steps(run) == tiny.saved_steps(undisturbed)
    values = tiny.values(run)  # one value a step, else it fails
    assert values == tiny.values(undisturbed)
    for tag, steps in scalars(run).items():
        expected = [step for step, name in values if name == tag]
        if expected:  # all but those of speed
            assert sorted(steps) == sorted(set(steps)) == sorted(expected), tag
    path = "translations/validation.txt"
    assert (run / path).read_bytes() == (undisturbed / path).read_bytes()
    found, expected = read_record(run), read_record(undisturbed)
    for key in ("status", "identity", "scores", "tokens", "step"):
        assert found[key] == expected[key], key
    for step in tiny.saved_steps(run):
        assert integrity.faults(run / f"checkpoints/{step}") == []
