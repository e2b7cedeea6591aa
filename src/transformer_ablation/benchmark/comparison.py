"""Ours beside a peer, in alternation: the same pairs, the same sentences."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation import parallel, process
from transformer_ablation.benchmark import decoding, marian
from transformer_ablation.benchmark.peer import Peer
from transformer_ablation.benchmark.timing import Spread, ratios, repeat, spread, timed
from transformer_ablation.benchmark.updates import Updater
from transformer_ablation.config import Config
from transformer_ablation.data.batches import TrainBatches
from transformer_ablation.data.ragged import TokenizedSplit

TURNS = 5
# The pairs of so many of our updates are what both sides train on; both translate one
# batch of validation sentences.
UPDATES = 64


class Comparison(NamedTuple):
    """Rates of both, turn by turn, and ours over theirs in each turn."""

    per_turn: int
    ours: Spread
    theirs: Spread
    ratio: Spread


def in_turns(
    ours: Callable[[int], float],
    theirs: Callable[[int], float],
    per_turn: int,
    turns: int = TURNS,
) -> Comparison:
    """Rates of both, one after the other; each is told how much makes a turn."""
    found = [(ours(per_turn), theirs(per_turn)) for _ in range(turns)]
    left, right = zip(*found, strict=True)
    return Comparison(per_turn, spread(left), spread(right), ratios(left, right))


def per_turn(seconds: float, *each: float) -> int:
    """How many calls make a turn in which the slower side takes ``seconds``."""
    return max(1, round(seconds / max(each)))


class Ours:
    """Our side: updates that go on where the last turn ended, and a search."""

    def __init__(
        self,
        config: Config,
        model: Any,
        batches: TrainBatches,
        train: TokenizedSplit,
        validation: TokenizedSplit,
        updater: Updater,
    ):
        count = min(UPDATES, batches.updates_per_epoch)
        devices = parallel.device_count()
        self._config, self._model, self._updater = config, model, updater
        arranged = [
            batches.arrange(batches.batch(update), devices) for update in range(count)
        ]
        self._batches = itertools.cycle(arranged)
        numbers = [batches.indices(update) for update in range(count)]
        self._pairs = train.take(np.concatenate(numbers))
        self._search = decoding.Search(model, config.decode)
        rows = config.decode.sentences_per_batch
        split = decoding.some_sentences(validation, rows)
        self._sources = decoding.decode_batches(model, config.decode, split)
        self.sentences = len(split)
        # Also within what the search allows for the shortest source.
        mean = round(split.target.token_count / len(split))
        self.length = min(mean, config.decode.extra_length)

    def job(self) -> marian.Job:
        """The peer's side of the same work, as it would be given to it."""
        tokens = self._config.data.tokens_per_batch
        sources = []
        for batch in self._sources:
            source_BS = batch.source[: len(batch.indices)]
            used = (source_BS != self._model.pad_id).any(axis=0).sum()
            sources.append(source_BS[:, :used])
        return marian.Job(
            self._config,
            self._model.vocabulary_size,
            len(process.cores()),
            marian.length_sorted(self._pairs, tokens),
            sources,
        )

    def updates(self, count: int) -> float:
        """Real target tokens a second of the next updates."""
        batches = list(itertools.islice(self._batches, count))

        def run() -> None:
            for batch in batches:
                self._updater.update(batch)

        seconds = timed(run)
        return sum(batch.target_tokens for batch in batches) / seconds

    def searches(self, count: int) -> float:
        """Sentences a second, each of ``length`` tokens, in so many passes."""

        def run() -> None:
            for _, batch in itertools.product(range(count), self._sources):
                real_B = batch.source[:, 0] != self._model.pad_id
                cap_B = np.where(real_B, self.length, 0).astype(np.int32)
                self._search(self._updater.params, batch.source, cap_B)

        return count * self.sentences / timed(run)


def compare_training(ours: Ours, theirs: Peer, seconds: float) -> Comparison:
    """Real target tokens a second; a turn takes the slower side some ``seconds``."""

    def peer(count: int) -> float:
        tokens, spent = theirs.ask("updates", count)
        return tokens / spent

    each = [_least(ours.updates), _least(peer)]
    return in_turns(ours.updates, peer, per_turn(seconds, *each))


def compare_search(ours: Ours, theirs: Peer, seconds: float) -> Comparison:
    """Sentences a second, all of one length."""

    def peer(count: int) -> float:
        spent = sum(theirs.ask("search", ours.length) for _ in range(count))
        return count * ours.sentences / spent

    each = [_least(ours.searches), _least(peer)]
    return in_turns(ours.searches, peer, per_turn(seconds, *each))


def _least(call: Callable[[int], float]) -> float:
    """The shortest of a few calls; the first, which may compile, is one of them."""
    return min(repeat(lambda: call(1), 0.0))
