"""What is known of each head, and of the heads of a kind together."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# A head is one of a place that half of its weight or more is on.
PLACES = ("diagonal", "previous", "next", "first", "last")
HALF, ELSEWHERE = 0.5, "elsewhere"


class Quantity(NamedTuple):
    """Two lines of heading, decimals, sign, and what it means."""

    top: str
    bottom: str
    decimals: int
    sign: str
    meaning: str


QUANTITIES = {
    "entropy": Quantity(
        "entropy",
        "nats",
        2,
        "",
        "of a query's weights, -sum w ln w (Ghader and Monz 2017)",
    ),
    "entropy_share": Quantity(
        "of",
        "most",
        2,
        "",
        "entropy as a share of ln n, the most that the n keys that a query sees allow; "
        "over the queries that see more than one",
    ),
    "distance": Quantity(
        "mean",
        "distance",
        2,
        "",
        "sum of w |key - centre|, in pieces; the centre is the query's own place, in "
        "cross attention place t (S - 1) / (T - 1) of the source, which makes the "
        "first and last pieces of both sides face each other",
    ),
    "diagonal": Quantity(
        "on",
        "diagonal",
        2,
        "",
        "weight on the key nearest to the centre; of the decoder's own keys that is "
        "the piece that it has just read",
    ),
    "previous": Quantity("on", "previous", 2, "", "weight on the key before that"),
    "next": Quantity("on", "next", 2, "", "weight on the key after it"),
    "first": Quantity(
        "on", "first", 2, "", "weight on the first key; the decoder's own is <s>"
    ),
    "last": Quantity(
        "on", "last", 2, "", "weight on the last key, which is </s> of the source"
    ),
    "maximum": Quantity(
        "greatest",
        "weight",
        2,
        "",
        "mean of each query's greatest weight (the confidence of Voita et al. 2019, "
        "who leave </s> out)",
    ),
    "loss_lost": Quantity(
        "loss",
        "lost",
        4,
        "+",
        "nats a target piece, unsmoothed, by which the loss is higher with the head's "
        "output set to zero (Michel et al. 2019)",
    ),
    "ppl_lost": Quantity("PPL", "lost", 3, "+", "the same in perplexity"),
    "bleu_lost": Quantity(
        "BLEU",
        "lost",
        2,
        "+",
        "by which BLEU is lower with the head's output set to zero",
    ),
}


class HeadRow(NamedTuple):
    """``layer`` and ``head`` count from 1; a value is None where there is none."""

    run: str
    kind: str
    layer: int
    head: int
    values: Mapping[str, float | None]


class HeadTable(NamedTuple):
    """``quantities`` are those of the columns, in order; ``runs`` facts by run."""

    quantities: Sequence[str]
    rows: Sequence[HeadRow]
    runs: Mapping[str, Mapping[str, Any]]


class Overview(NamedTuple):
    """Heads of a kind: how many, the mean of ``entropy_share`` and of ``distance``, and
    how many have at least half of their weight on each of the ``PLACES`` that the kind
    has, or ELSEWHERE."""

    run: str
    kind: str
    heads: int
    entropy_share: float | None
    distance: float | None
    places: Mapping[str, int]


def overview(heads: HeadTable) -> list[Overview]:
    """A line a run and kind; none without a summary."""
    if "diagonal" not in heads.quantities:
        return []
    found = []
    for (run, kind), rows in itertools.groupby(heads.rows, lambda r: (r.run, r.kind)):
        values = [row.values for row in rows]
        counts = Counter(_place(each) for each in values)
        there = [p for p in PLACES if any(each.get(p) is not None for each in values)]
        places = {place: counts[place] for place in (*there, ELSEWHERE)}
        share, distance = _mean(values, "entropy_share"), _mean(values, "distance")
        found.append(Overview(run, kind, len(values), share, distance, places))
    return found


def _place(values: Mapping[str, float | None]) -> str:
    """Where at least half of a head's weight is; of two such, where more is."""
    most, place = max((values.get(place) or 0.0, place) for place in PLACES)
    return place if most >= HALF else ELSEWHERE


def _mean(values: Sequence[Mapping[str, float | None]], name: str) -> float | None:
    known = [x for each in values if (x := each.get(name)) is not None]
    return sum(known) / len(known) if known else None


def known(value: float) -> float | None:
    """None for what is not a finite number."""
    return value if math.isfinite(value) else None
