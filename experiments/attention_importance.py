"""What each head of a run is worth: scores with its output set to zero."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from experiments.telling import tell
from transformer_ablation.config import Config
from transformer_ablation.report.head_quantities import known
from transformer_ablation.runs.loading import Trained
from transformer_ablation.vocabulary import Vocabulary

Item = TypeVar("Item")
# Columns by head: kind, layer and number, which count from 0.
Values = dict[tuple[str, int, int], dict[str, float | None]]


def add_importance(
    trained: Trained,
    config: Config,
    vocabulary: Vocabulary,
    pairs: Any,
    texts: Sequence[tuple[str, str]] | None,
    values: Values,
    facts: dict[str, Any],
) -> None:
    """Adds what each head is worth to its values, the whole model's scores to facts.

    Each as soon as it is known: an interruption loses none.
    """
    from transformer_ablation.evaluate import head_importance
    from transformer_ablation.evaluate.bleu import corpus_bleu

    model, params = trained.model, trained.params
    heads = head_importance.heads(model.config)
    rows = config.decode.sentences_per_batch
    scores = head_importance.perplexities(model, params, pairs, rows, heads)
    timed = _timed(scores, len(heads), "scoring")
    whole = next(timed)
    facts["ppl"] = whole.value
    for head, score in zip(heads, timed, strict=True):
        own = values.setdefault(head, {})
        own["loss_lost"] = (score.nll - whole.nll) / whole.target_tokens
        own["ppl_lost"] = known(score.value - whole.value)
    if texts is not None:
        sources, references = zip(*texts, strict=True)
        found = head_importance.translations(
            model, params, pairs.source, sources, config.decode, heads
        )

        def texts_of(best: Sequence[Any]) -> list[str]:
            return [vocabulary.decode(each.ids) for each in best]

        bleus = (
            corpus_bleu(texts_of(best), references, config.data.target_language).value
            for best in found
        )
        changed = _timed(bleus, len(heads), "translating")
        bleu = next(changed)
        facts |= {"bleu": bleu, "beam": config.decode.beam_size}
        for head, other in zip(heads, changed, strict=True):
            values[head]["bleu_lost"] = bleu - other


def _timed(items: Iterable[Item], count: int, what: str) -> Iterator[Item]:
    """The items, the whole model's first, and how long the others will take."""
    tell(f"{what} with all heads")
    begun = time.monotonic()
    for number, item in enumerate(items):
        minutes = (time.monotonic() - begun) / 60
        if number == 0:  # it has compiled what the others use
            most = max(1, round(minutes * count))
            tell(f"{what} without each of {count} heads: at most {most} min")
        if number == 1 and minutes * (count - 1) > 1:
            tell(f"{what}: about {minutes * (count - 1):.0f} min to go")
        begun = time.monotonic()
        yield item
