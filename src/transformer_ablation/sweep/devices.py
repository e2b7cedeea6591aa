"""The devices of this machine, shared out among workers; JAX is not asked."""

import dataclasses
import importlib.util
import os
import pkgutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from transformer_ablation import process
from transformer_ablation.sweep.plan import counted
from transformer_ablation.sweep.runs import SweepError

VISIBLE = "CUDA_VISIBLE_DEVICES"
TOPOLOGY = Path("/sys/devices/system/cpu")
AUTO = "auto"
# Of the machine's memory, for each worker that "auto" starts on a CPU.
BYTES_PER_WORKER = 2 * 2**30


# Chooses so many of the named devices of a kind ("gpu", "cpu").
Take = Callable[[str, Sequence[str], int], list[str]]


def first(kind: str, names: Sequence[str], needed: int) -> list[str]:
    """The first of the devices, whoever else uses them."""
    return list(names[:needed])


@dataclasses.dataclass(frozen=True)
class Share:
    """What one worker may use: cores to be bound to, and variables; all for neither."""

    cores: tuple[int, ...] | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


def shares(
    jobs: str, per_run: int | None, environment: Mapping[str, str], take: Take = first
) -> list[Share]:
    """A share a worker, of ``per_run`` devices each, by default as many as come out.

    GPUs where JAX would use them, else cores of the CPU. ``jobs`` is a number, or
    "auto": one device a run whatever the number of runs, since another number would
    round sums otherwise, and as many runs as that gives. ``take`` says which devices.

    Raises:
      SweepError: another word, or more than there is, with what there is.
    """
    if jobs == AUTO:
        return _automatic(per_run, environment, take)
    if not (jobs.isascii() and jobs.isdecimal() and int(jobs) > 0):
        raise SweepError(f"--jobs={jobs}: must be a number of runs, or auto")
    return _shares(int(jobs), per_run, environment, take)


def _automatic(
    per_run: int | None, environment: Mapping[str, str], take: Take
) -> list[Share]:
    kind, each = accelerator(environment), per_run or 1
    if kind == "gpu":
        most = len(gpus(environment)) // each
        return _shares(max(1, most), each, environment, take)
    if kind == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        most = min(len(cores()) // each, memory // BYTES_PER_WORKER)
        return _shares(max(1, most), each, environment, take)
    return _shares(1, per_run, environment, take)


def _shares(
    jobs: int, per_run: int | None, environment: Mapping[str, str], take: Take
) -> list[Share]:
    if jobs == 1 and per_run is None:
        return [Share()]
    kind = accelerator(environment)
    if kind == "gpu":
        names, what = gpus(environment), "GPU"
    elif kind == "cpu":
        names, what = [str(core) for core in cores()], "CPU core"
    else:
        raise SweepError(
            f"--jobs and --devices_per_run: devices of the kind {kind} cannot be "
            "shared out among processes; leave both out"
        )
    each = per_run or max(1, len(names) // jobs)
    if jobs * each > len(names):
        raise SweepError(
            f"--jobs={jobs}: {jobs} runs at a time with {counted(each, what)} each "
            f"need {counted(jobs * each, what)}; there {_are(len(names))} "
            f"{counted(len(names), what)} here"
        )
    names = take(kind, names, jobs * each)
    parts = [names[i * each : (i + 1) * each] for i in range(jobs)]
    if kind == "gpu":
        return [Share(None, {VISIBLE: ",".join(part)}) for part in parts]
    return [Share(tuple(map(int, part))) for part in parts]


def accelerator(environment: Mapping[str, str]) -> str:
    """``gpu``, ``cpu``, or the name of the plugin of JAX for another device."""
    asked = environment.get("JAX_PLATFORMS", "").partition(",")[0].strip()
    if asked:
        return {"cuda": "gpu"}.get(asked, asked)
    plugins = _plugins()
    if any(name.startswith("xla_cuda") for name in plugins):
        return "gpu" if gpus(environment) else "cpu"
    if importlib.util.find_spec("libtpu") is not None:
        return "tpu"
    return plugins[0] if plugins else "cpu"


def _plugins() -> list[str]:
    """Of JAX, by the packages that its namespace for them holds."""
    spec = importlib.util.find_spec("jax_plugins")
    places = spec.submodule_search_locations if spec else None
    return sorted(module.name for module in pkgutil.iter_modules(places or []))


def gpus(environment: Mapping[str, str]) -> list[str]:
    """What CUDA_VISIBLE_DEVICES names, else the numbers that nvidia-smi lists."""
    named = environment.get(VISIBLE)
    if named is not None:
        names = [name.strip() for name in named.split(",")]
        # CUDA looks no further than the first that it does not know.
        end = next((i for i, name in enumerate(names) if name in ("", "-1")), None)
        return names[:end]
    try:
        command = ["nvidia-smi", "--list-gpus"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [line for line in done.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))] if not done.returncode else []


def cores() -> list[int]:
    """Cores of this process; the threads of one physical core stand together."""
    return sorted(process.cores(), key=_place)


def _place(core: int) -> tuple[int, int, int]:
    """Package and physical core of a core, then its own number."""
    folder = TOPOLOGY / f"cpu{core}" / "topology"
    try:
        package = int((folder / "physical_package_id").read_text())
        return package, int((folder / "core_id").read_text()), core
    except (OSError, ValueError):
        return 0, core, core


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
