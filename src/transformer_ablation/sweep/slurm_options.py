"""What a cluster is asked for: from ``SLURM`` of a sweep file and from flags.

None of it enters a config, so none of it enters a run's identity.
"""

import dataclasses
import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

# A value goes into a line of the script that sbatch splits by its own rules.
WORD = re.compile(r"[A-Za-z0-9_.:=,+/@%&|()\[\]-]+")
TIME = re.compile(r"[0-9]+(:[0-9]{2}){0,2}|[0-9]+-[0-9]{1,2}(:[0-9]{2}){0,2}")
MEMORY = re.compile(r"[0-9]+[KMGT]?")
# Options that the script sets itself, or that would change what it is.
OWN = (
    "array chdir error export-file job-name no-requeue ntasks open-mode output "
    "parsable requeue signal test-only wait wrap"
).split()

NODES = ("nodes", "ntasks-per-node")


class SlurmError(ValueError):
    """A request that cannot be put to Slurm, or one that Slurm refused."""


@dataclasses.dataclass(frozen=True)
class SlurmOptions:
    """One job of the array is one run; None leaves a choice to the cluster.

    ``signal_seconds`` before the time limit a run is told to save. It goes back into
    the queue then, or when it is preempted, at most ``max_requeues`` times.
    ``setup`` are lines of shell before Python starts, ``sbatch`` further options.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    time: str | None = None
    gres: str | None = None
    cpus: int | None = None
    mem: str | None = None
    array_limit: int | None = None
    signal_seconds: int = 120
    max_requeues: int = 50
    setup: tuple[str, ...] = ()
    sbatch: tuple[str, ...] = ()


FIELDS = {field.name: field for field in dataclasses.fields(SlurmOptions)}
LISTS = ("setup", "sbatch")
# name -> (least, most)
NUMBERS = {
    "cpus": (1, 4096),
    "array_limit": (1, 10**6),
    "signal_seconds": (1, 65535),
    "max_requeues": (0, 10**6),
}


def parse(block: Mapping[str, Any], given: Sequence[str]) -> SlurmOptions:
    """The options of a sweep file's ``SLURM`` and of flags ``KEY=VALUE``, which win.

    ``setup`` and ``sbatch`` of flags are added to those of the file.

    Raises:
      SlurmError: naming every fault and where it is.
    """
    values, problems = _block_values(block), []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            problems.append(f"--slurm={text}: must be KEY=VALUE, as in partition=gpu")
        elif name in LISTS and isinstance(values.get(name, ()), list | tuple):
            values[name] = [*values.get(name, ()), value]
        else:
            values[name] = value
    checked = {}
    for name, value in values.items():
        if name not in FIELDS:
            problems.append(_unknown(name))
            continue
        checked[name], fault = _checked(name, value)
        problems += [f"slurm {name}: {fault}"] if fault else []
    if problems:
        raise SlurmError("\n".join(problems))
    return SlurmOptions(**checked)


def _block_values(block: Mapping[str, Any]) -> dict[str, Any]:
    """None in a file is what is left out."""
    return {str(name): value for name, value in block.items() if value is not None}


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, FIELDS, n=1)
    start = f"did you mean {near[0]}? The" if near else "the"
    return f"slurm {name}: unknown key; {start} keys are: {', '.join(FIELDS)}"


def _checked(name: str, value: Any) -> tuple[Any, str | None]:
    """The value as the options hold it, and what is wrong with it."""
    if name in NUMBERS:
        return _number(value, *NUMBERS[name])
    if name in LISTS:
        return _lines(name, value)
    text = str(value)
    if name == "time" and not TIME.fullmatch(text):
        return text, f"{text!r} must be minutes, H:MM:SS or D-HH:MM:SS"
    if name == "mem" and not MEMORY.fullmatch(text):
        return text, f"{text!r} must be megabytes, or a number with K, M, G or T"
    if not WORD.fullmatch(text):
        return text, f"{text!r} must be one word without spaces, quotes, '$' or '#'"
    return text, None


def _number(value: Any, least: int, most: int) -> tuple[Any, str | None]:
    text = str(value)
    good = re.fullmatch("[0-9]{1,7}", text) and least <= int(text) <= most
    fault = f"{value!r} must be a whole number from {least} to {most}"
    return (int(text), None) if good else (value, fault)


def _lines(name: str, value: Any) -> tuple[Any, str | None]:
    """Lines of shell, or options ``--name`` or ``--name=value``."""
    if isinstance(value, str) or not all(isinstance(line, str) for line in value):
        return value, f"{value!r} must be a list of texts"
    for line in value:
        if not line.strip() or not line.isprintable():
            return value, f"{line!r} must be one line of printable characters"
        if name == "setup":
            continue
        option = re.fullmatch(r"--([a-z][a-z-]*)(=(.+))?", line)
        if not option or (option[3] and not WORD.fullmatch(option[3])):
            return value, f"{line!r} must be --name or --name=value in one word"
        if option[1] in OWN:
            return value, f"{line!r} is set by the script itself; leave it out"
        if option[1] in NODES:
            return value, (
                f"{line!r}: a task does one run in one process; for a run over several "
                "nodes start python -m experiments.train with srun"
            )
        if option[1] in FIELDS:
            return value, f"{line!r}: use the key {option[1]} instead"
    return tuple(value), None
