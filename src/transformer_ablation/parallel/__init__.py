"""Devices: the only file that calls ``jax.pmap``; several processes are in ``hosts``.

JAX keeps pmap in maintenance mode, so everything that depends on it is here:
what is replicated, what is sharded, and how the host reads a result. With several
processes each gives and gets the shards of its own devices.
"""

import contextlib
import gc
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental.compilation_cache import compilation_cache

from transformer_ablation import process
from transformer_ablation.parallel import hosts
from transformer_ablation.parallel.hosts import processes

__all__ = ["hosts", "processes"]

AXIS = "devices"
# Batches have rows in multiples of 8, so more devices would only hold padding.
MAX_CPU_DEVICES = 8
# A device of one core has no use for threads that share out an operation; handing
# over to them took a seventh of a step. Wide vectors took off another tenth.
_ONE_CORE_DEVICES = {
    "xla_cpu_multi_thread_eigen": "false",
    "xla_cpu_prefer_vector_width": "512",
}

_COMPILE_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


_limit: list[int] = []


def device_count() -> int:
    """Devices of this process that a batch is spread over."""
    return min([jax.local_device_count(), *_limit])


@contextlib.contextmanager
def at_most(count: int) -> Iterator[None]:
    """Inside it, batches are spread over the first ``count`` devices at most."""
    _limit.append(count)
    try:
        yield
    finally:
        _limit.pop()


def total_device_count() -> int:
    """Devices of all processes that a batch is spread over."""
    return device_count() * processes()[1]


def device_description() -> dict[str, Any]:
    """Kind, platform and count of the devices of all processes, for the record."""
    device = jax.local_devices()[0]
    return {
        "kind": device.device_kind,
        "platform": device.platform,
        "count": total_device_count(),
    }


def device_memory() -> dict[str, int]:
    """Bytes ``in_use`` and at the ``peak``, of this process's fullest device.

    What JAX does not count is left out: on a CPU, both.
    """
    stats = [d.memory_stats() or {} for d in jax.local_devices()[: device_count()]]
    names = {"in_use": "bytes_in_use", "peak": "peak_bytes_in_use"}
    return {
        name: max(each[key] for each in stats)
        for name, key in names.items()
        if all(key in each for each in stats)
    }


class CacheWarning(UserWarning):
    """Compiled programs cannot be kept."""


def set_up(cache: Path) -> None:
    """What a process does first: devices, and a folder for compiled programs."""
    use_all_cores()
    use_compilation_cache(cache / "compiled")


def use_all_cores() -> None:
    """Makes every core of the CPU a device, up to 8; other platforms are untouched.

    Two devices of one core each ran a small model half as fast again as one
    device of two, and XLA is told that an operation has one core. Call it before
    anything runs. A count that the user has set in XLA_FLAGS or JAX_NUM_CPU_DEVICES
    is left alone.
    """
    chosen = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if chosen or os.environ.get("JAX_NUM_CPU_DEVICES"):
        return
    cores = len(process.cores())
    # Refused once JAX has started, with the devices it has then.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", min(cores, MAX_CPU_DEVICES))
    if 1 < cores <= MAX_CPU_DEVICES:
        _add_flags(_ONE_CORE_DEVICES)


def _add_flags(flags: dict[str, str]) -> None:
    """Flags of XLA that the user has not set; they count until JAX starts."""
    given = os.environ.get("XLA_FLAGS", "")
    added = [f"--{name}={value}" for name, value in flags.items() if name not in given]
    os.environ["XLA_FLAGS"] = " ".join([given, *added]).strip()


def use_compilation_cache(folder: Path) -> None:
    """Keeps compiled programs in ``folder`` for later processes.

    A folder that the user has set by JAX_COMPILATION_CACHE_DIR is left alone.

    Warns:
      CacheWarning: where nothing can be written; what is there is still used.
    """
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        text = f"{folder}: {why}; programs compiled now are compiled again next time"
        warnings.warn(CacheWarning(text), stacklevel=3)
        # JAX says it again of each program.
        message = "Error (reading|writing) persistent compilation cache"
        warnings.filterwarnings("ignore", message=message)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@contextlib.contextmanager
def without_compilation_cache() -> Iterator[None]:
    """Inside it every program is compiled here, whatever earlier processes kept."""
    name = "jax_enable_compilation_cache"
    before = getattr(jax.config, name)
    jax.config.update(name, False)
    compilation_cache.reset_cache()  # JAX decides once whether it uses the folder
    try:
        yield
    finally:
        jax.config.update(name, before)
        compilation_cache.reset_cache()


def forget_programs() -> None:
    """Frees the programs compiled so far: those of one row are no use to the next."""
    jax.clear_caches()
    gc.collect()


class CompileClock:
    """Seconds that this process has spent compiling since it was made.

    A function that is traced inside another is heard of twice, in its own event and
    in the outer one; its time is counted once.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._counted: list[tuple[float, float]] = []
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, seconds: float, **_: Any) -> None:
        if event in _COMPILE_EVENTS:
            self.add(time.monotonic(), seconds)

    def add(self, end: float, seconds: float) -> None:
        """An event that ended at ``end`` and may hold earlier ones."""
        start = end - seconds
        inside = [span for span in self._counted if span[0] >= start - 1e-3]
        self.seconds += max(0.0, seconds - sum(b - a for a, b in inside))
        before = [span for span in self._counted if span not in inside]
        self._counted = [*before[-64:], (start, end)]


def sum_over_devices(tree: Any) -> Any:
    """The sum of a pytree over all devices, inside a mapped function."""
    return lax.psum(tree, AXIS)


def device_index() -> Any:
    """The number of the device at hand, inside a mapped function."""
    return lax.axis_index(AXIS)


def replicate(tree: Any) -> Any:
    """The tree on every device, placed as ``map_update`` returns it.

    A tree placed otherwise would make the update compile twice.
    """
    copy = jax.pmap(lambda x, _: x, AXIS, in_axes=(None, 0), out_axes=None)
    return copy(tree, np.zeros(device_count()))


def on_host(tree: Any) -> Any:
    """A replicated tree as numpy."""
    return jax.device_get(tree)


def on_one_device(tree: Any) -> Any:
    """A replicated tree as this process's first device has it: nothing is copied."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree)


def map_update(update: Callable) -> Callable:
    """``update(state, batch, *rest)`` over all devices.

    The batch is sharded on its leading axis; state, rest and results are
    replicated. The state is donated: the caller must use the returned one.
    """

    def call(state: Any, batch: Any, *rest: Any) -> Any:
        _check_leading_axis(batch)
        results = mapped(len(rest))(state, batch, *rest)
        # CPU devices share one pool of threads; sums that are not waited for
        # can leave each other without one for ever.
        shared = total_device_count() > 1 and jax.default_backend() == "cpu"
        return jax.block_until_ready(results) if shared else results

    cache: dict[int, Callable] = {}

    def mapped(count: int) -> Callable:
        if count not in cache:
            cache[count] = jax.pmap(
                update,
                axis_name=AXIS,
                in_axes=(None, 0) + (None,) * count,
                out_axes=None,
                donate_argnums=(0,),
            )
        return cache[count]

    return call


class SharedEvent:
    """An event as all processes see it: set for all at the same call, or for none.

    Every process must ask as often as every other. An answer holds what they knew at
    the call before, so that no update is waited for. Once it is set, each process's own
    event is as well.
    """

    def __init__(self, event: Any):
        self._event, self._set, self._votes = event, False, None
        self._count = jax.pmap(lambda x: lax.psum(x, AXIS), AXIS, out_axes=None)

    @property
    def reason(self) -> str | None:
        """This process's own, where the event has one."""
        found: str | None = getattr(self._event, "reason", None)
        return found or ("another process was told to" if self._set else None)

    def is_set(self) -> bool:
        """Whether any process had been told to stop."""
        if not self._set:
            told = np.full(device_count(), self._event.is_set(), np.int32)
            before, self._votes = self._votes, self._count(told)
            if jax.default_backend() == "cpu":  # as in map_update
                jax.block_until_ready(self._votes)
            self._set = before is not None and int(before) > 0
            if self._set:
                self._event.set()
        return self._set


def shared(event: Any) -> Any:
    """The event, as all processes see it."""
    return event if processes()[1] == 1 else SharedEvent(event)


def map_batch(function: Callable) -> Callable:
    """``function(params, batch)`` over all devices, params replicated.

    The host gives rows [R, ...] and gets results [R, ...] as numpy; R must
    divide by the number of devices of all processes. Every process gives all rows,
    computes its share, and gets all results.
    """
    begin = begin_batch(function)
    return lambda params, batch: begin(params, batch)()


def begin_batch(function: Callable) -> Callable:
    """``map_batch`` that does not wait: what it returns is called for the results.

    A device that is done with its rows of a batch may start on those of the next.
    """
    mapped = jax.pmap(function, AXIS, in_axes=(None, 0), out_axes=0)

    def begin(params: Any, batch: Any) -> Callable:
        found = mapped(params, jax.tree.map(_split, batch))
        return lambda: hosts.gathered(jax.tree.map(_joined, jax.device_get(found)))

    return begin


def _split(x: np.ndarray) -> np.ndarray:
    total, count, index = total_device_count(), device_count(), processes()[0]
    if x.shape[0] % total:
        raise ValueError(f"{x.shape[0]} rows do not divide over {total} devices")
    shards = x.reshape(total, x.shape[0] // total, *x.shape[1:])
    return shards[index * count : (index + 1) * count]


def _joined(x: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _check_leading_axis(batch: Any) -> None:
    for leaf in jax.tree.leaves(batch):
        if leaf.shape[0] != device_count():
            raise ValueError(
                f"the leading axis of a batch is {leaf.shape[0]}, "
                f"but there are {device_count()} devices"
            )
