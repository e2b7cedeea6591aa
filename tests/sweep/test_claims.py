"""Claims: one process holds a run, and exactly one takes a dead claim over."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from transformer_ablation.sweep import claims

# A process that claims the folder given and holds it until its input ends.
HOLD = """
import pathlib, sys
from transformer_ablation.sweep import claims
claims.BEAT_SECONDS = 0.05
folder = pathlib.Path(sys.argv[1])
claim = claims.acquire(folder, int(sys.argv[2]))
lost = []
with claims.beating(claim, lambda: lost.append(1)):
    print("held", flush=True)
    sys.stdin.readline()
    try:
        claims.check(folder)
        print("mine", flush=True)
    except claims.ClaimLost as error:
        print("lost", flush=True)
claim.release(final=len(sys.argv) > 3)
"""


@pytest.fixture
def hold(tmp_path):
    """``hold(after)``: another process with the claim of ``tmp_path``."""
    started = []

    def hold(after=0, *more):
        command = [sys.executable, "-c", HOLD, str(tmp_path), str(after), *more]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        started.append(child)
        assert child.stdout.readline() == "held\n"
        return child

    yield hold
    for child in started:
        child.kill()
        child.wait()


class Time:
    """A clock that a test moves."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


def test_of_many_that_want_a_run_one_gets_it(tmp_path):
    """Threads that all go at once, for a fresh run and for a dead claim."""
    for after in range(3):
        barrier, got = threading.Barrier(8), []

        def take(after=after, barrier=barrier, got=got):
            barrier.wait()
            got.append(claims.acquire(tmp_path, after))

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (claim,) = [c for c in got if c is not None]
        assert claim.number == after + 1 and not claim.lost


def test_live_claim_is_respected_and_says_whose_it_is(tmp_path, hold):
    child = hold()
    holder = claims.current(tmp_path)
    assert str(holder) == f"process {child.pid} on {os.uname().nodename}"
    assert not claims.Watch().is_dead(tmp_path, holder)
    assert claims.acquire(tmp_path, 0) is None


def test_claim_of_a_killed_process_is_dead_at_once(tmp_path, hold):
    child = hold()
    child.kill()
    time.sleep(0.1)  # a zombie: its parent has not asked for it yet
    holder = claims.current(tmp_path)
    assert claims.Watch().is_dead(tmp_path, holder)
    child.wait()
    assert claims.Watch().is_dead(tmp_path, holder)


def test_number_of_a_process_given_to_another_is_a_dead_claim(tmp_path):
    claim = claims.acquire(tmp_path, 0)
    holder = claims.current(tmp_path)
    assert not holder.gone
    other = claims.Holder(1, b"", {**holder.facts, "started": "1"})
    assert other.gone
    # Another boot of this machine, or another machine: its number says nothing here.
    elsewhere = claims.Holder(1, b"", {**other.facts, "machine": "other"})
    assert not elsewhere.gone
    claim.release(final=True)
    assert claims.current(tmp_path) is None and list(tmp_path.iterdir()) == []


def test_claim_of_another_machine_is_dead_after_silence_alone(tmp_path):
    """Its heart stops at 1000 s; looked at every 5 s, it is dead 90 s later."""
    now = Time()
    watch = claims.Watch(now)
    claim = claims.acquire(tmp_path, 0)
    claim._facts["machine"] = "other"
    for _ in range(40):
        claim.beat()
        assert not watch.is_dead(tmp_path, claims.current(tmp_path))
        now.seconds += 5
    died = now.seconds - 5
    while not watch.is_dead(tmp_path, claims.current(tmp_path)):
        now.seconds += 5
    assert now.seconds - died == claims.SILENT_SECONDS == 90


def test_jumping_clocks_kill_no_claim(tmp_path, monkeypatch):
    """Times of day, here, there and of the files, may be anything."""
    now = Time()
    watch = claims.Watch(now)
    claim = claims.acquire(tmp_path, 0)
    for jump in (0, 10**6, -(10**6), 3600, -7200):
        monkeypatch.setattr(time, "time", lambda jump=jump: 1.8e9 + jump)
        claim.beat()
        os.utime(tmp_path / "claim-1.json", (1.8e9 - jump, 1.8e9 - jump))
        assert not watch.is_dead(tmp_path, claims.current(tmp_path))
        now.seconds += 60


def test_watcher_that_slept_has_seen_no_silence(tmp_path):
    """An hour passed between two looks, and the other may have slept as well."""
    now = Time()
    watch = claims.Watch(now)
    claims.acquire(tmp_path, 0)
    assert not watch.is_dead(tmp_path, claims.current(tmp_path))
    now.seconds += 3600
    assert not watch.is_dead(tmp_path, claims.current(tmp_path))
    for _ in range(8):
        now.seconds += 10
        dead = watch.is_dead(tmp_path, claims.current(tmp_path))
    assert dead


def test_stopped_process_notices_that_its_run_was_taken_over(tmp_path, hold):
    child = hold()
    os.kill(child.pid, signal.SIGSTOP)
    time.sleep(0.2)
    now = Time()
    watch = claims.Watch(now)
    while not watch.is_dead(tmp_path, claims.current(tmp_path)):
        now.seconds += 9
    claim = claims.acquire(tmp_path, 1)
    assert claim is not None
    os.kill(child.pid, signal.SIGCONT)
    out, _ = child.communicate("\n", timeout=60)
    # Its heart beats on and it gives back what it had: neither reaches this claim.
    assert out == "lost\n" and not claim.lost
    found = claims.current(tmp_path)
    assert (found.number, found.facts["pid"]) == (2, os.getpid())
    assert not found.released


def test_stopped_process_that_was_left_alone_goes_on(tmp_path, hold):
    child = hold()
    os.kill(child.pid, signal.SIGSTOP)
    os.kill(child.pid, signal.SIGCONT)
    assert child.communicate("\n", timeout=60)[0] == "mine\n"
    holder = claims.current(tmp_path)
    assert holder.released and claims.Watch().is_dead(tmp_path, holder)
    assert claims.acquire(tmp_path, 1).number == 2
    assert [p.name for p in tmp_path.iterdir()] == ["claim-2.json"]


def test_finished_run_keeps_no_claim(tmp_path, hold):
    assert hold(0, "final").communicate("\n", timeout=60)[0] == "mine\n"
    assert list(tmp_path.iterdir()) == []


def test_beats_change_the_file_and_keep_its_length(tmp_path):
    claim = claims.acquire(tmp_path, 0)
    before = claims.current(tmp_path).content
    claim.beat()
    after = claims.current(tmp_path).content
    assert before != after and len(before) == len(after) == claims.SIZE
    assert json.loads(after)["beats"] == 2


def test_claim_being_written_belongs_to_somebody(tmp_path):
    (tmp_path / "claim-1.json").touch()
    holder = claims.current(tmp_path)
    assert str(holder) == "an unknown process"
    assert not claims.Watch().is_dead(tmp_path, holder)


def test_late_taker_of_an_old_claim_gets_nothing(tmp_path):
    """It looked when claim 1 was dead; by now there is claim 3, and 2 is removed."""
    claims.acquire(tmp_path, 0).release(final=False)
    claims.acquire(tmp_path, 1).release(final=False)
    claim = claims.acquire(tmp_path, 2)
    assert claims.acquire(tmp_path, 1) is None and not claim.lost
    assert [p.name for p in tmp_path.iterdir()] == ["claim-3.json"]


def test_claim_is_lost_with_its_folder(tmp_path):
    folder = tmp_path / "run"
    claim = claims.acquire(folder, 0)
    with claims.beating(claim, lambda: None):
        claims.check(folder)
        (folder / "claim-1.json").unlink()
        with pytest.raises(claims.ClaimLost, match="another process has taken"):
            claims.check(folder)
    claims.check(folder)  # of a folder that is not claimed here nothing is asked


def test_work_done_alone_loses_no_change(tmp_path):
    """Four processes add to one number, 25 times each, reading and writing apart."""
    code = (
        "import pathlib, sys\n"
        "from transformer_ablation.sweep import claims\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "for _ in range(25):\n"
        "    with claims.alone(folder / 'c', poll_seconds=0.001):\n"
        "        number = int((folder / 'n').read_text())\n"
        "        (folder / 'n').write_text(str(number + 1))\n"
    )
    (tmp_path / "n").write_text("0")
    command = [sys.executable, "-c", code, str(tmp_path)]
    children = [subprocess.Popen(command) for _ in range(4)]
    assert [child.wait(timeout=120) for child in children] == [0] * 4
    assert (tmp_path / "n").read_text() == "100"
    assert len(list((tmp_path / "c").iterdir())) == 1


def test_long_work_done_alone_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.02)
    with claims.alone(tmp_path / "c"):
        first = claims.current(tmp_path / "c").content
        deadline = time.monotonic() + 60
        while claims.current(tmp_path / "c").content == first:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_who_waits_for_work_done_alone_says_for_whom(tmp_path, hold):
    child, said = hold(), []
    threading.Timer(0.3, child.kill).start()
    with claims.alone(tmp_path, said.append, 0.05):
        pass
    assert len(said) == 1 and f"waiting for process {child.pid} on " in said[0]


def test_claim_that_cannot_be_written_is_none(tmp_path, monkeypatch):
    """An empty file would hold the run until others had watched it long enough."""

    def full(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            claims.acquire(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []
    assert claims.acquire(tmp_path, 0) is not None


@pytest.mark.parametrize("facts", [{}, {"pid": "7"}, {"pid": None}, {"pid": 1.5}])
def test_damaged_claim_belongs_to_somebody_unknown(tmp_path, facts):
    from transformer_ablation.process import this_machine

    text = json.dumps({**facts, "machine": this_machine(), "host": "vm"})
    (tmp_path / "claim-1.json").write_text(text)
    holder = claims.current(tmp_path)
    assert not holder.gone and str(holder) == "an unknown process"


def test_folder_that_went_away_was_not_taken_over(tmp_path):
    run = tmp_path / "run"
    claim = claims.acquire(run, 0)
    assert not claim.lost and not claim.away
    (run / "claim-2.json").touch()
    assert claim.lost and not claim.away
    shutil.rmtree(run)
    assert claim.lost and claim.away
    claim.release(final=False)
