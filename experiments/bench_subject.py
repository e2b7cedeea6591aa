"""What ``experiments.bench`` measures: a row's model, data, and a state in training."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_ablation import parallel
from transformer_ablation.benchmark import timing, work
from transformer_ablation.benchmark.updates import Updater
from transformer_ablation.config import Config
from transformer_ablation.data.batches import TrainBatches
from transformer_ablation.data.tokens import Prepared, prepare
from transformer_ablation.runs.building import build_model, train_batches


class Programs:
    """Seconds of compiling, and of the whole first call, program by program."""

    def __init__(self) -> None:
        self._clock = parallel.CompileClock()
        self.found: list[dict[str, Any]] = []

    def first(self, program: str, call: Callable[[], object]) -> None:
        """Makes the first call of a program."""
        before = self._clock.seconds
        whole = timing.timed(call)
        compiled = self._clock.seconds - before
        self.found.append(
            {"program": program, "seconds": compiled, "first_call_seconds": whole}
        )


class Subject(NamedTuple):
    """``seconds`` is the least time of a measurement; ``say`` tells what is done."""

    config: Config
    prepared: Prepared
    model: Any
    batches: TrainBatches
    samples: Sequence[work.Sample]
    updater: Updater
    programs: Programs
    seconds: float
    say: Callable[[str], None]

    @property
    def usual(self) -> work.Sample:
        """The shape that most updates have."""
        return max(self.samples, key=lambda sample: sample.updates_per_epoch)


def make_subject(
    config: Config, cache: Path, seconds: float, say: Callable[[str], None]
) -> Subject:
    """Data is prepared where it is not in the cache yet; nothing is timed."""
    prepared = prepare(config.data, cache)
    batches = train_batches(config, prepared)
    model = build_model(config, prepared.vocabulary.size)
    return Subject(
        config,
        prepared,
        model,
        batches,
        work.samples(batches, parallel.device_count()),
        Updater(model, config),
        Programs(),
        seconds,
        say,
    )
