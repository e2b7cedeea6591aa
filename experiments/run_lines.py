"""A run and its scores as lines for people."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.sweep.plan import duration


def summary(directory: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """The run as one JSON object; what is not known is None."""
    names = "row group label seed reason step tokens_per_second parameters".split()
    return {
        **{name: record[name] for name in names},
        "state": record["status"],
        "steps": record["config"]["train"]["steps"],
        "seconds": record["seconds"],
        "scores": record["scores"],
        "config": record["config"],
        "directory": str(directory),
    }


def as_text(found: Mapping[str, Any]) -> str:
    """The run and its scores for people."""
    spent = sum(value or 0 for value in found["seconds"].values())
    total = (found["parameters"] or {}).get("total")
    step = "-" if found["step"] is None else f"{found['step']:,}"
    lines = [
        f"{found['row']} seed {found['seed']}: {found['state']}"
        + (f" ({found['reason']})" if found["reason"] else ""),
        f"update {step} of {found['steps']:,}, {duration(spent)}"
        + ("" if total is None else f", {total:,} parameters"),
    ]
    for score in found["scores"]:
        steps, n = ", ".join(map(str, score["steps"])), score["unfinished"]
        lines.append(
            f"{score['split']} {score['metric']} {score['value']:.2f} "
            f"({score['sentences']:,} sentences, checkpoint {steps})"
            + (f"; {n:,} hypotheses hit the length cap" if n else "")
        )
    return "\n".join([*lines, f"in {found['directory']}"])
