"""The clocks and counters of a run, kept in its record."""

from typing import Any

from transformer_ablation import parallel
from transformer_ablation.report import record
from transformer_ablation.sweep import claims
from transformer_ablation.sweep.runs import Run


class Meter:
    """Seconds and tokens of a run, carried over interruptions by its record."""

    def __init__(self, run: Run, notes: dict[str, Any], clock: parallel.CompileClock):
        """``notes`` are those of the checkpoint that the run goes on from, if any."""
        self._run, self._clock = run, clock
        self._compiled = clock.seconds
        nothing = {"compile": 0.0, "train": 0.0, "evaluate": 0.0}
        self._seconds = dict(notes.get("seconds", nothing))
        self._tokens = dict(notes.get("tokens", {"source": 0, "target": 0}))
        self._devices = parallel.device_count() * parallel.processes()[1]
        self._device_seconds = notes.get("device_seconds", 0.0)

    @property
    def notes(self) -> dict[str, Any]:
        """What a checkpoint needs for a run that goes on from it.

        Raises:
          ClaimLost: another process has the run; nothing may be saved.
        """
        claims.check(self._run.directory)
        return {
            "seconds": dict(self._seconds),
            "tokens": dict(self._tokens),
            "device_seconds": self._device_seconds,
        }

    @property
    def train_seconds(self) -> float:
        """Seconds in updates so far, compiling not counted."""
        return self._seconds["train"]

    def compiling(self) -> float:
        """Seconds of compiling of this process so far."""
        return self._clock.seconds

    def add_update(
        self, seconds: float, compiled: float, source_tokens: int, target_tokens: int
    ) -> None:
        """One update; what was compiled meanwhile is taken off its time."""
        self._take_compiled()
        training = max(0.0, seconds - compiled)
        self._seconds["train"] += training
        self._device_seconds += training * self._devices
        self._tokens["source"] += source_tokens
        self._tokens["target"] += target_tokens

    def add_evaluation(self, seconds: float) -> None:
        """One evaluation."""
        self._seconds["evaluate"] += max(0.0, seconds - self._take_compiled())

    def _take_compiled(self) -> float:
        seconds = self._clock.seconds - self._compiled
        self._compiled += seconds
        self._seconds["compile"] += seconds
        self._device_seconds += seconds * self._devices
        return seconds

    def save(self, **changes: Any) -> None:
        """Writes seconds, tokens, rate and other changes into the record."""
        claims.check(self._run.directory)
        tokens, train = self._tokens["target"], self._seconds["train"]
        record.update_record(
            self._run.directory,
            seconds=self._seconds,
            # Of training and compiling: other sessions may have had more devices.
            device=parallel.device_description() | {"seconds": self._device_seconds},
            tokens={**self._tokens, "real": self._tokens["source"] + tokens},
            tokens_per_second=tokens / train if train else None,
            **changes,
        )

    def end(self, status: str, reason: str | None, scores: Any = None) -> str:
        """Writes how the run ended; returns the status."""
        entries = []
        if scores is not None:
            self.add_evaluation(scores.seconds)
            entries = scores.entries
        self.save(status=status, reason=reason, added_scores=entries)
        return status
