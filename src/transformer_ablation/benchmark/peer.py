"""A peer's process: while it works ours sleeps, and the other way round."""

import multiprocessing
import time
from types import TracebackType
from typing import Any

from transformer_ablation.benchmark import marian


class PeerError(ValueError):
    """The peer's process failed."""

    exit_code = 1  # a failure, not a refusal


class Peer:
    """The peer's process, as a context.

    Attributes:
      idle: the largest share of a core that it was seen to use while it waited for
        orders; a side that spins would slow the other.
      our_idle: the same of this process while it waited for answers.
    """

    def __init__(self, job: marian.Job):
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=marian.serve, args=(theirs, job), daemon=True
        )
        self._process.start()
        theirs.close()
        self.idle = self.our_idle = 0.0

    def ask(self, name: str, *arguments: Any) -> Any:
        """What a method of ``marian.Worker`` returns.

        Raises:
          PeerError: if it raised, or the process died.
        """
        start, cpu = time.perf_counter(), time.process_time()
        try:
            self._connection.send((name, *arguments))
            answer, idle = self._connection.recv()
        except (EOFError, OSError) as error:
            raise PeerError(
                "the peer's process died, perhaps for want of memory"
            ) from error
        if isinstance(answer, Exception):
            raise PeerError(f"the peer failed: {answer}")
        own = marian.core_share(time.perf_counter() - start, time.process_time() - cpu)
        self.idle, self.our_idle = max(self.idle, idle), max(self.our_idle, own)
        return answer

    def __enter__(self) -> "Peer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.terminate()
