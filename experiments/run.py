"""One run from data to record: what a worker of a sweep does for each row."""

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import (
    profiling,
    run_hooks,
    run_parts,
    run_record,
    run_scores,
    run_sharing,
)
from experiments.run_meter import Meter
from transformer_ablation import parallel
from transformer_ablation.data.tokens import Prepared, prepare
from transformer_ablation.parallel import hosts
from transformer_ablation.parallel.hosts import HostsError
from transformer_ablation.report.metrics import MetricWriter, last_metrics
from transformer_ablation.sweep import stopping
from transformer_ablation.sweep.runs import Run
from transformer_ablation.train.checkpoint import Checkpoints
from transformer_ablation.train.loop import Diverged

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
    checkpoints = Checkpoints(
        run.directory / "checkpoints", run.config, prepared.vocabulary.content_hash
    )
    try:
        return _lead(run, parts, checkpoints, stop, progress, clock)
    except Exception as error:
        if hosts.lost(error):
            raise HostsError(f"{hosts.LOST}: {error}") from error
        raise
    finally:
        checkpoints.close()


def _note(progress: Progress) -> Callable[[str], None]:
    return lambda text: progress({"note": text})


def _lead(run, parts, checkpoints, stop, progress, clock) -> str:
    config = run.config
    state = run_sharing.first_state(parts.model, config, checkpoints, _note(progress))
    steps = checkpoints.steps()
    run_record.begin(run, parts.prepared, steps)
    meter = Meter(run, checkpoints.notes(steps[-1]) if steps else {}, clock)
    try:
        state = _train(run, parts, state, stop, checkpoints, progress, meter)
    except Diverged as error:
        meter.save(step=error.step)
        return meter.end("diverged", str(error))
    if int(state.step):
        checkpoints.save(state, meter.notes)
        checkpoints.wait()
    meter.save(step=int(state.step))
    if int(state.step) < config.train.steps:
        what = f"stopped after update {int(state.step)}"
        return meter.end("preempted", stopping.reason(stop, what))
    progress({"step": int(state.step), "steps": config.train.steps})
    averaged, steps = run_scores.averaged(parts, checkpoints)
    scored = parts.scored(run_sharing.shared_params(averaged), steps)
    scores = run_scores.score_run(run, scored, progress, stop)
    if scores is None:
        return meter.end("preempted", stopping.reason(stop, "stopped while scoring"))
    return meter.end("finished", None, scores)


def _train(run, parts, state, stop, checkpoints, progress, meter):
    """The updates that are left; hooks log, evaluate and save."""
    config, start = run.config, int(state.step)

    def validate(state: Any) -> Any:
        return run_hooks.validated(config, parts.prepared, parts.scorer, state, stop)

    with MetricWriter(run.directory, resume_step=start or None) as writer:
        hooks = run_hooks.hooks(config, validate, checkpoints, writer, progress, meter)
        seen = {(e["step"], e["tag"]) for e in last_metrics(run.directory)}
        missed = start > 0 and (start, run_hooks.VALIDATED) not in seen
        update = profiling.traced(parts.update(), start, run.directory, _note(progress))
        return run_parts.train_on(parts, state, update, hooks, hooks[1], missed, stop)
