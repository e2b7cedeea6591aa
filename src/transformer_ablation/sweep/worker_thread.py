"""A worker in a thread of this process, for a run that cannot have one of its own."""

import json
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

from transformer_ablation.sweep import worker
from transformer_ablation.sweep.protocols import Hear
from transformer_ablation.sweep.runs import ReadRecord


class WorkerThread:
    """Answers as ``worker_process.WorkerProcess`` does; what it prints is not kept."""

    def __init__(
        self,
        make_run_one: Callable[[], worker.RunOne],
        hear: Hear,
        *,
        read_record: ReadRecord,
        mark_stopped: worker.MarkStopped,
    ):
        self._hear, self._make_run_one = hear, make_run_one
        self._read_record, self._mark_stopped = read_record, mark_stopped
        self._requests: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def working(self) -> bool:
        """Whether it has not ended; a killed one goes on until the process ends."""
        return self._thread.is_alive()

    def send(self, message: Mapping[str, Any]) -> None:
        """One request."""
        self._requests.put(json.dumps(message))

    def close(self) -> None:
        """No more requests: a run at hand is saved, and the thread ends."""
        self._requests.put(None)

    def wait(self) -> None:
        """Returns once a closed worker has ended."""
        self._thread.join()

    def kill(self) -> None:
        """It counts as ended; the process is to end as well, as no thread is killed."""
        self._hear(self, -signal.SIGINT)

    def _work(self) -> None:
        code = 1
        try:
            worker.serve(
                iter(self._requests.get, None),
                lambda message: self._hear(self, json.loads(json.dumps(message))),
                self._make_run_one,
                read_record=self._read_record,
                mark_stopped=self._mark_stopped,
            )
            code = 0
        finally:
            self._hear(self, code)
