"""Work on this machine's cores, its results in the order of the work.

Processes are spawned: a forked copy of one that runs JAX can hang. A spawned process
imports the main module again, so a script needs ``if __name__ == "__main__":``.
"""

import collections
import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from transformer_ablation import process

# A process takes some 200 MB; more than so many would wait for the disk.
MAX_PROCESSES = 16
# Results that may wait for an earlier one, for each process.
_AHEAD = 3

Task = TypeVar("Task")
Result = TypeVar("Result")


class WorkerError(ValueError):
    """A process that died: killed from outside, most often for want of memory."""

    exit_code = 1  # a failure, not a refusal


def core_count() -> int:
    """Cores that this process may use, at most ``MAX_PROCESSES``."""
    return min(len(process.cores()), MAX_PROCESSES)


def in_order(
    function: Callable[[Any, Task], Result],
    shared: Any,
    tasks: Sequence[Task],
    processes: int,
) -> Generator[Result, None, None]:
    """``function(shared, task)`` of every task; the same for any ``processes``.

    ``function`` is one of a module; ``shared`` is sent to every process once. With
    one process the work is done in this one. Few results are held at a time.

    Raises:
      WorkerError: if a process died; whatever ``function`` raises.
    """
    if processes == 1:
        for task in tasks:
            yield function(shared, task)
        return
    pool = concurrent.futures.ProcessPoolExecutor(
        processes,
        multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(function, shared),
    )
    waiting: collections.deque[concurrent.futures.Future] = collections.deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(_work, task))
            if len(waiting) >= _AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise WorkerError(
            f"one of {processes} processes at work on the data died, perhaps for want "
            "of memory; free memory, or run the same command on fewer cores "
            "(taskset -c 0 COMMAND)"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_given: tuple[Callable, Any] | None = None


def _begin(function: Callable, shared: Any) -> None:
    """In a new process: ends with its parent, and leaves Ctrl-C to it."""
    global _given
    _given = (function, shared)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Any) -> Any:
    assert _given is not None
    function, shared = _given
    return function(shared, task)
