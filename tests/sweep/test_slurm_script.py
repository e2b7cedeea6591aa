"""The batch script, run by bash with stand-ins for Slurm's commands and the worker."""

import shlex
import subprocess
import time

import pytest

from transformer_ablation.sweep.slurm_options import SlurmOptions
from transformer_ablation.sweep.slurm_script import script

NASTY = 'it\'s $(touch hacked) `x` "y" ; # \\ é'


@pytest.fixture
def task(tmp_path):
    """``task(code, ...)``: a task of an array whose worker ends so."""
    place = tmp_path / NASTY
    place.mkdir()
    tools = tmp_path / "bin"
    tools.mkdir()

    def tool(name, text):
        path = tools / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return path

    asked = tmp_path / "asked"
    asked.touch()
    tool("scontrol", f'echo "scontrol $*" >> {shlex.quote(str(asked))}')
    runs = ["base/seed0", "A_h1/seed3"]
    options = SlurmOptions(max_requeues=2, setup=("export SET=up",))

    def start(worker, state="RUNNING", restarts=0):
        tool("squeue", f"echo {state}")
        says = f'printf "%s|" "$@" "$PWD" "$SET" >> {shlex.quote(str(asked))}; echo '
        says += f">> {shlex.quote(str(asked))}"
        ended = 'case "$*" in *--ended*) exit 0;; esac'
        path = tool("worker", f"{says}\n{ended}\n{worker}")
        words = [path, f"--workdir={place}"]
        text = script("n", runs, place, words, place, {"WHERE": NASTY}, options)
        file = tmp_path / "job.sh"
        file.write_text(text)
        environment = {
            "PATH": f"{tools}:/usr/bin:/bin",
            "SLURM_ARRAY_JOB_ID": "7",
            "SLURM_ARRAY_TASK_ID": "1",
            **({"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}),
        }
        return subprocess.Popen(
            ["/bin/bash", str(file)], env=environment, stdout=subprocess.PIPE, text=True
        )

    def run(*given, **kwargs):
        process = start(*given, **kwargs)
        out, _ = process.communicate(timeout=60)
        lines, before = asked.read_text().splitlines(), len(seen)
        seen.extend(lines[before:])
        return process.returncode, lines[before:], out

    seen = []
    run.start, run.asked, run.place = start, asked, place
    return run


def test_worker_gets_its_run_whatever_the_paths_hold(task, tmp_path):
    code, asked, _ = task("exit 0")
    assert code == 0
    (line,) = asked
    place = str(tmp_path / NASTY)
    assert line == f"--workdir={place}|--run=A_h1/seed3|{place}|up|"
    assert not list(tmp_path.rglob("hacked"))


@pytest.mark.parametrize("code", [1, 2])
def test_failed_and_refused_runs_stay_away(task, code):
    found, asked, _ = task(f"exit {code}")
    assert found == code and len(asked) == 1


def test_preempted_run_is_requeued_as_a_task_of_its_array(task):
    """``scontrol requeue`` of the first task's own number would requeue them all."""
    code, asked, _ = task("exit 75")
    assert (code, asked[1:]) == (75, ["scontrol requeue 7_1"])


def test_requeues_are_bounded(task):
    assert task("exit 75", restarts=1)[1][1:] == ["scontrol requeue 7_1"]
    _, asked, out = task("exit 75", restarts=2)
    assert asked[1:] == [] and "not requeued: 2 times are enough" in out


@pytest.mark.parametrize("state", ["COMPLETING", "CANCELLED", "''"])
def test_cancelled_task_is_not_brought_back(task, state):
    assert task("exit 75", state=state)[1][1:] == []


def test_killed_run_is_recorded_and_tried_once_more(task):
    code, asked, _ = task("kill -KILL $$")
    assert code == 137
    assert asked[1].split("|")[1:3] == ["--run=A_h1/seed3", "--ended=137"]
    assert asked[2:] == ["scontrol requeue 7_1"]
    _, asked, _ = task("kill -KILL $$", restarts=1)
    assert asked[1].split("|")[2] == "--ended=137" and asked[2:] == []


def test_run_stopped_before_it_could_listen_is_requeued(task):
    _, asked, _ = task("kill -TERM $$")
    assert "--ended=143" in asked[1] and asked[2:] == ["scontrol requeue 7_1"]


@pytest.mark.parametrize("name", ["USR1", "TERM"])
def test_signal_reaches_the_worker_and_its_code_is_waited_for(task, name):
    """Twice: a second signal while the worker saves takes nothing from it."""
    listening = task.place / "listening"
    worker = f"trap 'sleep 1; exit 75' TERM; : > {shlex.quote(str(listening))}\n"
    worker += "for _ in {1..600}; do sleep 0.05; done; exit 1"
    process = task.start(worker)
    for _ in range(600):
        if listening.exists():
            break
        time.sleep(0.05)
    for _ in range(2):
        subprocess.run(["kill", f"-{name}", str(process.pid)], check=True)
        time.sleep(0.2)
    process.communicate(timeout=60)
    assert process.returncode == 75
    assert task.asked.read_text().splitlines()[1:] == ["scontrol requeue 7_1"]


def test_directives_hold_nothing_that_is_not_checked(tmp_path):
    options = SlurmOptions(
        partition="gpu", cpus=3, mem="4G", array_limit=5, sbatch=("--nice=7",)
    )
    folder = tmp_path / NASTY
    text = script("w-1", ["a/seed0"] * 12, folder, ["python"], folder, {}, options)
    found = [line for line in text.splitlines() if line.startswith("#SBATCH")]
    assert found == [
        "#SBATCH --job-name=w-1",
        "#SBATCH --array=0-11%5",
        "#SBATCH --output=%a.log",
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue",
        "#SBATCH --signal=B:USR1@120",
        "#SBATCH --partition=gpu",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --mem=4G",
        "#SBATCH --nice=7",
    ]
