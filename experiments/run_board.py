"""What TensorBoard is told of a run besides its curves: fields, scores, its end."""

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.config import Config, DataConfig, to_mapping
from transformer_ablation.report.metrics import MetricWriter, Session, last_metrics
from transformer_ablation.sweep.runs import Run

# Metrics of a record as words of a tag.
WORDS = {"ppl": "perplexity"}


def session(run: Run) -> Session:
    """The run as the HParams tab lists it."""
    return Session(run.row, run.group, run.seed, to_mapping(run.config))


def write_sweep(workdir: Path, sweep: Mapping[str, Any]) -> None:
    """Columns and charts of a sweep; ``sweep`` is what ``sweep.json`` holds."""
    # tensorboardX takes a while to import, so whoever plans or lists does without it.
    from transformer_ablation.report import board

    board.write_sweep(workdir, sweep)


def mark_failed(run: Run) -> None:
    """The run has failed; it may not have begun, nor its process be alive.

    Its record says so already: without room for more, TensorBoard does not hear of it.
    """
    from transformer_ablation.report import board

    with contextlib.suppress(OSError):
        board.write_failure(run.directory, session(run))


def write_scores(
    writer: MetricWriter,
    config: Config,
    scores: Iterable[Mapping[str, Any]],
    seconds: float,
) -> None:
    """The scores that a run ends with, at its last update.

    A run that was killed before its record had them may have written them already.
    """
    step, values = config.train.steps, final_values(scores, config.data)
    seen = {(e["step"], e["tag"]) for e in last_metrics(writer.directory)}
    left = {tag: x for tag, x in values.items() if (step, tag) not in seen}
    writer.write(step, left, seconds)


def final_values(
    scores: Iterable[Mapping[str, Any]], data: DataConfig
) -> dict[str, float]:
    """The scores that a run ends with, by tag.

    Tags say ``test`` whatever the name of the split, so any two sweeps compare.
    """
    uses = {data.test_split: "test", data.validation_split: "validation"}
    return {
        f"{uses[s['split']]}/final_{WORDS.get(s['metric'], s['metric'])}": s["value"]
        for s in scores
    }
