"""A worker in a process of its own, as its launcher sees it."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from transformer_ablation.sweep.devices import Share
from transformer_ablation.sweep.protocols import Hear
from transformer_ablation.sweep.stopping import SIGNALS

# A worker that has nothing to do ends within a second or two.
PATIENCE_SECONDS = 60.0


class WorkerProcess:
    """Sends requests to a process and passes its replies on; see ``worker.py``."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        settings: Mapping[str, Any],
        share: Share,
        hear: Hear,
    ):
        """``settings`` and the cores of ``share`` are the first line it reads."""
        self._hear = hear
        # Blocked in the worker until it is ready for them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **environment, **share.environment},
                text=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.send({**settings, "cores": share.cores})
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        threading.Thread(target=self._wait, args=(reader,), daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        """One request; one that has died will be heard of anyhow."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """No more requests: a run at hand is saved, and the process ends."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def wait(self) -> None:
        """Returns once a closed worker has ended; one that does not end is killed."""
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """At once; nothing is saved."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # torn by its end
                self._hear(self, json.loads(line))

    def _wait(self, reader: threading.Thread) -> None:
        code = self._process.wait()
        reader.join(PATIENCE_SECONDS)
        self._hear(self, code)
