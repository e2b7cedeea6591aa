"""What a run writes about itself: config, vocabulary, record, and its meters."""

import functools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.sweep_record import new_record
from transformer_ablation import parallel
from transformer_ablation.config import to_mapping
from transformer_ablation.data.corpus import manifest_hash
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.model.accounting import parameter_counts, step_flops
from transformer_ablation.report import json_file, record
from transformer_ablation.sweep.runs import Run


def begin(run: Run, prepared: Prepared, steps: Sequence[int]) -> None:
    """Writes the record of a run that starts, or goes on from its newest checkpoint."""
    config = run.config
    run.directory.mkdir(parents=True, exist_ok=True)
    json_file.write_json(run.directory / "config.json", to_mapping(config))
    prepared.vocabulary.save(run.directory / "vocabulary.model")
    # Of an attempt that failed; this one has not.
    (run.directory / "error.txt").unlink(missing_ok=True)
    per_step = step_flops(config)
    made = new_record(
        run,
        command=["python", *sys.orig_argv[1:]],
        commit=commit(),
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
    record.write_record(run.directory, made)


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
