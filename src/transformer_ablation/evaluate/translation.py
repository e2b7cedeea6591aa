"""Translations of token sequences by beam search or draws, over all devices."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation import parallel
from transformer_ablation.config import DecodeConfig
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.decode.beam import (
    NEVER,
    BeamSettings,
    Hypotheses,
    beam_search,
    rooms,
)
from transformer_ablation.decode.sampling import (
    SamplingSettings,
    sample,
    sentence_keys,
)
from transformer_ablation.evaluate.perplexity import batches, longest_input
from transformer_ablation.vocabulary import EOS

# So many batches are worth a search that takes longer to compile than to run once.
MANY_BATCHES = 12


def is_fitted(batches: int) -> bool:
    """Whether so many batches are searched as ``make_search`` does with ``fitted``."""
    return batches >= MANY_BATCHES


class Translation(NamedTuple):
    """One hypothesis: ids without the end of sentence."""

    ids: list[int]
    score: float
    log_probability: float
    unfinished: bool


class Draws(NamedTuple):
    """How translations are drawn at random instead of searched.

    What is drawn for a source is a function of the seed, of its own one of
    ``numbers``, which are below 2**32, and of the temperature and ``top_k``.
    """

    seed: int
    numbers: np.ndarray
    temperature: float = 1.0
    top_k: int | None = None


class _Begun(NamedTuple):
    """A batch whose search is under way; ``found`` waits for it."""

    indices: np.ndarray
    cap_B: np.ndarray
    found: Callable[[], Hypotheses]


def _one_ahead(items: Iterator[_Begun]) -> Iterator[_Begun]:
    """The items in order, each when the next has begun: devices need not wait."""
    waiting: list[_Begun] = []
    for item in items:
        yield from waiting
        waiting = [item]
    yield from waiting


class Translator:
    """Beam search with a model's cached step; each shape compiles once."""

    def __init__(
        self,
        model: Any,
        config: DecodeConfig,
        n_best: int = 1,
        compiling: Callable[[int], None] | None = None,
    ):
        """``n_best`` hypotheses a sentence are returned; at most the beam size.

        ``compiling`` is told the source length of each shape before its first batch.
        """
        if not 1 <= n_best <= config.beam_size:
            raise ValueError(
                f"n_best is {n_best}; it must be from 1 to decode.beam_size = "
                f"{config.beam_size}"
            )
        self._model = model
        self._config = config
        self._n_best = n_best
        self._compiling = compiling
        self._compiled: dict[tuple, Callable] = {}

    def translate(
        self,
        params: Any,
        sources: Ragged,
        done: Callable[[int], None] | None = None,
        *,
        draws: Draws | None = None,
        fitted: bool | None = None,
    ) -> list[list[Translation]]:
        """The ``n_best`` translations of every source, in order, best first.

        Sources end in the end of sentence. ``done`` is told how many sentences
        are finished after each batch. With ``draws`` they are independent draws in
        the order in which they were drawn, and no search is made. ``fitted`` is that
        of ``make_search``; by default it is so where there are many batches.
        """
        results: list[list[Translation]] = [[] for _ in range(len(sources))]
        finished = 0
        for indices, cap_B, found in _one_ahead(
            self._begun(params, sources, draws, fitted)
        ):
            hypotheses = found()
            for row, index in enumerate(indices):
                results[index] = list(_read(hypotheses, row, int(cap_B[row])))
            finished += len(indices)
            if done is not None:
                done(finished)
        return results

    def _begun(
        self, params: Any, sources: Ragged, draws: Draws | None, fitted: bool | None
    ) -> Iterator[_Begun]:
        """Every batch of sources, its search begun when it is asked for."""
        rows, extra = self._config.sentences_per_batch, self._config.extra_length
        longest = longest_input(self._model, extra)
        every = batches(TokenizedSplit(sources, sources), rows, longest)
        fitted = is_fitted(len(every)) if fitted is None else fitted
        for batch in every:
            cap_B = (batch.source != self._model.pad_id).sum(axis=1)
            cap_B = np.where(cap_B > 0, cap_B + extra, 0).astype(np.int32)
            length = batch.source.shape[1]
            if draws is None:
                found = self._search(length, fitted)(params, (batch.source, cap_B))
            else:
                drawn = _of_rows(draws, batch.indices, len(cap_B))
                sampling = self._sampling(length, draws.top_k)
                found = sampling(params, (batch.source, cap_B, *drawn))
            yield _Begun(batch.indices, cap_B, found)

    def best(
        self,
        params: Any,
        sources: Ragged,
        texts: Sequence[str],
        done: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """The best translation of every source; that of a blank text is empty.

        ``done`` is as for ``translate``; what it raises ends the translation.
        """
        written = np.flatnonzero([bool(text.strip()) for text in texts])
        results = [Translation([], 0.0, 0.0, False)] * len(texts)
        found = self.translate(params, sources.take(written), done)
        for i, translations in zip(written, found, strict=True):
            results[i] = translations[0]
        return results

    def _search(self, source_length: int, fitted: bool) -> Callable:
        """The compiled search for sources padded to a length."""
        length = source_length + self._config.extra_length
        settings = search_settings(self._config, length, self._n_best)
        return self._made(
            (source_length, fitted),
            lambda: make_search(self._model, settings, fitted=fitted),
        )

    def _sampling(self, source_length: int, top_k: int | None) -> Callable:
        """The compiled sampling for sources padded to a length."""
        settings = SamplingSettings(
            draws=self._n_best,
            alpha=self._config.length_penalty_alpha,
            max_length=source_length + self._config.extra_length,
            top_k=top_k,
            penalty=self._config.length_penalty,
        )
        return self._made(
            (source_length, settings), lambda: make_sampling(self._model, settings)
        )

    def _made(self, key: tuple, make: Callable[[], Callable]) -> Callable:
        if key not in self._compiled:
            if self._compiling is not None:
                self._compiling(key[0])
            self._compiled[key] = parallel.begin_batch(make())
        return self._compiled[key]


def _of_rows(
    draws: Draws, indices: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys [rows, 2] and temperatures [rows] of a batch; of padding any."""
    numbers = np.zeros(rows, np.uint32)
    numbers[: len(indices)] = draws.numbers[indices]
    temperatures = np.full(rows, draws.temperature, np.float32)
    return sentence_keys(draws.seed, numbers), temperatures


def search_settings(
    config: DecodeConfig, max_length: int, n_best: int = 1
) -> BeamSettings:
    """The search of a config, of at most ``max_length`` tokens."""
    return BeamSettings(
        beam_size=config.beam_size,
        alpha=config.length_penalty_alpha,
        max_length=max_length,
        n_best=n_best,
        penalty=config.length_penalty,
    )


def make_search(
    model: Any,
    settings: BeamSettings,
    added_11V: np.ndarray | None = None,
    *,
    fitted: bool = True,
) -> Callable:
    """``search(params, (source [B, S], cap [B]))`` with the model's cached step.

    ``added_11V`` is added to all logits, NEVER where a piece is forbidden. A
    ``fitted`` search does little work on padding and empty caches, and takes two or
    three times as long to compile.
    """
    length = settings.max_length
    sizes = rooms(length) if fitted and model.grows else (length,)

    def search(params: Any, batch: Any) -> Hypotheses:
        source_BS, cap_B = batch
        shape = settings.beam_size, sizes[0], fitted
        cache, plain_step = _decoder(model, params, source_BS, *shape)

        def step(cache: Any, tokens_BC: Any, position: Any) -> Any:
            logits_BCV, cache = plain_step(cache, tokens_BC, position)
            if added_11V is not None:
                logits_BCV = logits_BCV + added_11V
            return logits_BCV, cache

        grow = model.make_room if fitted else None
        return beam_search(step, cache, model.follow, cap_B, settings, grow, sizes)

    return search


def make_sampling(model: Any, settings: SamplingSettings) -> Callable:
    """``search(params, (source [B, S], cap [B], keys [B, 2], temperature [B]))``."""

    def sampling(params: Any, batch: Any) -> Hypotheses:
        source_BS, cap_B, keys_B2, temperature_B = batch
        shape = settings.draws, settings.max_length, False
        cache, step = _decoder(model, params, source_BS, *shape)
        return sample(step, cache, cap_B, keys_B2, temperature_B, settings)

    return sampling


def _decoder(
    model: Any, params: Any, source_BS: Any, candidates: int, room: int, fitted: bool
) -> tuple[Any, Callable]:
    """The state before the first token, and the model's cached step."""
    variables = {"params": params}
    cache = model.apply(
        variables, source_BS, candidates, room, fitted, method="start_cache"
    )

    def step(cache: Any, tokens_BC: Any, position: Any) -> Any:
        return model.apply(variables, cache, tokens_BC, position, method="step")

    return cache, step


def read_best(found: Hypotheses, row: int, cap: int) -> Translation:
    """The best hypothesis of a row."""
    return next(_read(found, row, cap))


def _read(found: Hypotheses, row: int, cap: int) -> Iterator[Translation]:
    """The hypotheses of a row that exist, as plain values."""
    for place in range(found.scores.shape[1]):
        if found.scores[row, place] <= NEVER / 2:
            continue
        ids = found.tokens[row, place, :cap]
        unfinished = bool(found.unfinished[row, place])
        length = cap if unfinished else int(np.argmax(ids == EOS))
        yield Translation(
            ids[:length].tolist(),
            float(found.scores[row, place]),
            float(found.log_probabilities[row, place]),
            unfinished,
        )
