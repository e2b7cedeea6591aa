"""Which process of a run over several this is: from flags, or from Slurm's srun."""

import os
import re
import socket
from collections.abc import Mapping
from typing import NamedTuple

from absl import flags

from experiments.command import UsageError

PORTS = range(20_000, 60_000)
NAMES = ("coordinator", "processes", "process_index")
FORM = "--coordinator=HOST:PORT --processes=N --process_index=I"


class Place(NamedTuple):
    """Process ``index`` of ``count``; the coordinator is HOST:PORT of process 0."""

    coordinator: str
    count: int
    index: int
    devices: tuple[int, ...] | None = None


def define(values: flags.FlagValues) -> None:
    """--coordinator, --processes and --process_index."""
    text = "HOST:PORT of process 0, of a run over several processes; srun sets it"
    flags.DEFINE_string("coordinator", None, text, flag_values=values)
    text = "how many processes share the run; srun sets it, 1 says not to share"
    flags.DEFINE_integer("processes", None, text, flag_values=values)
    text = "number of this process, from 0"
    flags.DEFINE_integer("process_index", None, text, flag_values=values)


def place(
    options: flags.FlagValues, environment: Mapping[str, str] = os.environ
) -> Place | None:
    """The place of this process; None for a run of one.

    Raises:
      UsageError: for flags that do not fit together, or a host without an address.
    """
    given = {name: getattr(options, name) for name in NAMES}
    missing = [f"--{name}" for name in NAMES if given[name] is None]
    if given["processes"] == 1 and len(missing) == 2:
        return None
    if len(missing) == 3:
        found = _of_slurm(environment)
    elif missing:
        raise UsageError(f"{', '.join(missing)} missing; give all three: {FORM}")
    else:
        found = Place(*given.values())
    if found is not None:
        _check(found)
    return found


def _check(found: Place) -> None:
    host, _, port = found.coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(
            f"--coordinator={found.coordinator}: it must be HOST:PORT of process 0, "
            "for example --coordinator=node1:29500"
        )
    if found.count < 2:
        raise UsageError(f"--processes={found.count}: it must be 2 or more with {FORM}")
    if not 0 <= found.index < found.count:
        raise UsageError(
            f"--process_index={found.index}: of {found.count} processes it must be "
            f"from 0 to {found.count - 1}"
        )
    try:
        socket.getaddrinfo(host, int(port))
    except OSError as error:
        raise UsageError(
            f"the coordinator's host {host!r} has no address here ({error}); name one "
            f"that every process can reach: {FORM}"
        ) from error


def _of_slurm(environment: Mapping[str, str]) -> Place | None:
    """The place in a step that srun started with several tasks."""
    names = "SLURM_STEP_NUM_TASKS SLURM_PROCID SLURM_STEP_NODELIST SLURM_JOB_ID".split()
    if any(name not in environment for name in names):
        return None
    tasks, index, nodes, job = (environment[name] for name in names)
    if int(tasks) < 2:
        return None
    # A port that all tasks compute alike; two steps of a job have different ones.
    number = int(job) * 64 + int(environment.get("SLURM_STEP_ID", "0"))
    coordinator = f"{first_node(nodes)}:{PORTS[number % len(PORTS)]}"
    return Place(coordinator, int(tasks), int(index), _own_device(environment))


def first_node(nodes: str) -> str:
    """Of Slurm's short form: ``a[03-05,9],b`` begins with a03."""
    match = re.match(r"([^,\[]+)(?:\[(\w+)[^]]*\]([^,\[]*))?", nodes)
    if match is None:
        raise UsageError(f"SLURM_STEP_NODELIST={nodes!r} names no node; use {FORM}")
    return "".join(part or "" for part in match.groups())


def _own_device(environment: Mapping[str, str]) -> tuple[int, ...] | None:
    """Where tasks of a node see all its GPUs, each takes the one of its number."""
    seen = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
    on_node = environment.get("SLURM_STEP_TASKS_PER_NODE", "1")
    local, several = environment.get("SLURM_LOCALID"), not on_node.startswith("1(")
    if local is None or not several or on_node == "1" or len(seen) < 2:
        return None
    return (int(local),) if int(local) < len(seen) else None
