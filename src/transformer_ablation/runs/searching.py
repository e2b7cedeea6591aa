"""How translations are searched or drawn: the options, and which go together."""

import math
import numbers
import operator
from typing import Any, NamedTuple

from transformer_ablation.config import Config, replace
from transformer_ablation.runs.errors import RunError

MOST = 1024  # translations of a line; as many as a beam may be wide
TEMPERATURES = (0.001, 1000.0)


class Sampling(NamedTuple):
    """Draws at random; see ``decode/sampling.py``."""

    seed: int
    temperature: float
    top_k: int | None


class Search(NamedTuple):
    """The config with its decoding as asked, and what else there is to ask.

    Of draws ``config.decode.beam_size`` is their number, as is ``n_best``.
    """

    config: Config
    n_best: int
    sampling: Sampling | None


def choose(
    config: Config,
    *,
    beam_size: int | None = None,
    n_best: int = 1,
    greedy: bool = False,
    sample: bool = False,
    temperature: float | None = None,
    top_k: int | None = None,
    seed: int | None = None,
    dash: str = "",
) -> Search:
    """The search that the options ask for; ``dash`` stands before their names.

    Raises:
      RunError: for options that contradict each other, or a value that may not be.
      ConfigError: for a beam size that may not be.
    """
    if greedy and sample:
        raise RunError(f"{dash}greedy and {dash}sample: give one of them")
    only_drawn = {"temperature": temperature, "top_k": top_k, "seed": seed}
    for name, value in only_drawn.items():
        if value is not None and not sample:
            raise RunError(
                f"{dash}{name}={value}: only draws at random have it; add {dash}sample"
            )
    if (greedy and beam_size not in (None, 1)) or (sample and beam_size is not None):
        raise RunError(
            f"{dash}beam_size={beam_size}: {dash}{'greedy' if greedy else 'sample'} "
            "has no beam; leave one of them out"
        )
    if greedy and n_best != 1:
        raise RunError(
            f"{dash}n_best={n_best}: {dash}greedy finds one translation; leave one of "
            "them out"
        )
    if greedy:
        beam_size = 1
    if beam_size is not None:
        beam_size = whole(dash, "beam_size", beam_size)
    if sample:
        n_best = _integer(dash, "n_best", n_best, 1, MOST)
        return Search(
            replace(config, {"decode.beam_size": n_best}),
            n_best,
            Sampling(
                _integer(dash, "seed", 0 if seed is None else seed, 0, 2**31 - 1),
                _temperature(dash, 1.0 if temperature is None else temperature),
                None if top_k is None else _integer(dash, "top_k", top_k, 1, 2**31 - 1),
            ),
        )
    if beam_size is not None:
        config = replace(config, {"decode.beam_size": beam_size})
    widest = config.decode.beam_size
    if not 1 <= (count := whole(dash, "n_best", n_best)) <= widest:
        raise RunError(
            f"{dash}n_best={n_best}: it must be from 1 to the beam size, {widest}"
        )
    return Search(config, count, None)


def _integer(dash: str, name: str, value: Any, low: int, high: int) -> int:
    if not low <= (number := whole(dash, name, value)) <= high:
        raise RunError(f"{dash}{name}={value}: it must be from {low} to {high}")
    return number


def whole(dash: str, name: str, value: Any) -> int:
    """A whole number, of Python or of an array library.

    Raises:
      RunError: for anything else, a truth value too.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise RunError(f"{dash}{name}={value!r}: it must be a whole number") from None


def _temperature(dash: str, value: Any) -> float:
    low, high = TEMPERATURES
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        raise RunError(
            f"{dash}temperature={value}: it must be from {low:g} to {high:g}; for the "
            f"most probable piece each time there is {dash}greedy"
        )
    return float(value)
