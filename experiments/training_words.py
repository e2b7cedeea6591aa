"""How often words occur in the text that a run was trained on."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.command import UsageError
from experiments.telling import tell
from transformer_ablation.config import DataConfig
from transformer_ablation.report.comparison import words
from transformer_ablation.report.comparison.result import Frequencies

MANY = 200_000  # pairs whose counting takes so long that it is told


def frequencies(
    record: Mapping[str, Any], cache: Path, source: str
) -> Callable[[Callable[[str], list[str]]], Frequencies | str]:
    """A function from a tokeniser to counts of the run's training targets.

    It gives the reason as a text where they are not known or, by ``source``, not asked
    for. Nothing is prepared for it.

    Raises:
      UsageError: from that function, if ``source`` is training and it is not there.
    """

    def counted(tokens: Callable[[str], list[str]]) -> Frequencies | str:
        if source == "references":
            return "as --frequencies asks"
        found = _counted(record, cache, tokens)
        if isinstance(found, str) and source == "training":
            raise UsageError(
                f"--frequencies=training: {found}; prepare it with python -m "
                "experiments.prepare, or leave the flag away to count in the references"
            )
        return found

    return counted


def _counted(
    record: Mapping[str, Any], cache: Path, tokens: Callable[[str], list[str]]
) -> Frequencies | str:
    from transformer_ablation.data import corpus
    from transformer_ablation.data.filters import training_pairs

    try:
        data = DataConfig(**record["config"]["data"])
    except TypeError:
        return "the run's config is of another version of this program"
    manifest = corpus.read_manifest(data, cache)
    if manifest is None:
        return f"the corpus {data.corpus} is not in the cache {cache}"
    if corpus.manifest_hash(manifest) != (record["data"] or {}).get("manifest_hash"):
        return (
            f"the corpus {data.corpus} in the cache is not what the run was trained on"
        )
    loaded = corpus.load_corpus(data, cache)
    pairs = training_pairs(loaded, data, cache).pairs
    if len(pairs) > MANY:
        tell(f"counting words of {len(pairs):,} training pairs")
    counts = words.frequencies(
        tokens(target) for chunk in pairs.chunks() for _, target in chunk
    )
    language = data.target_language
    return Frequencies(counts, f"the {language} side of {len(pairs):,} training pairs")
