"""Learning curves of all runs of a workdir, thinned for drawing."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.report.metrics import MetricsError, read_metrics
from transformer_ablation.report.record import run_directory
from transformer_ablation.report.selection import decoded_as_configured

BLEU = "validation/bleu"
NAMES = {
    "train/loss": "training loss",
    "validation/perplexity": "validation perplexity",
    BLEU: "validation BLEU",
}
TAGS = tuple(NAMES)
MOST_POINTS = 240  # of one curve
FIGURES = 5  # significant ones of a drawn value

# A point is (update, value), with None where the value was not finite.
Point = tuple[int, float | None]


@dataclasses.dataclass(frozen=True)
class Curves:
    """Of one run, by tag; ``fault`` says why there are none."""

    row: str
    seed: int
    points: Mapping[str, Sequence[Point]]
    thinned: bool
    fault: str | None = None


def curve_names(metric: str) -> dict[str, str]:
    """By tag; BLEU is called sacreBLEU, as it is, beside a table of the paper's."""
    return NAMES if metric == "bleu" else {**NAMES, BLEU: "validation sacreBLEU"}


def read_curves(
    workdir: Path, records: Iterable[Mapping[str, Any]], split: str
) -> list[Curves]:
    """The curves of every run that has a record.

    BLEU is not measured in training: its points are sacreBLEU of single checkpoints
    in the record, on ``split`` and decoded as the run's config says, beside what
    ``metrics.jsonl`` may have.
    """
    return [_curves(workdir, record, split) for record in records]


def _curves(workdir: Path, record: Mapping[str, Any], split: str) -> Curves:
    row, seed = record["row"], record["seed"]
    try:
        entries = read_metrics(run_directory(workdir, row, seed), TAGS)
    except (MetricsError, OSError) as error:
        return Curves(row, seed, {}, False, str(error))
    found: dict[str, dict[int, float | None]] = {}
    for entry in entries:
        value = entry["value"]
        known = value is not None and math.isfinite(value)
        found.setdefault(entry["tag"], {})[entry["step"]] = value if known else None
    for score in record["scores"]:
        if _is_bleu_point(record, score, split):
            found.setdefault(BLEU, {})[score["steps"][0]] = score["value"]
    whole = {tag: sorted(points.items()) for tag, points in found.items()}
    drawn = {tag: thinned(points) for tag, points in whole.items()}
    fewer = any(len(drawn[tag]) < len(points) for tag, points in whole.items())
    rounded = {tag: [(s, _rounded(v)) for s, v in p] for tag, p in drawn.items()}
    return Curves(row, seed, rounded, fewer)


def _is_bleu_point(
    record: Mapping[str, Any], score: Mapping[str, Any], split: str
) -> bool:
    if (score["split"], score["metric"]) != (split, "bleu"):
        return False
    single = len(score["steps"]) == 1 and score["value"] is not None
    return single and decoded_as_configured(record["config"]["decode"], score)


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most ``most`` of the points, without losing a peak.

    The first and the last are kept and, of each of equal stretches of updates, the
    least and the greatest value and one that is not finite.
    """
    if len(points) <= most:
        return list(points)
    first, last = points[0][0], points[-1][0]
    stretches = (most - 2) // 3
    width = (last - first + 1) / stretches
    kept = {points[0], points[-1]}
    for _, group in itertools.groupby(points, lambda p: int((p[0] - first) / width)):
        some = list(group)
        known = [p for p in some if p[1] is not None]
        kept |= set([p for p in some if p[1] is None][:1])
        if known:
            kept |= {min(known, key=_value), max(known, key=_value)}
    return sorted(kept, key=lambda p: p[0])


def _value(point: Point) -> float:
    return math.nan if point[1] is None else point[1]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{FIGURES}g}")
