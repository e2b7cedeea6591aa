"""The sentences whose attention is shown, as ids of both sides."""

from collections.abc import Sequence
from typing import NamedTuple

from experiments.attention_texts import Text
from experiments.command import UsageError
from transformer_ablation.config import Config
from transformer_ablation.runs.loading import Trained
from transformer_ablation.vocabulary import EOS, Vocabulary

# More are neither drawn quickly by a browser nor read by anybody.
MOST_PIECES = 128


class Ids(NamedTuple):
    """Ids of both sides, which end in the end of sentence; where the target is from."""

    source: list[int]
    target: list[int]
    note: str


def encoded(
    texts: Sequence[Text], trained: Trained, config: Config, vocabulary: Vocabulary
) -> list[Ids]:
    """Ids of the texts; targets are translated where they are not given.

    Raises:
      UsageError: for a side of too many pieces.
      VocabularyError: for what is no line of text.
    """
    sources = [[*ids, EOS] for ids in vocabulary.encode_all([t.source for t in texts])]
    references = [text.target for text in texts if text.target is not None]
    extra = 0 if references else config.decode.extra_length
    _check_lengths(texts, "source", sources, config, extra)
    if references:
        targets = [[*ids, EOS] for ids in vocabulary.encode_all(references)]
        notes = ["The target is the one given."] * len(targets)
    else:
        targets, notes = _translated(texts, sources, trained, config)
    _check_lengths(texts, "target", targets, config)
    return [Ids(*each) for each in zip(sources, targets, notes, strict=True)]


def _translated(
    texts: Sequence[Text], sources: list[list[int]], trained: Trained, config: Config
) -> tuple[list[list[int]], list[str]]:
    """The best translation of each source, and how it came about."""
    from transformer_ablation.data.ragged import Ragged
    from transformer_ablation.evaluate.translation import Translator

    decode = config.decode
    translator = Translator(trained.model, decode)
    words = [text.source for text in texts]
    found = translator.best(trained.params, Ragged.of(sources), words)
    note = (
        f"The target is the run's own translation, with a beam of {decode.beam_size}."
    )
    cut = " It came to no end, and was cut."
    notes = [note + cut * best.unfinished for best in found]
    return [[*best.ids, EOS] for best in found], notes


def _check_lengths(
    texts: Sequence[Text],
    side: str,
    all_ids: list[list[int]],
    config: Config,
    extra: int = 0,
) -> None:
    """Refuses a side longer than a page, or than learned positions, can show.

    ``extra`` pieces are to come.
    """
    model, most, why = config.model, MOST_PIECES, "that a page shows"
    if model.positions == "learned" and model.max_length - extra < most:
        most = model.max_length - extra
        why = f"that model.max_length = {model.max_length} learned positions hold"
        why += f" beside decode.extra_length = {extra}" if extra else ""
    for text, ids in zip(texts, all_ids, strict=True):
        if len(ids) > most:
            raise UsageError(
                f"{text.heading}: the {side} has {len(ids)} pieces with the end of "
                f"sentence, more than the {most} {why}; shorten it"
            )
