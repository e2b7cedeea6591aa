"""One run from data to record: what a worker of a sweep does for each row."""

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments import run_hooks, run_record, run_scores
from experiments.building import build_model, train_batches
from experiments.run_meter import Meter
from experiments.scoring import Scored
from experiments.telling import tell
from transformer_ablation import parallel
from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared, prepare
from transformer_ablation.evaluate.perplexity import make_scorer
from transformer_ablation.report.metrics import MetricWriter
from transformer_ablation.sweep.runs import Run
from transformer_ablation.train import step
from transformer_ablation.train.checkpoint import Checkpoints
from transformer_ablation.train.loop import Diverged, train

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
    """Trains, or goes on training, and scores; the record says how it ended."""
    config = run.config
    progress({"phase": "compiling"})
    model = build_model(config, prepared.vocabulary.size)
    scorer = make_scorer(model)
    checkpoints = Checkpoints(
        run.directory / "checkpoints", config, prepared.vocabulary.content_hash
    )
    try:
        state = _state(model, config, checkpoints)
        steps = checkpoints.steps()
        run_record.begin(run, prepared, steps)
        meter = Meter(run, checkpoints.notes(steps[-1]) if steps else {}, clock)
        try:
            tools = scorer, checkpoints, progress, meter
            state = _train(run, prepared, model, state, stop, *tools)
        except Diverged as error:
            meter.save(step=error.step)
            return meter.end("diverged", str(error))
        checkpoints.save(state, meter.notes)
        checkpoints.wait()
        meter.save(step=int(state.step))
        if int(state.step) < config.train.steps:
            return meter.end("preempted", f"stopped after update {int(state.step)}")
        progress({"step": int(state.step), "steps": config.train.steps})
        trained = run_scores.averaged_params(model, config, checkpoints)
        scored = Scored(config, prepared, model, scorer, *trained)
        scores = run_scores.score_run(run, scored, progress, stop)
        if scores is None:
            return meter.end("preempted", "stopped while scoring")
        return meter.end("finished", None, scores)
    finally:
        checkpoints.close()


def _state(model: Any, config: Config, checkpoints: Checkpoints) -> step.TrainState:
    """The newest intact checkpoint on every device, or a fresh state."""
    found = checkpoints.restore_intact(step.state_shapes(model, config), tell)
    if found is None:
        return step.create_state(model, config)
    return parallel.replicate(found)


def _train(run, prepared, model, state, stop, scorer, checkpoints, progress, meter):
    """The updates that are left; hooks log, evaluate and save."""
    config, start = run.config, int(state.step)
    own = (parallel.device_count(), *parallel.processes())
    with MetricWriter(run.directory, resume_step=start or None) as writer:
        return train(
            state,
            step.make_update(model, config),
            train_batches(config, prepared).iterate(start, config.train.steps, *own),
            key=step.purpose_key(config.train.seed, step.DROPOUT),
            rates_at=lambda number: step.rates_at(config, number),
            hooks=run_hooks.hooks(
                config, prepared, scorer, checkpoints, writer, progress, meter
            ),
            stop=stop,
        )
