"""A line and its translations as plain data, and how long it may be; loads no JAX."""

from typing import NamedTuple

from transformer_ablation.config import Config
from transformer_ablation.runs.errors import LineError
from transformer_ablation.vocabulary import EOS


class Hypothesis(NamedTuple):
    """One translation of a line.

    ``log_prob`` is the natural logarithm of the model's probability of all pieces,
    the end of sentence included. ``score`` is that divided by the length penalty,
    ((5 + pieces) / 6) ** alpha by default (Wu et al. 2016, eq. 14), with alpha =
    ``decode.length_penalty_alpha``: the number by which translations are ranked.

    ``pieces``, ``ids`` and ``token_log_probs`` have one entry a piece, the end of
    sentence among them, which is lacking where the search reached the length cap:
    then ``finished`` is False. ``token_log_probs`` are of one pass over the whole
    sentence; their sum is ``log_prob`` up to rounding. None where not asked for.
    """

    text: str
    pieces: list[str]
    ids: list[int]
    score: float
    log_prob: float
    token_log_probs: list[float] | None
    finished: bool


class Translated(NamedTuple):
    """A line and its translations, best first; draws in the order drawn.

    A blank line has none. A search may find fewer than were asked for.
    """

    source: str
    translations: list[Hypothesis]

    @property
    def text(self) -> str:
        """The first translation; blank without one."""
        return self.translations[0].text if self.translations else ""


def best_target(line: Translated) -> tuple[list[int], str]:
    """Ids of the first translation with an end, and in words how it came about."""
    best, note = line.translations[0], "The target is the run's own translation."
    if best.finished:
        return best.ids, note
    return [*best.ids, EOS], f"{note} It came to no end, and was cut."


def longest_source(config: Config) -> int | None:
    """How many ids a source may have, the end included; None for any number."""
    if config.model.positions != "learned":
        return None
    return config.model.max_length - config.decode.extra_length


def check_length(longest: int | None, extra: int, number: int, length: int) -> None:
    """Refuses a line of more ids than ``longest``, which leaves room for ``extra``.

    Raises:
      LineError: naming its number.
    """
    if longest is not None and length > longest:
        raise LineError(
            f"line {number}: is {length} pieces long with the end of sentence, but "
            f"model.max_length = {longest + extra} learned positions "
            f"hold {longest} and {extra} more of the translation; "
            "shorten the line or lower decode.extra_length"
        )
