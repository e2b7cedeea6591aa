"""Beam search and scoring, for ``experiments.bench``."""

from typing import Any

from experiments.bench_subject import Subject
from transformer_ablation.benchmark import decoding, timing
from transformer_ablation.evaluate.perplexity import make_scorer
from transformer_ablation.evaluate.translation import is_fitted

BATCHES = 2


def measure(subject: Subject) -> dict[str, Any]:
    """Sentences of validation a second, searched and scored.

    Each is searched to the length of its reference, by the search that the whole of
    validation has. A repeat is one pass over the same few batches.
    """
    subject.say("beam search and scoring of validation sentences")
    model, decode = subject.model, subject.config.decode
    params = subject.updater.params
    whole = subject.prepared.validation
    # As when the whole split is translated.
    fitted = is_fitted(len(decoding.decode_batches(model, decode, whole)))
    split = decoding.some_sentences(whole, BATCHES * decode.sentences_per_batch)
    batches = decoding.decode_batches(model, decode, split)
    caps = [decoding.reference_lengths(batch, decode) for batch in batches]
    search = decoding.Search(model, decode, fitted=fitted)
    scorer = make_scorer(model)

    def searches() -> None:
        for batch, cap_B in zip(batches, caps, strict=True):
            search(params, batch.source, cap_B)

    def scores() -> None:
        for batch in batches:
            scorer.score(params, (batch.source, batch.target))

    def passes(program: str, call: Any) -> dict[str, Any]:
        subject.programs.first(program, call)
        times = timing.spread(timing.repeat(call, subject.seconds))
        return {
            "sentences": len(split),
            "seconds": times._asdict(),
            "sentences_per_second": len(split) / times.median,
        }

    return {
        "decode": {
            "beam_size": decode.beam_size,
            "target_tokens": int(sum(cap_B.sum() for cap_B in caps)),
            **passes("search", searches),
        },
        "score": {
            "target_tokens": split.target.token_count,
            **passes("scorer", scores),
        },
    }
