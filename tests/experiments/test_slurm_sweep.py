"""``--launcher=slurm``, ``--cancel`` and ``status``, with stand-ins for Slurm."""

import json
import re
import shlex
import shutil
import subprocess
import types

import pytest

from experiments import (
    command,
    planned_runs,
    slurm_follow,
    status,
    sweep,
    sweep_record,
    worker,
)
from tests.experiments.test_sweep_command import MANIFEST, PREPARED
from transformer_ablation.data import corpus, tokens
from transformer_ablation.report.record import read_record, write_record
from transformer_ablation.sweep.outcome import Outcome

GRAMMAR = "--config=configs/table3.py:grammar"
ROWS = "--rows=base,A_h1,big"
# big is the longest, then A_h1 by a little: one head of 64.
ORDER = ["big/seed0", "base/seed0", "A_h1/seed0"]


@pytest.fixture
def slurm(repository, tmp_path, monkeypatch, capsys):
    """Commands in a workdir beside a queue that the test writes."""
    monkeypatch.setattr(corpus, "read_manifest", lambda data, cache: MANIFEST)
    monkeypatch.setattr(tokens, "prepare", lambda data, cache: PREPARED)
    monkeypatch.chdir(repository)
    tools, workdir = tmp_path / "bin", tmp_path / "my $(runs) 'n'"
    tools.mkdir()
    queue, asked = tmp_path / "queue", tmp_path / "asked"
    queue.touch()
    config = tmp_path / "slurm.conf"
    config.write_text("MaxArraySize            = 1001\n")
    asked.touch()
    for name, text in {
        "sbatch": "env | grep ^SLURM_ >> ../../../leaked\necho '42;main'",
        "squeue": f"cat {queue}",
        "scancel": "",
        "scontrol": f"cat {tmp_path / 'slurm.conf'}",
    }.items():
        path = tools / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> {asked}\n{text}\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", "9")

    def run(found, *given):
        where = [f"--workdir={workdir}"]
        if found is not status.COMMAND:
            where.append(f"--cache={tmp_path / 'cache'}")
        code = command.run(found, [*where, *given])
        return (code, *capsys.readouterr())

    def submit(*given):
        return run(sweep.COMMAND, GRAMMAR, ROWS, "--launcher=slurm", *given)

    def folder():
        (found,) = (workdir / "slurm").iterdir()
        return found

    def in_queue(*lines):
        name = folder().name
        queue.write_text("".join(f"{line}|{name}\n" for line in lines))

    def states():
        code, out, error = run(status.COMMAND, "--format=json")
        assert code == 0, error
        found = json.loads(out)["rows"]
        return {r["row"]: (r["state"], r["reason"]) for r in found}, error

    def record(row, state, **more):
        found = planned_runs.find(workdir, f"{row}/seed0", tmp_path / "cache")
        made = sweep_record.new_record(found)
        write_record(found.directory, made | {"status": state} | more)

    return types.SimpleNamespace(
        run=run, submit=submit, folder=folder, in_queue=in_queue, states=states,
        record=record, workdir=workdir, tools=tools,
        asked=lambda: re.findall("^(?!scontrol).+", asked.read_text(), re.MULTILINE),
        config=config,
    )  # fmt: skip


def test_array_of_all_runs_is_submitted_longest_first(slurm, tmp_path):
    code, out, error = slurm.submit("--slurm=partition=gpu", "--slurm=array_limit=2")
    assert code == 0, error
    assert out.startswith("submitted job 42: 3 runs") and "--cancel" in out
    assert slurm.asked() == ["sbatch --parsable job.sh"]
    assert (slurm.folder() / "job_id").read_text() == "42\n"
    assert (slurm.folder() / "runs.txt").read_text().split() == ORDER
    text = (slurm.folder() / "job.sh").read_text()
    assert "--array=0-2%2\n" in text and "--partition=gpu\n" in text
    subprocess.run(["bash", "-n", slurm.folder() / "job.sh"], check=True)
    # A session inside a job of its own would hand down that job's settings.
    assert not (slurm.workdir.parent / "leaked").read_text()
    assert (slurm.workdir / "sweep.json").exists()


def test_second_launch_sends_what_is_neither_finished_nor_queued(slurm):
    slurm.submit()
    slurm.record("big", "finished")
    slurm.in_queue("42|1|RUNNING|None|n1")  # and 42_2 is gone
    code, _, error = slurm.submit()
    assert code == 0
    assert "1 of 3 runs to submit; 1 finished, 1 in the queue already" in error
    sent = [path.read_text().split() for path in slurm.workdir.glob("slurm/*/runs.txt")]
    assert sorted(sent, key=len) == [["A_h1/seed0"], ORDER]


def test_more_runs_than_an_array_may_have_are_several_arrays(slurm):
    slurm.config.write_text("AccountingStorageHost = x\nMaxArraySize = 2\n")
    assert slurm.submit()[0] == 0
    sent = [path.read_text().split() for path in slurm.workdir.glob("slurm/*/runs.txt")]
    assert sorted(sent, key=len, reverse=True) == [ORDER[:2], ORDER[2:]]
    assert slurm.asked() == ["sbatch --parsable job.sh"] * 2


@pytest.fixture
def searches(slurm, tmp_path):
    """Submits big, base and rows that search otherwise than base, as jobs from 42."""
    file = tmp_path / "searches.py"
    file.write_text(
        "from configs.table3 import get_config\n"
        "from configs.table3 import get_rows as others\n"
        "from transformer_ablation.sweep.rows import Row\n"
        "def beam(size):\n"
        "    change = lambda base: {'decode.beam_size': size}\n"
        "    return Row(f'beam{size}', 'beam', '', change)\n"
        "def get_rows():\n"
        "    rows = [row for row in others() if row.name in ('base', 'big')]\n"
        "    return [*rows, beam(1), beam(2)]\n"
    )
    (slurm.tools / "sbatch").write_text(
        "#!/bin/bash\n"
        "cat ../*/job.sh | grep -c '^#SBATCH --array' | awk '{print 41 + $1}'\n"
    )

    def submit(*given):
        given = [f"--config={file}", "--launcher=slurm", *given]
        return slurm.run(sweep.COMMAND, *given)

    def sent():
        """Of each array by its job, what it waits for and its runs."""
        found = {}
        for folder in (slurm.workdir / "slurm").iterdir():
            text = (folder / "job.sh").read_text()
            waits = re.findall("^#SBATCH --dependency=(.*)$", text, re.MULTILINE)
            job = folder / "job_id"
            job = int(job.read_text()) if job.exists() else None
            found[job] = waits, (folder / "runs.txt").read_text().split()
        return found

    return types.SimpleNamespace(submit=submit, sent=sent)


def test_runs_that_another_trains_wait_for_its_array(searches):
    code, out, error = searches.submit()
    assert code == 0, error
    assert searches.sent() == {
        42: ([], ["big/seed0", "base/seed0"]),
        43: (["afterany:42"], ["beam1/seed0", "beam2/seed0"]),
    }
    assert "submitted job 42: 2 runs" in out
    assert "submitted job 43: 2 runs, after the training in job 42, logs in" in out
    assert "4 of 4 runs to submit" in error


def test_runs_wait_for_the_training_in_each_of_their_arrays(searches, slurm):
    """Arrays of one task: big, base seed 0, base seed 1; then a search for each."""
    slurm.config.write_text("MaxArraySize = 1\n")
    searches.submit("--rows=base,big,beam1", "--seeds=0,1")
    found = searches.sent()
    jobs = {runs[0]: job for job, (_, runs) in found.items()}
    assert {runs[0]: waits for waits, runs in found.values() if waits} == {
        f"beam1/seed{k}": [f"afterany:{jobs[f'base/seed{k}']}"] for k in (0, 1)
    }


def test_runs_wait_for_a_training_that_is_in_the_queue(searches, slurm):
    searches.submit("--rows=base,big")
    slurm.in_queue("42|0|RUNNING|None|n1", "42|1|RUNNING|None|n1")
    searches.submit("--slurm=sbatch=--dependency=afterok:7")
    assert searches.sent()[43] == (
        ["afterok:7,afterany:42"],
        ["beam1/seed0", "beam2/seed0"],
    )


def test_runs_wait_for_a_training_in_the_queue_that_is_not_asked_for(searches, slurm):
    searches.submit("--rows=base,big")
    slurm.in_queue("42|0|RUNNING|None|n1", "42|1|RUNNING|None|n1")
    searches.submit("--rows=beam2")
    assert searches.sent()[43] == (["afterany:42"], ["beam2/seed0"])


@pytest.mark.parametrize("rows", ["base,beam1,beam2", "beam1,beam2"])
def test_runs_whose_training_is_there_wait_for_nothing(searches, slurm, rows):
    searches.submit("--rows=base")
    slurm.record("base", "finished")
    searches.submit(f"--rows={rows}")
    assert searches.sent()[43] == ([], ["beam1/seed0", "beam2/seed0"])


def test_dry_run_tells_which_array_is_to_wait(searches):
    code, out, error = searches.submit("--dry_run")
    assert code == 0 and out.count("#SBATCH --array=") == 2
    assert "--dependency" not in out
    (told,) = [line for line in error.splitlines() if "be submitted with" in line]
    assert "--dependency=afterany:JOB, the job of the array that trains" in told


def test_run_over_several_nodes_is_refused(slurm):
    code, out, error = slurm.submit("--slurm=sbatch=--nodes=2")
    assert (code, out) == (2, "") and "start python -m experiments.train with" in error


@pytest.mark.parametrize("given", ["--jobs=2", "--devices_per_run=1", "--time_limit=5"])
def test_flags_of_the_local_launcher_are_refused(slurm, given):
    code, out, error = slurm.submit(given)
    assert (code, out) == (2, "") and "for --launcher=local; say" in error


def test_queued_sweep_is_not_replaced_by_another(slurm):
    """Its tasks take their configs from sweep.json, whether or not one has begun."""
    slurm.submit()
    before = (slurm.workdir / "sweep.json").read_text()
    code, out, error = slurm.submit("--config.train.steps=20")
    assert (code, out) == (2, "") and "train.steps" in error
    assert (slurm.workdir / "sweep.json").read_text() == before


def test_lines_to_copy_are_quoted(slurm):
    _, out, _ = slurm.submit()
    told = [line for line in out.splitlines() if " it: " in line]
    assert len(told) == 2
    for line in told:
        assert f"--workdir={slurm.workdir}" in shlex.split(line)


def test_cancel_of_no_folder_is_refused(slurm):
    code, _, error = slurm.run(sweep.COMMAND, "--cancel")
    assert code == 2 and "no such folder" in error


def test_controller_that_is_down_is_told_in_its_words(slurm):
    (slurm.tools / "scontrol").write_text("#!/bin/sh\necho Slurmctld is DOWN\nexit 1\n")
    code, _, error = slurm.submit()
    assert code == 1 and "scontrol refused: Slurmctld is DOWN" in error


def test_nothing_is_submitted_where_all_is_there(slurm):
    slurm.submit()
    slurm.in_queue(*(f"42|{i}|PENDING|Priority|" for i in range(3)))
    assert "0 of 3 runs to submit" in slurm.submit()[2]
    assert [line.split()[0] for line in slurm.asked()].count("sbatch") == 1


def test_dry_run_shows_and_keeps_the_script(slurm):
    for tool in slurm.tools.iterdir():
        tool.unlink()  # no Slurm is needed
    code, out, error = slurm.submit("--dry_run")
    assert code == 0 and out == (slurm.folder() / "job.sh").read_text()
    assert "nothing is submitted" in error
    assert slurm.states()[0]["big"] == ("pending", None)


def test_states_of_the_queue_and_of_records_together(slurm):
    slurm.submit()
    slurm.in_queue(
        "42|0|PENDING|Resources|", "42|1|RUNNING|None|n2", "42|2|PENDING|BeginTime|"
    )
    slurm.record("A_h1", "preempted", reason="stopped after update 8", step=8)
    assert slurm.states()[0] == {
        "big": ("queued", "job 42_0: Resources"),
        "base": ("starting", "job 42_1 on n2"),
        "A_h1": ("requeued", "job 42_2: BeginTime"),
    }


def test_record_wins_where_it_knows_the_end(slurm):
    slurm.submit()
    slurm.in_queue("42|0|COMPLETING|None|n1", "42|1|FAILED|NonZeroExitCode|n1")
    slurm.record("big", "finished")
    slurm.record("base", "failed", reason="ValueError: no luck")
    found = slurm.states()[0]
    assert found["big"] == ("finished", None)
    assert found["base"] == ("failed", "ValueError: no luck")


@pytest.mark.parametrize(
    ("line", "state", "words"),
    [
        ("42|0|TIMEOUT|TimeLimit|n1", "failed", "TIMEOUT"),
        ("42|0|OUT_OF_MEMORY|OutOfMemory|n1", "failed", "OUT_OF_MEMORY"),
        ("42|0|NODE_FAIL|NodeDown|n1", "failed", "NODE_FAIL"),
        ("42|0|FAILED|NonZeroExitCode|n1", "failed", "FAILED"),
        ("42|0|CANCELLED|None|", "cancelled", "CANCELLED"),
    ],
)
def test_end_that_only_the_queue_knows(slurm, line, state, words):
    """The record says running, on a machine that nobody here can ask."""
    slurm.submit()
    slurm.record("big", "running", process={"host": "elsewhere", "pid": 1})
    slurm.in_queue(line)
    found, reason = slurm.states()[0]["big"]
    assert found == state and reason.startswith("job 42_0") and words in reason
    assert f"log in {slurm.folder() / '0.log'}" in reason


@pytest.mark.parametrize(
    ("said", "state", "words"),
    [
        ("*** JOB 43 ON n1 CANCELLED AT 2026-11-30T04:13:20 DUE TO TIME LIMIT ***",
         "failed", "CANCELLED AT 2026-11-30T04:13:20 DUE TO TIME LIMIT"),
        ("*** JOB 43 ON n1 CANCELLED AT 2026-11-30T04:13:20 ***",
         "cancelled", "CANCELLED AT 2026-11-30T04:13:20"),
        ("Detected 1 oom_kill event in StepId=43.batch.", "failed", "1 oom_kill event"),
        (None, "failed", "left the queue without a word"),
    ],
)  # fmt: skip
def test_end_that_squeue_has_forgotten(slurm, said, state, words):
    slurm.submit()
    slurm.record("big", "running", process={"host": "elsewhere", "pid": 1})
    earlier = "slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT x DUE TO PREEMPTION"
    log = [earlier, "big/seed0: task 42_0 on n1, start 2, Mon"]
    log += [f"slurmstepd-n1: error: {said}"] * (said is not None)
    (slurm.folder() / "0.log").write_text("\n".join(log))
    found, reason = slurm.states()[0]["big"]
    assert found == state and words in reason and "PREEMPTION" not in reason


def test_states_without_slurm_are_those_of_the_records(slurm):
    slurm.submit()
    slurm.record("big", "finished")
    (slurm.tools / "squeue").write_text("#!/bin/bash\necho no controller >&2; exit 1\n")
    found, error = slurm.states()
    assert found["big"] == ("finished", None) and found["base"] == ("pending", None)
    assert "squeue refused: no controller" in error and "records alone" in error


def test_workdir_without_jobs_asks_no_queue(slurm):
    slurm.submit()
    shutil.rmtree(slurm.workdir / "slurm")
    slurm.states()
    assert not [line for line in slurm.asked() if line.startswith("squeue")]


def test_cancel_needs_no_config_and_names_its_jobs(slurm):
    slurm.submit()
    assert "nothing to cancel" in slurm.run(sweep.COMMAND, "--cancel")[1]
    slurm.in_queue("42|0|RUNNING|None|n1", "42|1|PENDING|Priority|")
    code, out, _ = slurm.run(sweep.COMMAND, "--cancel")
    assert code == 0 and out.startswith("cancelled job 42: 1 waiting runs, 1 running")
    assert slurm.asked()[-1] == "scancel 42"


def test_wait_ends_with_the_table_and_says_what_is_missing(slurm, monkeypatch):
    slurm.submit()
    slurm.in_queue("42|1|RUNNING|None|n1", "42|0|PENDING|x|", "42|2|PENDING|x|")

    def later(seconds):
        slurm.record("big", "failed", reason="ValueError: no luck")
        slurm.in_queue("42|0|FAILED|x|n1")

    monkeypatch.setattr(slurm_follow, "sleep", later)
    code, out, error = slurm.submit("--wait")
    assert code == 1 and "big" in out
    assert "2 waiting, 1 running, 0 of 3 ended\n0 waiting, 0 running" in error
    assert "big seed 0 failed: ValueError: no luck" in error
    assert "3 of 3 runs have no result yet" in error


def test_refusal_of_sbatch_is_told_and_leaves_no_job(slurm):
    (slurm.tools / "sbatch").write_text("#!/bin/bash\necho bad account >&2; exit 1\n")
    code, _, error = slurm.submit()
    assert code == 1 and "sbatch refused: bad account (the script is" in error
    assert slurm.states()[0]["big"] == ("pending", None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--launcher=slurm", "--slurm=time=soon"], "slurm time: 'soon' must be"),
        (["--slurm=time=4:00:00"], "--slurm is for --launcher=slurm"),
        (["--wait"], "--wait is for --launcher=slurm"),
        (["--launcher=slurm", "--dry_run", "--wait"], "--dry_run submits nothing"),
        (["--launcher=pbs"], "--launcher=pbs: must be local or slurm"),
    ],
)
def test_refusals_leave_nothing(slurm, given, message):
    code, out, error = slurm.run(sweep.COMMAND, GRAMMAR, *given)
    assert (code, out) == (2, "") and error.startswith(message)
    assert not slurm.workdir.exists()


@pytest.mark.parametrize(
    ("state", "code"),
    [("finished", 0), ("preempted", 75), ("failed", 1), ("diverged", 1)],
)
def test_exit_code_of_a_worker_says_how_its_run_ended(slurm, monkeypatch, state, code):
    slurm.submit()
    done = []

    def launch(here, todo):
        done.extend(f"{run.row}/seed{run.seed}" for run in todo)
        return Outcome({todo[0].name: state}, {}, False)

    monkeypatch.setattr(worker.Here, "launch", launch)
    assert slurm.run(worker.COMMAND, "--run=A_h1/seed0")[0] == code
    assert done == ["A_h1/seed0"]


def test_worker_refuses_what_is_not_planned(slurm):
    slurm.submit()
    for given, message in [
        ([], "--workdir and --run are needed"),
        (["--run=A_h16/seed0"], "unknown run 'A_h16/seed0'"),
        (["--run=../../etc/seed0"], "must be ROW/seedK"),
    ]:
        code, _, error = slurm.run(worker.COMMAND, *given)
        assert code == 2 and message in error


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (137, "failed", "killed by SIGKILL, perhaps out of memory"),
        (139, "failed", "killed by SIGSEGV"),
        (143, "preempted", "killed by SIGTERM"),
        (99, "failed", "ended with exit code 99"),
    ],
)
def test_death_of_a_worker_is_recorded(slurm, code, state, reason):
    slurm.submit()
    directory = slurm.workdir / "runs" / "base" / "seed0"
    slurm.record("base", "running", step=7)
    assert slurm.run(worker.COMMAND, "--run=base/seed0", f"--ended={code}")[0] == 0
    found = read_record(directory)
    assert (found["status"], found["step"]) == (state, 7)
    assert reason in found["reason"]


def test_death_after_the_result_changes_nothing(slurm):
    slurm.submit()
    slurm.record("base", "finished")
    slurm.run(worker.COMMAND, "--run=base/seed0", "--ended=137")
    assert read_record(slurm.workdir / "runs/base/seed0")["status"] == "finished"


def test_settings_of_a_sweep_file_are_no_part_of_a_run(slurm, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from configs.table3 import get_config, get_rows\n"
        "SLURM = {'partition': 'long', 'setup': ['module load cuda']}\n"
    )
    given = [ROWS, "--launcher=slurm", "--slurm=partition=gpu"]
    slurm.run(sweep.COMMAND, f"--config={file}", *given)
    text = (slurm.folder() / "job.sh").read_text()
    assert "--partition=gpu\n" in text and "\nmodule load cuda\n" in text
    assert "module load" not in (slurm.workdir / "sweep.json").read_text()
    # The same base without them: the same runs.
    slurm.in_queue(*(f"42|{i}|PENDING|Priority|" for i in range(3)))
    assert "3 in the queue already" in slurm.submit()[2]
    file.write_text(file.read_text().replace("SLURM = {", "SLURM = [").replace(
        "]}", "]]").replace("'partition': 'long', 'setup': ", ""))  # fmt: skip
    code, _, error = slurm.run(sweep.COMMAND, f"--config={file}", *given)
    assert code == 2 and "SLURM must be a dict" in error
