"""What the text is that a table's scores are of, and what sets it apart."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.columns import counted
from transformer_ablation.report.consistency import some

Record = Mapping[str, Any]


def scored_text(
    sweep: Mapping[str, Any], scored: Sequence[tuple[Record, Mapping[str, Any]]]
) -> str:
    """Corpus, languages, split and size behind (record, score) pairs of one split.

    A corpus that is not what was published under its name is called so.
    """
    data, (_, score) = sweep["config"]["data"], scored[0]
    languages = f"{data['source_language']}-{data['target_language']}"
    other = _not_published([record for record, _ in scored])
    sentences = counted(score["sentences"], "sentence")
    return f"{data['corpus']} {languages}{other}, split {score['split']}, {sentences}"


def _not_published(records: Sequence[Record]) -> str:
    """For text that is no published one's there is nothing to say."""
    other = [r["row"] for r in records if _manifest(r).get("official") is False]
    if not other:
        return ""
    where = "" if len(other) == len(records) else f" in {some([*dict.fromkeys(other)])}"
    return f", not the published text{where}"


def unusual_notes(records: Iterable[Record]) -> list[str]:
    """What their manifests tell of the text, in the words of the corpus."""
    told = (text for r in records for text in _manifest(r).get("unusual") or ())
    return [f"Text: {text}." for text in dict.fromkeys(told)]


def _manifest(record: Record) -> Mapping[str, Any]:
    return (record["data"] or {}).get("manifest") or {}
