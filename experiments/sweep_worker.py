"""The process of a worker of a sweep; its launcher starts it and talks to it.

Nothing of JAX is loaded before the first run is claimed.
"""

import contextlib
import faulthandler
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import sweep_record
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import stopping, worker


def main() -> None:
    """Read the launcher's settings, then serve until it closes the pipe."""
    stop = stopping.Stop()
    for number in stopping.heeded():
        signal.signal(number, lambda number, _: stop.signalled(number))
    # A terminal sends Ctrl-C to every process; the launcher says what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping.SIGNALS)
    reply = _take_stdout()
    faulthandler.enable(file=2)
    settings = json.loads(sys.stdin.readline())
    _bind(settings["cores"])

    def make_run_one() -> worker.RunOne:
        from experiments.run import run_one_factory

        return run_one_factory(Path(settings["cache"]))

    worker.serve(
        sys.stdin,
        reply,
        make_run_one,
        read_record=read_record,
        mark_stopped=sweep_record.mark_stopped,
        stop=stop,
        capture=worker.captured,
    )


def _take_stdout() -> Callable[[Mapping[str, Any]], None]:
    """Replies go where stdout went; what libraries print goes to stderr."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(message: Mapping[str, Any]) -> None:
        # Nobody listens once the launcher has died; the run is saved all the same.
        with contextlib.suppress(OSError):
            replies.write(json.dumps(message) + "\n")
            replies.flush()

    return reply


def _bind(cores: Sequence[int] | None) -> None:
    """Use these cores only; where they cannot be chosen, as many."""
    if cores is None:
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    else:
        os.environ["JAX_NUM_CPU_DEVICES"] = str(len(cores))


if __name__ == "__main__":
    main()
