"""Lines of text to lines of text with a trained model."""

from collections.abc import Sequence
from typing import Any

from experiments.line_streams import LineError
from experiments.loading import Trained
from experiments.telling import tell
from transformer_ablation.config import Config
from transformer_ablation.data.ragged import Ragged
from transformer_ablation.evaluate.translation import Translator
from transformer_ablation.vocabulary import EOS, PAD, Vocabulary

# Source lengths that are compiled where the lengths to come are not known.
RUNGS = tuple(n for power in range(3, 20) for n in (2**power, 3 * 2 ** (power - 1)))


def _tell(length: int) -> None:
    """Says on stderr why nothing comes for a while."""
    tell(f"compiling the search for sources of up to {length} pieces")


class LineTranslator:
    """Translates lists of lines; a blank line gives blank ones."""

    def __init__(
        self, trained: Trained, config: Config, vocabulary: Vocabulary, n_best: int
    ):
        decode = config.decode
        self._translator = Translator(trained.model, decode, n_best, _tell)
        self._params, self._vocabulary = trained.params, vocabulary
        self._n_best, self._extra = n_best, config.decode.extra_length
        learned = config.model.positions == "learned"
        self._longest = config.model.max_length - self._extra if learned else None

    def translate(
        self, lines: Sequence[str], first: int = 1, *, few_shapes: bool = False
    ) -> list[list[str]]:
        """The ``n_best`` translations of every line, best first.

        A place without a hypothesis is a blank line. Lines together are batched as
        a split is when a run is scored, so a split's sources give exactly its
        translations. With ``few_shapes`` they are padded to
        lengths of a ladder, so that one call after the other needs no new
        compilation; that can move the last bits of a score.

        Raises:
          LineError: for a line too long for learned positions; ``first`` is the
            number of the first.
        """
        texts = {i: text for i, text in enumerate(lines) if text.strip()}
        encoded = self._vocabulary.encode_all(list(texts.values()))
        sources = [[*ids, EOS] for ids in encoded]
        for i, ids in zip(texts, sources, strict=True):
            self._check(first + i, len(ids))
        if few_shapes:
            sources = [self._padded(ids) for ids in sources]
        results = [[""] * self._n_best for _ in lines]
        found = self._translator.translate(self._params, Ragged.of(sources))
        for i, translations in zip(texts, found, strict=True):
            for place, best in enumerate(translations):
                results[i][place] = self._vocabulary.decode(best.ids)
        return results

    def _check(self, number: int, length: int) -> None:
        if self._longest is not None and length > self._longest:
            raise LineError(
                f"line {number}: is {length} pieces long with the end of sentence, but "
                f"model.max_length = {self._longest + self._extra} learned positions "
                f"hold {self._longest} and {self._extra} more of the translation; "
                "shorten the line or lower --extra_length"
            )

    def _padded(self, ids: list[int]) -> list[Any]:
        """The ids and PAD up to the next rung, which no learned table overflows."""
        rung = next(n for n in (*RUNGS, len(ids)) if n >= len(ids))
        length = rung if self._longest is None else min(rung, self._longest)
        return ids + [PAD] * (length - len(ids))
