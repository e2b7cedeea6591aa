"""How a launch of a sweep ended."""

import dataclasses

from transformer_ablation.sweep import stopping
from transformer_ablation.sweep.plan import counted
from transformer_ablation.sweep.runs import FINAL


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How every run of a launch ended; ``reasons`` of those that failed."""

    states: dict[str, str]
    reasons: dict[str, str]
    interrupted: bool

    @property
    def left(self) -> int:
        """Runs that the same command would run again."""
        return sum(state not in FINAL for state in self.states.values())

    @property
    def diverged(self) -> int:
        """Runs that ended without a result and would end so again."""
        return sum(state == "diverged" for state in self.states.values())

    @property
    def exit_code(self) -> int:
        """0 where every run has its result; one of its own where it was stopped."""
        if self.complete:
            return 0
        return stopping.REQUEUE if self.interrupted and self.left else 1

    @property
    def complete(self) -> bool:
        """Whether every run has its result."""
        return not self.left and not self.diverged

    def message(self) -> str:
        """What is missing, why, and what to do."""
        lines = [f"{name} failed: {why}" for name, why in self.reasons.items()]
        word = "stopped" if self.interrupted else "not complete"
        runs = counted(len(self.states), "run")
        have = "has" if self.left == 1 else "have"
        if self.left:
            lines.append(
                f"{word}: {self.left} of {runs} {have} no result yet; "
                "run the same command again to go on, finished runs are kept"
            )
        if self.diverged:
            lines.append(
                f"{self.diverged} of {runs} diverged and would do so "
                "again; the table says at which update"
            )
        return "\n".join(lines)
