"""Length penalties of the search (section 6.1; Wu et al. 2016, eq. 14)."""

from typing import Any


def length_penalty(length: Any, alpha: float, kind: str = "wu2016") -> Any:
    """What a log-probability is divided by; ``length`` counts the end of sentence.

    "wu2016" is ((5 + length) / 6) ** alpha, the paper's; "power" is length ** alpha,
    which punishes short outputs far more at the same alpha.

    Raises:
      ValueError: for another ``kind``.
    """
    if kind == "wu2016":
        return ((5.0 + length) / 6.0) ** alpha
    if kind == "power":
        return (1.0 * length) ** alpha
    raise ValueError(f"unknown length penalty {kind!r}")


def best_reachable_score(
    log_probability: Any, length: Any, longest: Any, alpha: float, kind: str = "wu2016"
) -> Any:
    """The highest score a live hypothesis can still end with.

    Every further token adds at most 0 to its log-probability, which is at most
    0, so the bound divides it by the largest penalty on the way: that of the
    ``longest`` length for alpha > 0, that of the next ``length`` for alpha < 0.
    """
    reached = longest if alpha > 0 else length
    return log_probability / length_penalty(reached, alpha, kind)
