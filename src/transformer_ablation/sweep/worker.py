"""A worker of a sweep: does runs one after the other, as its launcher asks.

Requests and replies are JSON objects, one a line. Requests are ``{"run": ...,
"after": N}`` (the number of the dead claim, see ``claims.py``) and ``{"stop": why}``;
the end of the requests, as when the launcher has died, stops as well. Replies to a run
are ``{"claimed": true}``, any number of ``{"progress": ...}``, and one that ends it:

- ``{"ended": status, "reason": ..., "memory": bool, "already": bool}``
- ``{"taken": true}``: another process has the run
- ``{"lost": reason}``: another process has taken it over
- ``{"full": file or null}``: no space left on the device
- ``{"away": folder}``: the folder has gone, as with a disk that is unmounted
"""

import contextlib
import functools
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.process import this_process
from transformer_ablation.sweep import claims, stopping
from transformer_ablation.sweep.failures import out_of_memory, out_of_space
from transformer_ablation.sweep.runs import (
    FINAL,
    ReadRecord,
    Run,
    check_folders,
    final_status,
    run_from_mapping,
)

LOG_FILE = "log.txt"
RunOne = Callable[[Run, threading.Event, Callable[[dict[str, Any]], None]], str]
MarkStopped = Callable[[Run, str, str], None]  # run, status, reason
Capture = Callable[[Path], contextlib.AbstractContextManager[None]]
Reply = Callable[[Mapping[str, Any]], None]


def serve(
    requests: Iterable[str],
    reply: Reply,
    make_run_one: Callable[[], RunOne],
    *,
    read_record: ReadRecord,
    mark_stopped: MarkStopped,
    stop: stopping.Stop | None = None,
    capture: Capture = lambda path: contextlib.nullcontext(),
) -> None:
    """Do what is asked until the requests end.

    ``run_one(run, stop, progress)`` trains and scores one run, saves and returns
    "preempted" soon after ``stop`` is set, and otherwise returns its final status.
    It is made when the first run has been claimed. Inside ``capture(path)`` what the
    process prints goes to a file.
    """
    stop = stop or stopping.Stop()
    todo: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()

    def listen() -> None:
        for line in requests:
            message = json.loads(line)
            if message.get("stop"):
                stop.because(message["stop"])
            else:
                todo.put(message)
        stop.because("the launcher has ended")
        todo.put(None)

    threading.Thread(target=listen, name="requests", daemon=True).start()
    made = functools.cache(make_run_one)
    while (message := todo.get()) is not None:
        run = run_from_mapping(message["run"])
        try:
            claim = claims.acquire(run.directory, message["after"])
        except OSError as error:
            full = out_of_space(error)
            failed = {"ended": "failed", "reason": _words(error)}
            reply({"full": full.filename} if full else failed)
            continue
        if claim is None:
            reply({"taken": True})
            continue
        tools = made, reply, read_record, mark_stopped, stop
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(capture(run.directory / LOG_FILE))
            except OSError as error:
                claim.release(final=False)
                answer = {"ended": "failed", "reason": _words(error)}
            else:
                answer = _claimed(run, claim, *tools)
        reply(answer)


def _claimed(
    run: Run,
    claim: claims.Claim,
    made: Callable[[], RunOne],
    reply: Reply,
    read_record: ReadRecord,
    mark_stopped: MarkStopped,
    stop: threading.Event,
) -> dict[str, Any]:
    """Does a run that this process holds; how it ended."""
    answer: dict[str, Any] = {}
    try:
        with claims.beating(claim, stop.set):
            try:
                check_folders([run], read_record)
                already = final_status(run, read_record)
            except ValueError as error:  # nor may its record be written
                answer = {"ended": "failed", "reason": str(error)}
                return answer
            if already:
                answer = {"ended": already, "already": True}
                return answer
            reply({"claimed": True})
            try:
                status = made()(run, stop, lambda values: reply({"progress": values}))
                answer = {"ended": status}
            except Exception as error:
                answer = _failed(run, claim, error, mark_stopped)
            return answer
    finally:
        claim.release(final=answer.get("ended") in FINAL)


def _failed(
    run: Run, claim: claims.Claim, error: Exception, mark_stopped: MarkStopped
) -> dict[str, Any]:
    """What to say of a run that raised; its traceback is kept in error.txt."""
    if claim.lost:
        return {"away": str(run.directory)} if claim.away else {"lost": str(error)}
    full = out_of_space(error)
    if full is not None:
        return {"full": full.filename}
    reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
    path = run.directory / "error.txt"
    text = "".join(traceback.format_exception(error))
    try:
        path.write_text(text, encoding="utf-8")
        mark_stopped(run, "failed", reason)
        reason = f"{reason} (traceback in {path})"
    except OSError as unwritable:
        reason = f"{reason} (of which nothing could be kept: {_words(unwritable)})"
    return {"ended": "failed", "reason": reason, "memory": out_of_memory(error)}


def _words(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}"


@contextlib.contextmanager
def captured(path: Path) -> Iterator[None]:
    """What the process prints, its libraries included, is added to a file."""
    here = this_process()
    kept = [os.dup(number) for number in (1, 2)]
    with open(path, "a", encoding="utf-8") as file:
        when = time.strftime("%Y-%m-%d %H:%M:%S %z")
        file.write(f"--- {when}, process {here['pid']} on {here['host']}\n")
        file.flush()
        try:
            _flush()
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            yield
        finally:
            _flush()
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
