"""``plan --measure``: times of updates from those of two rows on this device."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from experiments.bench_subject import make_subject
from experiments.bench_training import measure_shape
from experiments.telling import tell
from transformer_ablation import parallel
from transformer_ablation.model.accounting import step_flops
from transformer_ablation.sweep.rows import ExpandedRow

# The least time that updates of a row are measured for.
SECONDS = 3.0


@dataclasses.dataclass(frozen=True)
class Line:
    """The line through (FLOPs, seconds) of the smallest and the largest update.

    An update has a cost that grows with its size and one that does not. Where the
    larger update was not the slower one, only the larger is relied on.
    """

    small: tuple[int, float]
    large: tuple[int, float]
    text: str

    def seconds(self, flops: int) -> float:
        """Of an update of so many operations."""
        (less, fast), (more, slow) = self.small, self.large
        slope = (slow - fast) / (more - less) if more > less else 0.0
        if slope <= 0.0 or fast < slope * less:
            return slow * flops / more
        return fast + slope * (flops - less)


def measure(expanded: Sequence[ExpandedRow], cache: Path) -> Line:
    """Updates of full batches of the two rows; data is prepared where it must be."""
    parallel.set_up(cache)
    order = sorted(expanded, key=lambda item: step_flops(item.config))
    ends = list({item.row.name: item for item in (order[0], order[-1])}.values())
    found = [_point(item, cache) for item in ends]
    device = parallel.device_description()
    told = " and ".join(
        f"{point[1]:.3g} s an update of {item.row.name}"
        for item, point in zip(ends, found, strict=True)
    )
    text = f"measured on {device['count']} x {device['kind']} ({told}; others by FLOPs)"
    return Line(found[0], found[-1], text)


def _point(item: ExpandedRow, cache: Path) -> tuple[int, float]:
    """Operations as the plan counts them, and the median time of the usual shape."""
    tell(f"measuring updates of {item.row.name}")
    try:
        subject = make_subject(item.config, cache, SECONDS, lambda text: None)
        found = measure_shape(subject, subject.usual)
    finally:
        parallel.forget_programs()
    return step_flops(item.config), found["seconds"]["median"]
