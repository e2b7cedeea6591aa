"""What a field may hold, and the one error of what may not be."""

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any


class ConfigError(ValueError):
    """A config that cannot be run; the message has one line a fault."""

    def __init__(self, problems: str | Iterable[str]):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclasses.dataclass(frozen=True)
class Rule:
    """What one field may hold: ``check`` returns True for an allowed value."""

    types: tuple[type, ...]
    allowed: str
    check: Callable[[Any], bool]


def _field(types: type | tuple[type, ...], allowed: str, check: Callable) -> Any:
    types = types if isinstance(types, tuple) else (types,)
    return dataclasses.field(metadata={"rule": Rule(types, allowed, check)})


# More than any size or count can be; products of two still fit a float.
LARGEST = 10**15


def integer(minimum: int, maximum: int | None = None, optional: bool = False) -> Any:
    """A whole number from ``minimum`` to ``maximum`` (inclusive)."""
    upper = LARGEST if maximum is None else maximum
    allowed = f"a whole number of at least {minimum}"
    if maximum is not None:
        allowed = f"a whole number from {minimum} to {maximum}"
    if optional:
        allowed += ", or None"
    types = (int, type(None)) if optional else (int,)
    return _field(types, allowed, lambda x: x is None or minimum <= x <= upper)


def real(
    minimum: float, maximum: float, includes: str = "[]", optional: bool = False
) -> Any:
    """A finite number of an interval; ``includes`` gives its two brackets."""

    def check(x: Any) -> bool:
        if x is None:
            return True
        try:
            x = float(x)
        except OverflowError:  # a whole number beyond the largest float
            return False
        low = x >= minimum if includes[0] == "[" else x > minimum
        high = x <= maximum if includes[1] == "]" else x < maximum
        return math.isfinite(x) and low and high

    allowed = f"a number in {includes[0]}{minimum:g}, {maximum:g}{includes[1]}"
    if math.isinf(maximum):
        allowed = f"a finite number {'>=' if includes[0] == '[' else '>'} {minimum:g}"
        if math.isinf(minimum):
            allowed = "a finite number"
    if optional:
        allowed += ", or None"
    types = (float, int, type(None)) if optional else (float, int)
    return _field(types, allowed, check)


def choice(*values: str) -> Any:
    """One of a few words."""
    return _field(str, "one of " + ", ".join(values), lambda x: x in values)


def flag() -> Any:
    """True or False."""
    return _field(bool, "True or False", lambda x: True)


def text(optional: bool = False) -> Any:
    """Any non-empty string."""
    types = (str, type(None)) if optional else (str,)
    allowed = "a non-empty string" + (", or None" if optional else "")
    return _field(types, allowed, lambda x: x is None or x != "")
