"""What a run writes about itself: config, vocabulary, record, and its meters."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments import origin
from experiments.sweep_record import new_record
from transformer_ablation import parallel
from transformer_ablation.config import to_mapping
from transformer_ablation.data.corpus import manifest_hash
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.model.accounting import parameter_counts, step_flops
from transformer_ablation.report import json_file, record
from transformer_ablation.sweep import claims
from transformer_ablation.sweep.runs import Run


def begin(
    run: Run, prepared: Prepared, steps: Sequence[int], trained_as: str | None = None
) -> None:
    """Writes the record of a run that starts, or goes on from its newest checkpoint.

    ``trained_as`` is the run whose training this one has.
    """
    config = run.config
    claims.check(run.directory)
    run.directory.mkdir(parents=True, exist_ok=True)
    json_file.write_json(run.directory / "config.json", to_mapping(config))
    prepared.vocabulary.save(run.directory / "vocabulary.model")
    # Of an attempt that failed; this one has not.
    (run.directory / "error.txt").unlink(missing_ok=True)
    per_step = step_flops(config)
    made = new_record(
        run,
        **origin.origin(),
        status="running",
        device=parallel.device_description(),
        parameters=parameter_counts(config.model, prepared.vocabulary.size),
        flops={"per_step": per_step, "training": per_step * config.train.steps},
        data={
            "manifest": prepared.corpus.manifest,
            "manifest_hash": manifest_hash(prepared.corpus.manifest),
            "vocabulary_hash": prepared.vocabulary.content_hash,
            "filters": prepared.filters,
        },
        step=max(steps, default=0),
        trained_as=trained_as,
    )
    twin = None
    if trained_as is not None:
        twin = record.read_record(run.directory.parents[1] / trained_as)
    record.restart_record(run.directory, made, lambda old: carried(made, old, twin))


def carried(
    made: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    twin: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What of a run's earlier record stays when it goes on from update ``made.step``.

    Scores of checkpoints up to there, and the processes that made these, which may
    be those of the ``twin`` whose training it took.
    """
    step, trainer = made["step"], old or twin
    now = {"from_step": step, **{key: made[key] for key in record.SESSION_KEYS}}
    before = record.sessions(trainer) if trainer else []
    before = [each for each in before if each["from_step"] < step]
    same = before and {**before[-1], "from_step": step} == now
    scores = old["scores"] if old else []
    return {
        "sessions": before if same else [*before, now],
        "scores": [s for s in scores if max(s["steps"], default=0) <= step],
    }
