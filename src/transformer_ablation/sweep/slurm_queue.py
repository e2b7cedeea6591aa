"""What Slurm's commands say: submit, look, cancel. No accounting is needed."""

import dataclasses
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from transformer_ablation.sweep.slurm_options import SlurmError

FORMAT = "%F|%K|%T|%r|%N|%j"
WAITING = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
GOING = (
    "CONFIGURING COMPLETING RUNNING SUSPENDED STOPPED SIGNALING STAGE_OUT RESIZING"
).split()
TIMEOUT_SECONDS = 60
# Where slurm.conf says nothing.
MAX_ARRAY_SIZE = 1001


class SlurmUnavailable(SlurmError):
    """There is no Slurm here, or its controller does not answer."""

    exit_code = 1


@dataclasses.dataclass(frozen=True)
class Task:
    """One task of an array as squeue shows it."""

    job: int
    index: int
    state: str
    reason: str
    node: str
    name: str

    @property
    def waiting(self) -> bool:
        """It has not started, or has been requeued."""
        return self.state in WAITING

    @property
    def going(self) -> bool:
        """It holds a node."""
        return self.state in GOING

    @property
    def label(self) -> str:
        """``job 12_3`` or ``job 12_3 on n1``."""
        place = f" on {self.node}" if self.node else ""
        return f"job {self.job}_{self.index}{place}"


def tasks(names: Sequence[str]) -> list[Task]:
    """Tasks of the jobs with these names, those that ended a short while ago too.

    Raises:
      SlurmUnavailable: squeue is missing or fails.
    """
    if not names:
        return []
    asked = f"--name={','.join(names)}"
    options = ["--noheader", "--array", "--states=all", f"--format={FORMAT}"]
    return parse_tasks(_run(["squeue", *options, asked]), names)


def parse_tasks(text: str, names: Iterable[str]) -> list[Task]:
    """squeue's lines in ``FORMAT``; those of other jobs are left out."""
    known, found = set(names), []
    for line in text.splitlines():
        parts = line.strip().split("|", 5)
        if len(parts) < 6 or parts[5] not in known:
            continue
        job, index, state, reason, node, name = parts
        if job.isdecimal() and index.isdecimal():
            found.append(Task(int(job), int(index), state, reason, node, name))
    return found


def check() -> None:
    """Whether Slurm can be asked at all.

    Raises:
      SlurmUnavailable: there is none here, or its controller does not answer.
    """
    _run(["scontrol", "ping"])


def largest_array() -> int:
    """Tasks of one array: the cluster's ``MaxArraySize``, Slurm's own where unknown."""
    try:
        said = _run(["scontrol", "show", "config"])
    except SlurmUnavailable:
        said = ""
    found = re.search(r"^MaxArraySize\s*=\s*([1-9][0-9]*)$", said, re.MULTILINE)
    return int(found[1]) if found else MAX_ARRAY_SIZE


def submit(folder: Path, script: str) -> int:
    """Submit a script that stands in a folder; the number of the job.

    Variables of a job that this process may itself be in are not passed on.

    Raises:
      SlurmUnavailable: sbatch is missing or refuses, in its own words.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("SLURM_") or key == "SLURM_CONF"
    }
    said = _run(["sbatch", "--parsable", script], folder, kept)
    number = said.strip().partition(";")[0]
    if not number.isdecimal():
        raise SlurmUnavailable(f"sbatch gave no number of a job, but {said.strip()!r}")
    return int(number)


def cancel(jobs: Iterable[int]) -> None:
    """Cancel whole arrays, queued and running tasks alike."""
    _run(["scancel", *map(str, jobs)])


def last_words(log: Path) -> str | None:
    """What Slurm wrote into a task's log as it ended it, or None.

    For example ``CANCELLED AT 2026-11-30T04:13:20 DUE TO TIME LIMIT``. It is of the
    last start that is logged there.
    """
    try:
        text = log.read_bytes()[-20_000:].decode("utf-8", "replace")
    except OSError:
        return None
    said = None
    for line in text.splitlines():
        if ", start " in line:
            said = None
        found = re.match(r"slurmstepd\S*: error: (.*)", line)
        if found and ("CANCELLED" in line or "oom" in line.lower()):
            words = re.sub(r"\*\*\*", "", found[1]).strip()
            said = re.sub(r"^(JOB|STEP) \S+ ON \S+ ", "", words)
    return said


def _run(
    command: Sequence[str],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """A command's output; its complaint as one message."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise SlurmUnavailable(
            f"there is no {command[0]} on this machine: log in where Slurm is, or use "
            "--launcher=local"
        ) from None
    except subprocess.TimeoutExpired:
        why = f"no answer for {TIMEOUT_SECONDS} seconds; try again later"
        raise SlurmUnavailable(f"{command[0]}: {why}") from None
    if done.returncode:
        told = " ".join((done.stderr or done.stdout).split())
        said = told or f"exit code {done.returncode}"
        raise SlurmUnavailable(f"{command[0]} refused: {said}")
    return done.stdout
