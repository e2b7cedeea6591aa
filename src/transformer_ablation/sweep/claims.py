"""Which process does a run: one at a time, also on machines that share a folder.

A claim is a numbered file ``claim-N.json`` in the run's folder, and the highest number
counts. Whoever creates the next one (O_CREAT and O_EXCL, which NFS keeps: no flock)
holds the run, so of several that want to take over a dead claim exactly one does. The
holder's heartbeat rewrites its own file every few seconds. The highest file stays until
the run has its result, so that no number is given twice before that.

A claim is dead if it was given back, if its process is known to have ended (same boot
of the same machine), or if its file has not changed for ``SILENT_SECONDS`` while
somebody looked on. No time of day and no clock of another machine is compared.
"""

import contextlib
import dataclasses
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.process import is_gone, this_machine, this_process

BEAT_SECONDS = 10.0
SILENT_SECONDS = 90.0
# A claim is rewritten in place, so all of them have this length.
SIZE = 512
NAME = re.compile(r"claim-([1-9][0-9]*)\.json")


class ClaimLost(RuntimeError):
    """Another process has taken a run over; nothing of it may be written here."""


@dataclasses.dataclass(frozen=True)
class Holder:
    """A claim as it was found; ``facts`` are empty while it is being written."""

    number: int
    content: bytes
    facts: Mapping[str, Any]

    @property
    def released(self) -> bool:
        """Whether it was given back."""
        return bool(self.facts.get("released"))

    @property
    def gone(self) -> bool:
        """Whether its process was one of this machine and has ended."""
        machine = this_machine()
        same = machine is not None and self.facts.get("machine") == machine
        return same and is_gone(self.facts)

    @property
    def over(self) -> bool:
        """Whether it is known to be dead, without watching it."""
        return self.released or self.gone

    def __str__(self) -> str:
        host, pid = self.facts.get("host"), self.facts.get("pid")
        return f"process {pid} on {host}" if pid else "an unknown process"


def current(folder: Path) -> Holder | None:
    """The claim that counts in a run's folder, or None.

    It may be dead: ask ``Watch``.
    """
    number = _highest(folder)
    if not number:
        return None
    try:
        content = _path(folder, number).read_bytes()
    except FileNotFoundError:  # removed since, as the run has its result
        return None
    try:
        facts = json.loads(content)
    except ValueError:
        facts = None
    whole = isinstance(facts, dict) and type(facts.get("pid")) is int
    return Holder(number, content, facts if whole else {})


class Watch:
    """Tells which claims are dead, by looking at them again and again.

    Of the time between two looks at most ``BEAT_SECONDS`` count: a watcher that was
    itself stopped, or asleep with the whole machine, has seen nothing meanwhile.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._seen: dict[Path, tuple[bytes, float, float]] = {}

    def is_dead(self, folder: Path, holder: Holder) -> bool:
        """Whether the run may be claimed; call it every few seconds."""
        if holder.over:
            return True
        now = self._now()
        content, looked, silent = self._seen.get(folder, (None, now, 0.0))
        if content == holder.content:
            silent += min(now - looked, BEAT_SECONDS)
        else:
            silent = 0.0
        self._seen[folder] = (holder.content, now, silent)
        return silent >= SILENT_SECONDS


def living(folder: Path, poll_seconds: float = 2.0) -> Holder | None:
    """The claim of a run's folder if it gives a sign of life, or None.

    A claim whose process cannot be asked is watched. One that turns out dead is taken
    and given back, so that nobody has to watch it again.
    """
    watch = Watch()
    found = current(folder)
    while (holder := current(folder)) is not None:
        if watch.is_dead(folder, holder):
            claim = acquire(folder, holder.number)
            if claim is not None:
                claim.release(final=False)
                return None
        elif found is None or holder.content != found.content:
            return holder
        time.sleep(poll_seconds)
    return None


class Claim:
    """A claim that this process has made."""

    def __init__(self, folder: Path, number: int, file: int):
        self.folder, self.number = folder, number
        self._file = file
        self._facts = {
            **this_process(),
            "machine": this_machine(),
            "token": secrets.token_hex(8),
            "released": False,
        }
        self._beats = 0
        self._lock = threading.Lock()
        try:
            self.beat()
        except OSError:  # a full disk; an empty claim would be nobody's for a while
            os.close(file)
            with contextlib.suppress(OSError):
                _path(folder, number).unlink()
            raise

    def beat(self) -> None:
        """A sign of life. It goes to this claim's file wherever that is by now."""
        with self._lock:
            self._beats += 1
            self._write()

    def _write(self) -> None:
        text = json.dumps({**self._facts, "beats": self._beats})
        os.pwrite(self._file, text.ljust(SIZE - 1).encode() + b"\n", 0)
        os.fsync(self._file)

    @property
    def away(self) -> bool:
        """Whether the folder is gone, or empty: nobody has taken the run over."""
        record = self.folder / "record.json"
        return not _numbers(self.folder) and not record.exists()

    @property
    def lost(self) -> bool:
        """Whether another process has taken the run over, or its folder is gone."""
        there = _path(self.folder, self.number)
        return _path(self.folder, self.number + 1).exists() or not there.exists()

    def check(self) -> None:
        """Call it before anything is written for the run.

        Raises:
          ClaimLost: if another process has taken the run over.
        """
        if self.lost:
            raise ClaimLost(
                f"{self.folder}: another process has taken this run over, as this one "
                "gave no sign of life; it is left to that process"
            )

    def release(self, final: bool) -> None:
        """Give the run back; with its result (``final``) its claims are removed."""
        with self._lock:
            if not final:
                self._facts["released"] = True
                with contextlib.suppress(OSError):  # it will be dead by its silence
                    self._write()
            os.close(self._file)
        if final and not self.lost:
            _remove(self.folder, self.number)


def acquire(folder: Path, after: int) -> Claim | None:
    """The claim with the number ``after`` + 1, or None if another process has it.

    ``after`` is the number of the dead claim that was found, 0 for none. Whoever gets
    a claim looks at the run's record again: the run may have ended meanwhile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        file = os.open(_path(folder, after + 1), flags, 0o644)
    except FileExistsError:
        return None
    if _highest(folder) > after + 1:  # what was found was older than it seemed
        os.close(file)
        _path(folder, after + 1).unlink(missing_ok=True)
        return None
    claim = Claim(folder, after + 1, file)
    _remove(folder, after)
    return claim


_held: dict[Path, Claim] = {}


@contextlib.contextmanager
def beating(claim: Claim, on_loss: Callable[[], None]) -> Iterator[None]:
    """A thread gives signs of life, and calls ``on_loss`` once the claim is lost.

    Inside, ``check(folder)`` speaks for this claim.
    """
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):  # a disk that is full or away
                claim.beat()
                if claim.lost:
                    on_loss()

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    _held[claim.folder] = claim
    try:
        yield
    finally:
        del _held[claim.folder]
        done.set()
        thread.join()


def check(folder: Path) -> None:
    """Before a record or a checkpoint is written in a folder.

    Raises:
      ClaimLost: if this process had a claim on it and has lost it.
    """
    claim = _held.get(folder)
    if claim is not None:
        claim.check()


@contextlib.contextmanager
def alone(
    folder: Path,
    note: Callable[[str], None] = lambda text: None,
    poll_seconds: float = 0.1,
) -> Iterator[None]:
    """Inside it no other process is; for a short work, such as rewriting a file.

    ``folder`` is one of its own for the claims; ``note`` hears for whom it waits.
    """
    watch = Watch()
    told = False
    while True:
        holder = current(folder)
        if holder is not None and not told and not holder.released:
            told = True
            note(f"{folder}: waiting for {holder}, or {SILENT_SECONDS:g} s of silence")
        if holder is None or watch.is_dead(folder, holder):
            claim = acquire(folder, holder.number if holder else 0)
            if claim is not None:
                break
        time.sleep(poll_seconds)
    try:
        with beating(claim, lambda: None):
            yield
    finally:
        claim.release(final=False)


def _numbers(folder: Path) -> list[int]:
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = (NAME.fullmatch(name) for name in names)
    return sorted(int(match[1]) for match in matches if match)


def _highest(folder: Path) -> int:
    return max(_numbers(folder), default=0)


def _remove(folder: Path, last: int) -> None:
    """Claims up to a number."""
    for number in _numbers(folder):
        if number <= last:
            _path(folder, number).unlink(missing_ok=True)


def _path(folder: Path, number: int) -> Path:
    return folder / f"claim-{number}.json"
