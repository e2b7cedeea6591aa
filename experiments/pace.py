"""What is under way of a longer work, and about how long the rest of it takes."""

import math
import time
from collections.abc import Callable

from experiments import telling

# Seconds between two lines about one part.
BETWEEN = 20.0


def span(seconds: float) -> str:
    """A time in words, rounded up."""
    if seconds <= 90:
        return f"{max(10, 10 * math.ceil(seconds / 10))} seconds"
    if seconds <= 90 * 60:
        return f"{math.ceil(seconds / 60)} minutes"
    return f"{math.ceil(seconds / 3600):,} hours"


def to_go(seconds: float | None) -> str:
    """What is appended to the name of a part; nothing where it is not known."""
    return "" if seconds is None else f": about {span(seconds)} to go"


class Pace:
    """Steps of about equal length, told of now and then with what is left."""

    def __init__(
        self,
        steps: int,
        tell: Callable[[str], None] = telling.tell,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._steps, self._tell, self._clock = steps, tell, clock
        self._done, self._name = 0, ""
        self._start = self._told = clock()

    def begin(self, name: str) -> None:
        """The next step is of this part."""
        self._name = name
        self._say()

    def done(self) -> None:
        """One step more is done."""
        self._done += 1
        if self._done < self._steps and self._clock() - self._told >= BETWEEN:
            self._say()

    def _say(self) -> None:
        self._told = self._clock()
        spent, left = self._told - self._start, self._steps - self._done
        rest = spent / self._done * left if self._done else None
        self._tell(self._name + to_go(rest))
