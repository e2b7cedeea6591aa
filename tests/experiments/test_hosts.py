"""One run over several processes: as one process would, whoever is lost meanwhile."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from absl import flags

from experiments import host_flags
from experiments.command import UsageError
from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.report.record import read_record

# With the paper's 1e-9 a step is the sign of its gradient, and where that all but
# vanishes the sign of a rounding error would be compared; large steps blow it up.
SETTINGS = (
    "--config.optimizer.epsilon=1e-3",
    "--config.optimizer.learning_rate_scale=0.05",
    "--config.data.test_split=None",
    "--config.train.steps=20",
    "--config.train.evaluate_every_steps=10",
    "--config.train.checkpoint_every_steps=10",
)
# Of process 1: it is gone before update 14, four after the checkpoint.
LOST = """
import os, signal
from transformer_ablation.data import batches

iterate = batches.TrainBatches.iterate


def iterating(self, start, stop, *rest):
    for number, batch in enumerate(iterate(self, start, stop, *rest), start):
        if number == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


batches.TrainBatches.iterate = iterating
"""


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def started(given, devices, before=""):
    count = f"--xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, **tiny.ENVIRONMENT, "XLA_FLAGS": count}
    program = f"{before}\nfrom experiments import command, train\n"
    program += "command.main(train.COMMAND)\n"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, given)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(given, processes, devices, before=""):
    """[(exit code, stderr)] of the processes; ``before`` is run in the last."""
    if processes == 1:
        children = [started(given, devices)]
    else:
        where = [f"--coordinator=127.0.0.1:{free_port()}", f"--processes={processes}"]
        children = [
            started(
                [*given, *where, f"--process_index={index}"],
                devices,
                before if index == processes - 1 else "",
            )
            for index in range(processes)
        ]
    try:
        texts = [child.communicate(timeout=280)[1] for child in children]
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
    return [(c.returncode, text) for c, text in zip(children, texts, strict=True)]


def arguments(folder, workdir):
    return tiny.arguments(folder, workdir, *SETTINGS)


def test_two_processes_one_lost_and_resumed_on_four_devices_equal_one_process(
    folder, tmp_path
):
    alone, together = tmp_path / "alone", tmp_path / "together"
    ((code, text),) = run(arguments(folder, alone), 1, 1)
    assert code == 0, text
    (first, told), (second, _) = run(arguments(folder, together), 2, 1, LOST)
    assert (first, second) == (1, -signal.SIGKILL), told
    assert "another process of this run was lost" in told and "Traceback" not in told
    ours, theirs = (w / "runs/base/seed0" for w in (together, alone))
    assert tiny.saved_steps(ours) == [10]
    assert "another process of this run was lost" in read_record(ours)["reason"]
    ended = run(arguments(folder, together), 2, 2)
    assert [code for code, _ in ended] == [0, 0], ended
    found, expected = read_record(ours), read_record(theirs)
    assert found["status"] == "finished" and found["identity"] == expected["identity"]
    assert found["tokens"] == expected["tokens"]
    for mine, other in zip(found["scores"], expected["scores"], strict=True):
        assert mine["value"] == pytest.approx(other["value"], rel=1e-5)
        assert mine | {"value": 0} == other | {"value": 0}
    path = "translations/validation.txt"
    assert (ours / path).read_bytes() == (theirs / path).read_bytes()
    values, wanted = tiny.values(ours), tiny.values(theirs)
    # Four devices add rows of padding that one does not.
    same = [key for key in wanted if "padding" not in key[1]]
    assert values.keys() == wanted.keys() and len(same) > 20 * 6
    for key in same:
        assert values[key] == pytest.approx(wanted[key], rel=1e-5), key
    mine, other = tiny.checkpoint(ours), tiny.checkpoint(theirs)
    for path, raw in other.items():
        a, b = (
            np.frombuffer(x, np.int32 if len(raw) == 4 else np.float32)
            for x in (mine[path], raw)
        )
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max())


def placed(environment=None, **given):
    values = flags.FlagValues()
    host_flags.define(values)
    values(["x", *(f"--{name}={value}" for name, value in given.items())])
    return host_flags.place(values, environment or {})


@pytest.mark.parametrize("given", [{}, {"processes": 1}])
def test_run_of_one_process_has_no_place(given):
    assert placed(**given) is None


def test_flags_give_the_place():
    found = placed(coordinator="127.0.0.1:29500", processes=3, process_index=2)
    assert found == ("127.0.0.1:29500", 3, 2, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"processes": 2}, "--coordinator, --process_index missing; give all three"),
        ({"coordinator": "a:1"}, "--processes, --process_index missing"),
        (
            {"coordinator": "here", "processes": 2, "process_index": 0},
            "--coordinator=here: it must be HOST:PORT",
        ),
        (
            {"coordinator": "127.0.0.1:99999", "processes": 2, "process_index": 0},
            "it must be HOST:PORT",
        ),
        (
            {"coordinator": "127.0.0.1:9", "processes": 1, "process_index": 0},
            "--processes=1: it must be 2 or more",
        ),
        (
            {"coordinator": "127.0.0.1:9", "processes": 2, "process_index": 2},
            "--process_index=2: of 2 processes it must be from 0 to 1",
        ),
        (
            {"coordinator": "no.such.invalid:9", "processes": 2, "process_index": 0},
            "'no.such.invalid' has no address here",
        ),
    ],
)
def test_flags_that_do_not_fit_are_refused(given, said):
    with pytest.raises(UsageError) as caught:
        placed(**given)
    assert said in str(caught.value)


STEP = {
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_STEP_NODELIST": "localhost",
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "3",
}


def test_srun_of_several_tasks_gives_the_place():
    port = 20_000 + (7 * 64 + 3) % 40_000
    assert placed(STEP) == (f"localhost:{port}", 2, 1, None)


@pytest.mark.parametrize(
    "changes", [{"SLURM_STEP_NUM_TASKS": "1"}, {"SLURM_STEP_NODELIST": None}]
)
def test_slurm_without_several_tasks_is_one_process(changes):
    given = {k: v for k, v in {**STEP, **changes}.items() if v is not None}
    assert placed(given) is None


def test_one_process_can_be_asked_for_under_srun():
    assert placed(STEP, processes=1) is None


def test_tasks_of_a_node_that_see_all_its_gpus_take_one_each():
    node = {**STEP, "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_LOCALID": "1"}
    assert placed({**node, "CUDA_VISIBLE_DEVICES": "0,1"}).devices == (1,)
    assert placed({**node, "CUDA_VISIBLE_DEVICES": "1"}).devices is None
    spread = {**node, "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_LOCALID": "0"}
    assert placed({**spread, "CUDA_VISIBLE_DEVICES": "0,1"}).devices is None


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("n1", "n1"),
        ("n1,n2", "n1"),
        ("gpu[03-05,9],x", "gpu03"),
        ("r[1-2]-ib,q", "r1-ib"),
        ("a-b[7,9]", "a-b7"),
    ],
)
def test_first_node_of_slurms_short_form(nodes, first):
    assert host_flags.first_node(nodes) == first
