"""Scores of trained parameters: perplexity, translations, BLEU both ways."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_ablation.config import Config
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.evaluate.bleu import (
    TOKENISED_LANGUAGES,
    corpus_bleu,
    paper_bleu,
)
from transformer_ablation.evaluate.perplexity import Scorer, perplexity
from transformer_ablation.evaluate.translation import Translation, Translator
from transformer_ablation.report.record import new_score
from transformer_ablation.report.selection import DECODE_FIELDS
from transformer_ablation.report.translations import write_texts
from transformer_ablation.sweep import stopping


class Scored(NamedTuple):
    """What is scored: a config with its decoding, its data, model and parameters.

    ``steps`` are the updates whose checkpoints ``params`` are the mean of.
    """

    config: Config
    prepared: Prepared
    model: Any
    scorer: Scorer
    params: Any
    steps: list[int]


def splits(config: Config) -> list[str]:
    """The splits that are scored: validation, and test where there is one."""
    data = config.data
    return [name for name in (data.validation_split, data.test_split) if name]


def score(
    scored: Scored,
    splits: Sequence[str],
    path_of: Callable[[str], Path] | None,
    progress: Callable[[dict[str, Any]], None] = lambda event: None,
    stop: threading.Event | None = None,
) -> list[dict[str, Any]] | None:
    """Entries of a record for some splits, or None if told to stop.

    The translations of a split are written to ``path_of(split)``; with None nothing
    is written and there are no BLEU scores.
    """
    translator = Translator(scored.model, scored.config.decode)
    entries = []
    try:
        for name in splits:
            progress({"phase": f"scoring {name}"})
            found, best = _results(scored, name, translator, stop)
            entries.append(found)
            if path_of is not None:
                entries += _bleus(scored, name, best, path_of(name))
    except stopping.Stopped:
        return None
    return entries


def _results(
    scored: Scored, name: str, translator: Translator, stop: threading.Event | None
) -> tuple[dict[str, Any], list[Translation]]:
    """Perplexity and translations of a split."""
    config, prepared = scored.config, scored.prepared
    rows = config.decode.sentences_per_batch

    def check(done: int = 0) -> None:
        stopping.check(stop)

    check()
    validation = name == config.data.validation_split
    split = prepared.validation if validation else prepared.test
    assert split is not None
    found = perplexity(scored.scorer, scored.params, split, rows, check)
    counts = {"sentences": found.sentences, "target_tokens": found.target_tokens}
    entry = new_score(name, "ppl", found.value, steps=scored.steps, **counts)
    texts = [source for source, _ in prepared.corpus.splits[name]]
    best = translator.best(scored.params, split.source, texts, check)
    return entry, best


def _bleus(
    scored: Scored, name: str, translations: Sequence[Any], path: Path
) -> list[dict[str, Any]]:
    """Writes translations and scores them; both ways where there is a tokeniser."""
    decode, prepared = scored.config.decode, scored.prepared
    texts = [prepared.vocabulary.decode(best.ids) for best in translations]
    # One line a sentence: a line break that a model writes is shown as a space.
    lines = [text.replace("\n", " ") for text in texts]
    pairs = list(prepared.corpus.splits[name])
    write_texts(path, name, lines, pairs)
    references = [target for _, target in pairs]
    language = scored.config.data.target_language
    found = {"bleu": corpus_bleu(lines, references, language)}
    if language in TOKENISED_LANGUAGES:
        found["bleu_paper"] = paper_bleu(lines, references, language)
    settings = {name: getattr(decode, name) for name in DECODE_FIELDS}
    return [
        new_score(
            name,
            metric,
            bleu.value,
            sentences=bleu.sentences,
            steps=scored.steps,
            decode=settings,
            signature=bleu.signature,
            unfinished=sum(best.unfinished for best in translations),
        )
        for metric, bleu in found.items()
    ]
