"""Several processes as one run: the only file that calls ``jax.distributed``.

Process 0 writes, reads and decides; the others hear of it here. What is sent is sent
as bytes and arrives as the same bytes. With one process nothing is sent.
"""

import os
import socket
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils

JOIN_SECONDS = 300
# A process that has not been heard of for so long ends the job.
HEARTBEAT_SECONDS = 100
LEAVE_SECONDS = 30
LOST = "another process of this run was lost"
# Words of errors that a process meets when another has gone.
_LOST = ("gloo", "nccl", "coordination service", "connection closed", "peer")


class HostsError(ValueError):
    """Processes that do not come together, or do not fit."""

    exit_code = 1


def join(
    coordinator: str,
    count: int,
    index: int,
    devices: Sequence[int] | None = None,
    heartbeat_seconds: int = HEARTBEAT_SECONDS,
) -> None:
    """Makes this process number ``index`` of ``count``; before anything uses JAX.

    ``coordinator`` is HOST:PORT of process 0, which listens there. ``devices`` are the
    numbers of this process's accelerators; all that it sees by default.

    Raises:
      HostsError: if they do not all come, or bring unequal numbers of devices.
    """
    if index == 0:
        _check_port(coordinator)
    # Else SIGTERM would be JAX's, and our handlers for it would never run.
    jax.config.update("jax_enable_preemption_service", False)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            coordinator,
            count,
            index,
            local_device_ids=devices,
            cluster_detection_method="deactivate",
            initialization_timeout=JOIN_SECONDS,
            heartbeat_timeout_seconds=heartbeat_seconds,
            shutdown_timeout_seconds=LEAVE_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        raise HostsError(
            f"process {index} of {count} could not join the others at {coordinator} "
            f"({str(error).splitlines()[0]}); start all of them within {JOIN_SECONDS} "
            "seconds, each with its own --process_index, on a port that is free on "
            "the host of process 0 and open to the others"
        ) from error
    counts = gathered(np.array([jax.local_device_count()]))
    if len(set(counts.tolist())) > 1:
        raise HostsError(
            f"the processes have {', '.join(map(str, counts))} devices; each must "
            "have as many as the others"
        )


def _check_port(coordinator: str) -> None:
    """JAX's own listener ends the process where it cannot have the port."""
    port = int(coordinator.rpartition(":")[2])
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise HostsError(
            f"process 0 cannot listen on port {port} of this host: {why}; name another "
            "in --coordinator, the same for all processes"
        ) from None


def processes() -> tuple[int, int]:
    """The number of this process of a run, and how many there are."""
    return jax.process_index(), jax.process_count()


def is_first() -> bool:
    """Whether this process writes, reads and decides."""
    return jax.process_index() == 0


def from_first(tree: Any) -> Any:
    """Process 0's pytree of arrays; the others give one of the same shapes."""
    if jax.process_count() == 1:
        return tree
    arrays = jax.tree.map(np.asarray, tree)
    # As bytes: sums of floats would turn -0.0 into 0.0.
    raw = jax.tree.map(lambda x: np.frombuffer(x.tobytes(), np.uint8), arrays)
    sent = multihost_utils.broadcast_one_to_all(raw)
    return jax.tree.map(
        lambda b, x: np.frombuffer(np.asarray(b).tobytes(), x.dtype).reshape(x.shape),
        sent,
        arrays,
    )


def text_from_first(text: str) -> str:
    """Process 0's text."""
    raw = np.frombuffer(text.encode(), np.uint8)
    size = int(from_first(np.array([len(raw)], np.int32))[0])
    raw = raw if is_first() else np.zeros(size, np.uint8)
    return from_first(raw).tobytes().decode()


def gathered(tree: Any) -> Any:
    """The rows of all processes, in their order, of arrays of [rows, ...]."""
    if jax.process_count() == 1:
        return tree
    return multihost_utils.process_allgather(tree, tiled=True)


def agreed(flag: bool) -> bool:
    """Whether it is so for any process; all get the same answer."""
    return bool(gathered(np.array([flag])).any())


def lost(error: BaseException) -> bool:
    """Whether an error is one that another process's end causes."""
    words = f"{type(error).__name__}: {error}".lower()
    # What XLA raises; a path that holds one of the words is not meant.
    of_xla = isinstance(error, RuntimeError) or type(error) is ValueError
    several = jax.process_count() > 1
    return several and of_xla and any(word in words for word in _LOST)


def leave_at_once(code: int) -> NoReturn:
    """Ends this process without waiting for the others, which then end as well."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
