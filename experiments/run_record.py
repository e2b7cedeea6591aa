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
from transformer_ablation.sweep.file import MODULE
from transformer_ablation.sweep.runs import Run

CODE = ("src", "configs", "experiments")


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
    """The commit of the code that runs, with the config file that was loaded."""
    config_file = getattr(sys.modules.get(MODULE), "__file__", None)
    return commit_of(Path(__file__).parent.parent, config_file)


def commit_of(folder: Path, config_file: str | None) -> dict[str, Any] | None:
    """The commit of a checkout and whether what runs differs from it, or None.

    It differs where a file of the commit has been changed, and where the commit lacks
    a Python file of the code or the config file: none of them could be had back.
    """

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def lacks(path: str) -> bool:
        try:
            git("ls-files", "--error-unmatch", "--", path)
        except subprocess.CalledProcessError:
            return True
        return False

    code = [f"{name}/*.py" for name in CODE]
    try:
        dirty = (
            bool(git("status", "--porcelain", "--untracked-files=no"))
            or bool(git("ls-files", "--others", "--", *code))
            or (config_file is not None and lacks(config_file))
        )
        return {"hash": git("rev-parse", "HEAD"), "dirty": dirty}
    except (OSError, subprocess.CalledProcessError):
        return None
