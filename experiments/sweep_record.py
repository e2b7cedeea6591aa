"""What a sweep writes about itself and about runs that fail before they can."""

import dataclasses
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import run_board
from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import to_mapping
from transformer_ablation.model import accounting
from transformer_ablation.report import record
from transformer_ablation.sweep.file import SweepFile
from transformer_ablation.sweep.rows import ExpandedRow
from transformer_ablation.sweep.runs import Run

PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "sacrebleu", "sentencepiece")


def write(
    workdir: Path,
    previous: Mapping[str, Any] | None,
    sweep_file: SweepFile,
    expanded: Sequence[ExpandedRow],
    seeds: Sequence[int],
) -> None:
    """``sweep.json``; rows and seeds run there earlier stay in it."""
    sweep = merged(previous, sweep_file, expanded, seeds)
    if sweep is not None:
        record.write_sweep(workdir, sweep)
        run_board.write_sweep(workdir, sweep)


def merged(
    previous: Mapping[str, Any] | None,
    sweep_file: SweepFile,
    expanded: Sequence[ExpandedRow],
    seeds: Sequence[int],
) -> dict[str, Any] | None:
    """What ``sweep.json`` is to hold, or None where it holds that already."""
    earlier = {} if previous is None else {r["name"]: r for r in previous["rows"]}
    found = {
        item.row.name: {
            **_row(item),
            "seeds": sorted({*seeds, *_seeds(previous, earlier.get(item.row.name))}),
        }
        for item in expanded
    }
    order = [row.name for row in sweep_file.rows]
    names = sorted(
        {**earlier, **found},
        key=lambda name: order.index(name) if name in order else len(order),
    )
    sweep = {
        "results_version": RESULTS_VERSION,
        "title": sweep_file.title,
        "config": to_mapping(sweep_file.base),
        "rows": [found.get(name) or earlier[name] for name in names],
        "seeds": sorted({*seeds, *(previous["seeds"] if previous else ())}),
        "packages": packages(),
    }
    return None if sweep == previous else sweep


def _seeds(previous: Mapping[str, Any] | None, row: Mapping[str, Any] | None) -> list:
    """Seeds that a row was asked for earlier."""
    return row.get("seeds", previous["seeds"]) if previous and row else []


def _row(item: ExpandedRow) -> dict[str, Any]:
    paper, config = item.paper, item.config
    size, per_step = config.data.vocabulary_size, accounting.step_flops(config)
    return {
        "name": item.row.name,
        "group": item.row.group,
        "label": item.row.label,
        "changes": item.changed,
        "paper": None if paper is None else dataclasses.asdict(paper),
        "parameters": accounting.parameter_counts(config.model, size),
        "paper_counts": accounting.paper_counts(config.model),
        "flops": {"per_step": per_step, "training": per_step * config.train.steps},
        "config": to_mapping(config),
    }


def packages() -> dict[str, str | None]:
    """Versions of what can move a number; None for what is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def new_record(run: Run, **known: Any) -> dict[str, Any]:
    """A record of a run with what is known before it starts, and ``known``."""
    return record.new_record(
        results_version=RESULTS_VERSION,
        row=run.row,
        group=run.group,
        label=run.label,
        seed=run.seed,
        identity=run.identity,
        config=to_mapping(run.config),
        packages=packages(),
        **known,
    )


def mark_stopped(run: Run, status: str, reason: str) -> None:
    """The run's record says how it ended; one is made where there is none."""
    found = record.read_record(run.directory) or new_record(run)
    record.write_record(run.directory, {**found, "status": status, "reason": reason})
    if status == "failed":
        run_board.mark_failed(run)
