"""Which of a record's scores a table shows: those its config asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

from transformer_ablation.report.consistency import TableError, run_name

# (record, score) pairs the table shows, by (row, seed, quantity); the quantities are
# ppl, bleu (validation split), bleu_test, and averaged: bleu of more checkpoints.
Chosen = Mapping[tuple[str, int, str], tuple[Mapping[str, Any], Mapping[str, Any]]]

DECODE_FIELDS = (
    "beam_size",
    "length_penalty",
    "length_penalty_alpha",
    "extra_length",
)


def _scores(
    record: Mapping[str, Any], split: str | None, metric: str
) -> list[dict[str, Any]]:
    """All of a split and metric, in the order in which they were made."""
    return [s for s in record["scores"] if (s["split"], s["metric"]) == (split, metric)]


def select_score(
    record: Mapping[str, Any], split: str | None, metric: str
) -> dict[str, Any] | None:
    """The run's score of a split as its config asks for it, or None if not scored.

    Of several it is that of the latest checkpoint, and of those the last one made.

    Raises:
      TableError: where the split was scored, but only with other settings.
    """
    scores = _scores(record, split, metric)
    fitting = [s for s in scores if _as_configured(record["config"]["decode"], s)]
    if scores and not fitting:
        raise TableError(_other_settings(record, scores[-1]))
    known = [s for s in fitting if s["value"] is not None]
    latest = max((s["steps"][-1] for s in known), default=None)
    return next((s for s in reversed(known) if s["steps"][-1] == latest), None)


def latest_score(
    record: Mapping[str, Any], split: str | None, metric: str
) -> dict[str, Any] | None:
    """The last score made of a split, whatever its settings, or None."""
    scores = _scores(record, split, metric)
    return next((s for s in reversed(scores) if s["value"] is not None), None)


def select_averaged(
    record: Mapping[str, Any], split: str | None, metric: str
) -> dict[str, Any] | None:
    """The run's score of more checkpoints than its config averages, or None.

    Otherwise decoded as its config says. Of several it is that of the most
    checkpoints, of those the latest, and of those the last one made.
    """
    decode = record["config"]["decode"]
    found = [
        s
        for s in _scores(record, split, metric)
        if s["value"] is not None
        and len(s["steps"]) > decode["average_checkpoints"]
        and decoded_as_configured(decode, s)
    ]
    order = [(len(s["steps"]), s["steps"][-1], i) for i, s in enumerate(found)]
    return found[max(order)[-1]] if found else None


def _as_configured(decode: Mapping[str, Any], score: Mapping[str, Any]) -> bool:
    if not score["steps"] or len(score["steps"]) != decode["average_checkpoints"]:
        return False
    return decoded_as_configured(decode, score)


def decoded_as_configured(decode: Mapping[str, Any], score: Mapping[str, Any]) -> bool:
    """Whether a score was made with the search of a config's ``decode``.

    Of whatever checkpoints; a score that names no search, as perplexity, was.
    """
    used = score["decode"] or {}
    return all(used[f] == decode[f] for f in DECODE_FIELDS if f in used)


def _other_settings(record: Mapping[str, Any], score: Mapping[str, Any]) -> str:
    decode = record["config"]["decode"]
    used = score["decode"] or {}
    differing = [
        f"{f} {used[f]} (config: {decode[f]})"
        for f in DECODE_FIELDS
        if f in used and used[f] != decode[f]
    ]
    if len(score["steps"]) != decode["average_checkpoints"]:
        differing.append(
            f"{checkpoints(score['steps'])} (config: decode.average_checkpoints = "
            f"{decode['average_checkpoints']})"
        )
    return (
        f"{run_name(record)}: {score['metric']} on {score['split']} was scored only "
        f"with {', '.join(differing)}; a table does not mix this with the other rows: "
        "score the run again with its own settings"
    )


def checkpoints(steps: Sequence[int]) -> str:
    """``the checkpoint of update S`` or ``the average of updates S, ...``."""
    if len(steps) == 1:
        return f"the checkpoint of update {steps[0]}"
    return f"the average of {len(steps)} checkpoints ({', '.join(map(str, steps))})"
