"""``--profile=FROM:TO``: what some updates spend their time on, as a trace of JAX.

The request travels in the environment, so it reaches the process that trains.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from absl import flags

from experiments.command import UsageError
from transformer_ablation.report.record import read_record
from transformer_ablation.sweep import rows, runs
from transformer_ablation.sweep.file import SweepFile

VARIABLE = "TRANSFORMER_ABLATION_PROFILE"


def define(values: flags.FlagValues) -> None:
    """--profile."""
    text = (
        "FROM:TO, updates that are traced; the trace goes to plugins/profile in the "
        "run's folder, where TensorBoard's profile plugin, XProf and Perfetto read it"
    )
    flags.DEFINE_string("profile", None, text, flag_values=values)


def parse(text: str) -> tuple[int, int]:
    """The first and the last update.

    Raises:
      UsageError: if these are not two numbers that count from 1, in order.
    """
    parts = text.split(":")
    plain = all(part.isascii() and part.isdigit() for part in parts)
    if len(parts) != 2 or not plain or not 1 <= int(parts[0]) <= int(parts[1]):
        raise UsageError(
            f"--profile={text}: must be FROM:TO, two numbers of updates, which count "
            "from 1, the smaller first; for example --profile=20:24"
        )
    return int(parts[0]), int(parts[1])


def check(text: str, sweep_file: SweepFile, workdir: Path, row: str, seed: int) -> None:
    """Refuse updates that the run does not have, or has behind it.

    Raises:
      UsageError: naming those that can be traced.
    """
    first, last = parse(text)
    chosen = rows.select(sweep_file.rows, [row])
    steps = rows.expand(sweep_file.base, chosen)[0].config.train.steps
    record = read_record(runs.folder(workdir, row, seed)) or {}
    done = record.get("step") or 0
    if last > steps:
        raise UsageError(f"--profile={text}: the run has {steps:,} updates")
    if first <= done:
        left = f"those from {done + 1:,} to {steps:,} are left"
        raise UsageError(
            f"--profile={text}: the run has done {done:,} updates; "
            f"{left if done < steps else 'none is left: name another --workdir'}"
        )


@contextlib.contextmanager
def asked(text: str | None) -> Iterator[None]:
    """Inside it, training traces these updates."""
    if text is None:
        yield
        return
    os.environ[VARIABLE] = text
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def traced(
    update: Callable[..., Any],
    done: int,
    directory: Path,
    note: Callable[[str], None],
) -> Callable[..., Any]:
    """``update``, which traces what is asked for; ``done`` updates lie behind it.

    ``note`` hears where the trace is.
    """
    import jax

    if VARIABLE not in os.environ:
        return update
    first, last = parse(os.environ[VARIABLE])
    # Programs of the cache may have been compiled before their parts had these names.
    jax.config.update("jax_compilation_cache_include_metadata_in_key", True)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # every call of a function would be in it

    def call(state: Any, *rest: Any) -> Any:
        nonlocal done
        done += 1
        if done == first:
            jax.block_until_ready(state)
            jax.profiler.start_trace(directory, profiler_options=options)
        with jax.profiler.StepTraceAnnotation("update", step_num=done):
            result = update(state, *rest)
        if done == last:
            jax.block_until_ready(result)
            jax.profiler.stop_trace()
            place = directory / "plugins" / "profile"
            note(f"updates {first} to {last} traced: {place}")
        return result

    return call
