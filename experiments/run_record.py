"""What a run writes about itself: config, vocabulary, record, and its meters."""

import functools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.sweep_record import packages
from transformer_ablation import RESULTS_VERSION, parallel
from transformer_ablation.config import to_mapping
from transformer_ablation.data.corpus import manifest_hash
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.model.accounting import parameter_counts, step_flops
from transformer_ablation.report import json_file, record
from transformer_ablation.sweep.runs import Run


def begin(run: Run, prepared: Prepared, steps: Sequence[int]) -> dict[str, Any]:
    """The record of a run that starts, or goes on from its newest checkpoint."""
    config = run.config
    run.directory.mkdir(parents=True, exist_ok=True)
    json_file.write_json(run.directory / "config.json", to_mapping(config))
    prepared.vocabulary.save(run.directory / "vocabulary.model")
    per_step = step_flops(config)
    made = record.new_record(
        results_version=RESULTS_VERSION,
        row=run.row,
        group=run.group,
        label=run.label,
        seed=run.seed,
        identity=run.identity,
        config=to_mapping(config),
        command=sys.argv,
        commit=commit(),
        packages=packages(),
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
    )
    before = record.read_record(run.directory) if steps else None
    if before is not None:
        for key in ("seconds", "tokens"):
            made[key] = before[key]
    record.write_record(run.directory, made)
    return made


@functools.cache
def commit() -> dict[str, Any] | None:
    """The commit of the code and whether it has been changed since, or None."""
    folder = Path(__file__).parent.parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        dirty = bool(git("status", "--porcelain", "--untracked-files=no"))
        return {"hash": git("rev-parse", "HEAD"), "dirty": dirty}
    except (OSError, subprocess.CalledProcessError):
        return None


class Meter:
    """Seconds and tokens of a run, carried over interruptions by its record."""

    def __init__(self, run: Run, made: dict[str, Any], clock: parallel.CompileClock):
        self._run, self._clock = run, clock
        self._compiled = clock.seconds
        self._seconds = {k: v or 0.0 for k, v in made["seconds"].items()}
        self._tokens = {k: v or 0 for k, v in made["tokens"].items()}

    @property
    def train_seconds(self) -> float:
        """Seconds in updates so far, compiling not counted."""
        return self._seconds["train"]

    def add_update(self, seconds: float, source_tokens: int, target_tokens: int):
        """One update; what was compiled meanwhile is taken off its time."""
        self._seconds["train"] += max(0.0, seconds - self._take_compiled())
        self._tokens["source"] += source_tokens
        self._tokens["target"] += target_tokens

    def add_evaluation(self, seconds: float) -> None:
        """One evaluation."""
        self._seconds["evaluate"] += max(0.0, seconds - self._take_compiled())

    def _take_compiled(self) -> float:
        seconds, self._compiled = (
            self._clock.seconds - self._compiled,
            (self._clock.seconds),
        )
        self._seconds["compile"] += seconds
        return seconds

    def save(self, step: int, **changes: Any) -> None:
        """Writes step, seconds, tokens and rate into the record."""
        tokens, train = self._tokens["target"], self._seconds["train"]
        record.update_record(
            self._run.directory,
            step=step,
            seconds=self._seconds,
            tokens={**self._tokens, "real": self._tokens["source"] + tokens},
            tokens_per_second=tokens / train if train else None,
            **changes,
        )

    def end(self, status: str, reason: str | None, scores: Any = None) -> str:
        """Writes how the run ended; returns the status."""
        changes = {} if scores is None else {"scores": scores.entries}
        if scores is not None:
            self.add_evaluation(scores.seconds)
        found = record.read_record(self._run.directory)
        self.save(found["step"], status=status, reason=reason, **changes)
        return status
