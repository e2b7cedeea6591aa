"""One run from data to record: what a worker of a sweep does for each row."""

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import run_lead, run_parts, run_twin
from transformer_ablation import parallel
from transformer_ablation.data.tokens import Prepared, prepare
from transformer_ablation.parallel import hosts
from transformer_ablation.parallel.hosts import HostsError
from transformer_ablation.sweep.runs import Run
from transformer_ablation.train.checkpoint import Checkpoints

Progress = Callable[[dict[str, Any]], None]


def run_one_factory(cache: Path) -> Callable[..., str]:
    """``run_one(run, stop, progress) -> status``; data is read once for all runs."""
    parallel.set_up(cache)
    clock = parallel.CompileClock()
    data = functools.lru_cache(maxsize=2)(lambda config: prepare(config, cache))

    def run_one(run: Run, stop: threading.Event, progress: Progress) -> str:
        try:
            return execute(run, data(run.config.data), stop, progress, clock)
        finally:
            parallel.forget_programs()

    return run_one


def execute(
    run: Run,
    prepared: Prepared,
    stop: threading.Event,
    progress: Progress,
    clock: parallel.CompileClock,
) -> str:
    """Trains, or goes on training, and scores; the record says how it ended.

    Of several processes the first does so, and the others do their share of it.
    """
    progress({"phase": "compiling"})
    stop = parallel.shared(stop)
    parts = run_parts.parts(run.config, prepared)
    if not hosts.is_first():
        return run_parts.take_part(parts, stop)
    trained_as = run_twin.adopt(run, prepared, lambda text: progress({"note": text}))
    checkpoints = Checkpoints(
        run.directory / "checkpoints", run.config, prepared.vocabulary.content_hash
    )
    try:
        return run_lead.lead(run, parts, checkpoints, stop, progress, clock, trained_as)
    except Exception as error:
        if hosts.lost(error):
            raise HostsError(f"{hosts.LOST}: {error}") from error
        raise
    finally:
        checkpoints.close()
