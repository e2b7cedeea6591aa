"""Scores as lines for people."""

from collections.abc import Sequence
from typing import Any

from transformer_ablation.report.columns import counted


def as_lines(entries: Sequence[dict[str, Any]]) -> str:
    """A line a score, for people."""
    return "\n".join(map(_line, entries))


def _line(score: dict[str, Any]) -> str:
    steps, cut = score["steps"], score["unfinished"]
    which = f"average of {len(steps)} checkpoints" if len(steps) > 1 else "checkpoint"
    text = (
        f"{score['split']} {score['metric']} {score['value']:.2f} "
        f"({counted(score['sentences'], 'sentence')}, {which} "
        f"{', '.join(map(str, steps))})"
    )
    told = [
        text,
        cut and f"{counted(cut, 'hypothesis', 'hypotheses')} hit the length cap",
        score["signature"],
    ]
    return "; ".join(filter(None, told))
