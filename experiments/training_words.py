"""How often words occur in the text that a run was trained on."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.command import UsageError
from experiments.telling import tell
from transformer_ablation.config import DataConfig
from transformer_ablation.report.comparison import words
from transformer_ablation.report.comparison.result import Frequencies

MANY = 200_000  # pairs whose counting takes so long that it is told
COUNTS = "counts.txt"  # a line a word: how often it occurs, and the word

Tokeniser = Callable[[str], list[str]]


def frequencies(
    record: Mapping[str, Any], cache: Path, source: str
) -> Callable[[Tokeniser, str], Frequencies | str]:
    """A function that counts the words of a run's training targets.

    It is given how a line becomes words and the signature of the BLEU that they are
    of; it gives the reason where they are not known or, by ``source``, not asked for.
    Nothing is prepared for it; the counts are kept in the cache.

    Raises:
      UsageError: from that function, if ``source`` is training and it is not there.
    """

    def counted(tokens: Tokeniser, signature: str) -> Frequencies | str:
        if source == "references":
            return "as --frequencies asks"
        found = _counted(record, cache, tokens, signature)
        if isinstance(found, str) and source == "training":
            raise UsageError(
                f"--frequencies=training: {found}; leave the flag away to count in the "
                "references"
            )
        return found

    return counted


def _counted(
    record: Mapping[str, Any], cache: Path, tokens: Tokeniser, signature: str
) -> Frequencies | str:
    from transformer_ablation.data import corpus, filters

    try:
        data = DataConfig(**record["config"]["data"])
    except TypeError:
        return "the run's config is of another version of this program"
    manifest = corpus.read_manifest(data, cache)
    if manifest is None:
        return (
            f"the corpus {data.corpus} is not in the cache {cache}, where python -m "
            "experiments.prepare puts it"
        )
    if corpus.manifest_hash(manifest) != (record["data"] or {}).get("manifest_hash"):
        return f"the corpus {data.corpus} here is not what the run was trained on"
    loaded = corpus.load_corpus(data, cache)
    trained = filters.training_pairs(loaded, data, cache)
    key = [loaded.digests(data.train_split), trained.key, data.target_language]
    counts = _kept(cache, [*key, signature], trained.pairs, tokens)
    language, pairs = data.target_language, len(trained.pairs)
    return Frequencies(counts, f"the {language} side of {pairs:,} training pairs")


def _kept(cache: Path, key: Any, pairs: Any, tokens: Tokeniser) -> Counter[str]:
    """The counts of the cache, or new ones, put there where that can be written."""
    from transformer_ablation.data import storage

    def count() -> Counter[str]:
        if len(pairs) > MANY:
            tell(
                f"counting the words of {len(pairs):,} training pairs, kept afterwards"
            )
        targets = (target for chunk in pairs.chunks() for _, target in chunk)
        return words.frequencies(map(tokens, targets))

    def fill(folder: Path) -> dict:
        counts = count()
        lines = (f"{n} {word}\n" for word, n in counts.items())
        (folder / COUNTS).write_text("".join(lines), "utf-8", newline="\n")
        return {"words": len(counts)}

    folder = storage.place(cache, "words", storage.content_key(key)[:32])
    if storage.read(folder) is None:
        try:
            storage.publish(folder, fill, digests=True)
        except storage.CacheError:
            return count()
    text = (folder / COUNTS).read_bytes().decode("utf-8")
    return _read(text.removesuffix("\n").split("\n"))


def _read(lines: Iterable[str]) -> Counter[str]:
    parts = (line.partition(" ") for line in lines)
    return Counter({word: int(n) for n, _, word in parts})
