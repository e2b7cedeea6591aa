"""What the first process of a run does: train, log, save, score, keep the record."""

from collections.abc import Callable
from typing import Any

from experiments import (
    profiling,
    run_board,
    run_hooks,
    run_log,
    run_looks,
    run_parts,
    run_record,
    run_scores,
    run_sharing,
)
from experiments.run_meter import Meter
from transformer_ablation.report.metrics import MetricWriter, last_metrics
from transformer_ablation.sweep import stopping
from transformer_ablation.train.loop import Diverged


def lead(run, parts, checkpoints, stop, progress, clock, trained_as=None) -> str:
    """Everything that is left of the run; how it ended."""
    config = run.config
    state = run_sharing.first_state(parts.model, config, checkpoints, _note(progress))
    steps = checkpoints.steps()
    run_record.begin(run, parts.prepared, steps, trained_as)
    meter = Meter(run, checkpoints.notes(steps[-1]) if steps else {}, clock)
    start, session = int(state.step), run_board.session(run)
    with MetricWriter(run.directory, start or None, session) as writer:
        given = run, parts, state, stop, checkpoints, progress, meter, writer
        return _train_and_score(*given)


def _train_and_score(
    run, parts, state, stop, checkpoints, progress, meter, writer
) -> str:
    """What is left of the run; how it ended."""
    config = run.config
    try:
        state = _train(run, parts, state, stop, checkpoints, progress, meter, writer)
    except Diverged as error:
        meter.save(step=error.step)
        writer.end("diverged")
        return meter.end("diverged", str(error))
    writer.flush()
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
    run_board.write_scores(writer, config, scores.entries, meter.train_seconds)
    writer.end("finished")
    return meter.end("finished", None, scores)


def _train(run, parts, state, stop, checkpoints, progress, meter, writer):
    """The updates that are left; hooks log, evaluate and save."""
    config, start, note = run.config, int(state.step), _note(progress)

    def validate(state: Any) -> Any:
        return run_hooks.validated(config, parts.prepared, parts.scorer, state, stop)

    look = run_looks.looks(parts, writer)
    given = checkpoints, writer, progress, meter, look
    hooks = run_hooks.hooks(config, validate, *given)
    seen = {(e["step"], e["tag"]) for e in last_metrics(run.directory)}
    last = max((step for step, _ in seen), default=0)
    if (lacking := run_log.lack(last, start, config.train.log_every_steps)) is not None:
        note(lacking)
    missed = start > 0 and (start, run_hooks.VALIDATED) not in seen
    update = profiling.traced(parts.update(), start, run.directory, note)
    given = parts, state, update, hooks, hooks[1], missed, stop
    return run_parts.train_on(*given, meter.compiling)


def _note(progress: Callable[[dict[str, Any]], None]) -> Callable[[str], None]:
    return lambda text: progress({"note": text})
