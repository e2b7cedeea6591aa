"""Lines of text to translations of them, with a trained model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from transformer_ablation.config import Config
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate.perplexity import (
    batches,
    make_token_scorer,
    token_scores,
)
from transformer_ablation.evaluate.translation import (
    MANY_BATCHES,
    Draws,
    Translation,
    Translator,
)
from transformer_ablation.runs.lines import (
    Hypothesis,
    Translated,
    check_length,
    longest_source,
)
from transformer_ablation.runs.loading import Trained
from transformer_ablation.runs.searching import Sampling
from transformer_ablation.vocabulary import EOS, PAD, Vocabulary

# Source lengths that are compiled where the lengths to come are not known.
RUNGS = tuple(n for power in range(3, 20) for n in (2**power, 3 * 2 ** (power - 1)))
# So many lines, at equal distances, say which lengths a text is best padded to.
ENOUGH_LINES = 1 << 16


class LineTranslator:
    """Translates lists of lines."""

    def __init__(
        self,
        trained: Trained,
        config: Config,
        vocabulary: Vocabulary,
        n_best: int = 1,
        tell: Callable[[str], None] = lambda text: None,
    ):
        """``tell`` hears why nothing comes for a while."""

        def compiling(length: int) -> None:
            tell(f"compiling the search for sources of up to {length} pieces")

        decode = config.decode
        self._translator = Translator(trained.model, decode, n_best, compiling)
        self._scorer = make_token_scorer(trained.model)
        self._params, self._vocabulary = trained.params, vocabulary
        self._rows, self._extra = decode.sentences_per_batch, decode.extra_length
        self._longest = longest_source(config)
        self._rungs: Sequence[int] = RUNGS
        self._fitted: bool | None = None

    def translate(
        self,
        lines: Sequence[str],
        first: int = 1,
        *,
        sampling: Sampling | None = None,
        few_shapes: bool = False,
        token_scores: bool = False,
        done: Callable[[int], None] | None = None,
    ) -> list[Translated]:
        """Every line with its translations.

        Lines together are batched as a split is when a run is scored, so a split's
        sources give exactly its translations. With ``few_shapes`` they are padded to
        lengths of a ladder, so that one call after the other needs no new
        compilation; that can move the last bits of a score.

        With ``sampling``, what is drawn for line number n, counted from ``first``,
        is a function of the seed, of n and of the line: neither other lines nor how
        many are translated together change it, unless two pieces come so close that
        rounding decides.

        Args:
          token_scores: whether to compute ``token_log_probs``.
          done: is told how many of the lines are finished after each batch.

        Raises:
          LineError: for a line too long for learned positions.
        """
        written = [i for i, text in enumerate(lines) if text.strip()]
        sources = self._encoded([lines[i] for i in written])
        numbers = np.array([first + i for i in written], np.uint32)
        for number, ids in zip(numbers, sources, strict=True):
            check_length(self._longest, self._extra, int(number), len(ids))
        if few_shapes:
            # Sentences of one padded length are searched together in this order.
            order = sorted(range(len(written)), key=lambda i: len(sources[i]))
            written, numbers = [written[i] for i in order], numbers[order]
            sources = [self._padded(sources[i]) for i in order]
        elif len(sources) >= MANY_BATCHES * self._rows:
            self._fitted = True  # what comes later need not compile another
        found = self._translator.translate(
            self._params,
            Ragged.of(sources),
            done,
            draws=None
            if sampling is None
            else Draws(numbers=numbers, **sampling._asdict()),
            fitted=self._fitted if few_shapes else None,
        )
        results = [Translated(text, []) for text in lines]
        each = self._token_scores(sources, found) if token_scores else None
        for i, translations in zip(written, found, strict=True):
            for translation in translations:
                scores = None if each is None else next(each)
                results[i].translations.append(self._hypothesis(translation, scores))
        return results

    def expect(self, lengths: np.ndarray) -> None:
        """What lines are to come, by their lengths in ids, the end included.

        With ``few_shapes`` they are then padded to the lengths that they would have
        as one split: no more is compiled, and no more is padding.
        """
        places = np.linspace(0, len(lengths) - 1, min(len(lengths), ENOUGH_LINES))
        some = lengths[np.unique(np.append(places.astype(int), lengths.argmax()))]
        every = Ragged.joined(np.full(int(some.sum()), EOS, np.int32), some)
        parts = batches(TokenizedSplit(every, every), self._rows, self._longest)
        self._rungs = sorted({part.source.shape[1] for part in parts})
        self._fitted = len(lengths) >= MANY_BATCHES * self._rows

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        return [[*ids, EOS] for ids in self._vocabulary.encode_all(texts)]

    def _padded(self, ids: list[int]) -> list[Any]:
        """The ids and PAD up to the next rung, which no learned table overflows."""
        rung = next((n for n in self._rungs if n >= len(ids)), len(ids))
        length = rung if self._longest is None else min(rung, self._longest)
        return ids + [PAD] * (length - len(ids))

    def _hypothesis(self, found: Translation, scores: list[float] | None) -> Hypothesis:
        ids = _whole(found)
        return Hypothesis(
            text=self._vocabulary.decode(found.ids),
            pieces=self._vocabulary.pieces(ids),
            ids=ids,
            score=found.score,
            log_prob=found.log_probability,
            token_log_probs=scores,
            finished=not found.unfinished,
        )

    def _token_scores(
        self, sources: list[list[int]], found: list[list[Translation]]
    ) -> Any:
        """Those of every translation in turn."""
        pairs = [
            (source, _whole(translation))
            for source, translations in zip(sources, found, strict=True)
            for translation in translations
        ]
        if not pairs:
            return iter(())
        lengths = [len(target) for _, target in pairs]
        split = TokenizedSplit(
            Ragged.of(source for source, _ in pairs),
            # Padded to a rung as well: of a target that is padding the score is 0.
            Ragged.of(self._rung_of_target(target) for _, target in pairs),
        )
        scores = token_scores(self._scorer, self._params, split, self._rows)
        return (s[:n].tolist() for s, n in zip(scores, lengths, strict=True))

    def _rung_of_target(self, ids: list[int]) -> list[Any]:
        rung = next(n for n in (*RUNGS, len(ids)) if n >= len(ids))
        longest = self._scorer.longest
        length = rung if longest is None else min(rung, longest)
        return ids + [PAD] * (length - len(ids))


def _whole(found: Translation) -> list[int]:
    """The ids with the end of sentence, where there is one."""
    return found.ids if found.unfinished else [*found.ids, EOS]
