"""Updates of training, one by one and in the loop, each waited for."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax

from transformer_ablation.benchmark.timing import Clock
from transformer_ablation.config import Config
from transformer_ablation.train import step as steps
from transformer_ablation.train.loop import train


class Updater:
    """A training state that goes on with every update."""

    def __init__(self, model: Any, config: Config):
        self._config = config
        self._update = steps.make_update(model, config)
        self._state = steps.create_state(model, config)
        self._key = steps.purpose_key(config.train.seed, steps.DROPOUT)
        self._done = 0

    @property
    def params(self) -> Any:
        """The parameters now, on every device; the next update takes them away."""
        return self._state.params

    def update(self, batch: Any, *, dropout: bool = True) -> None:
        """One update on an arranged batch; returns when it is done.

        Without ``dropout`` no mask is drawn: that is another program.
        """
        rates = steps.rates_at(self._config, self._done + 1)
        if not dropout:
            rates = without_dropout(rates)
        self._state, metrics = self._update(self._state, batch, self._key, rates)
        jax.block_until_ready((self._state, metrics))
        self._done += 1

    def loop(
        self, batches: Iterable[Any], seconds: float, clock: Clock = time.perf_counter
    ) -> "Loop":
        """The training loop itself on arranged batches, for so many seconds."""
        watched = Watched(batches, seconds, clock)
        self._state = train(
            self._state,
            self._update,
            watched,
            key=self._key,
            rates_at=lambda number: steps.rates_at(self._config, number),
            hooks=[],
        )
        jax.block_until_ready(self._state)
        self._done = int(self._state.step)
        return watched.loop(clock())


def without_dropout(rates: steps.Rates) -> steps.Rates:
    """The same rates with every place of dropout left out of the program."""
    nothing = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"))
    return rates._replace(**nothing)


class Loop(NamedTuple):
    """Updates in the training loop, their real tokens, and the wait for batches.

    ``seconds`` are those of all updates; ``wait_seconds`` are the part of them in
    which the loop had no batch.
    """

    updates: int
    source_tokens: int
    target_tokens: int
    seconds: float
    wait_seconds: float

    @property
    def wait_share(self) -> float:
        """Share of the time spent waiting for the next batch."""
        return self.wait_seconds / self.seconds


class Watched:
    """Batches until the time is up, and how long each was waited for.

    The clock starts with the first batch: its wait is that of a pipeline that
    starts, which a run has once.
    """

    least = 3

    def __init__(self, batches: Iterable[Any], seconds: float, clock: Clock):
        self._batches, self._seconds, self._clock = batches, seconds, clock
        self._start = self._wait = 0.0
        self._updates = self._source = self._target = 0

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._batches)
        try:
            for batch in batches:
                self._count(batch)
                yield batch
                self._asked = self._clock()
                spent = self._asked - self._start
                if self._updates >= self.least and spent >= self._seconds:
                    return
        finally:
            if hasattr(batches, "close"):
                batches.close()

    def _count(self, batch: Any) -> None:
        now = self._clock()
        if self._updates:
            self._wait += now - self._asked
        else:
            self._start = now
        self._updates += 1
        self._source += batch.source_tokens
        self._target += batch.target_tokens

    def loop(self, end: float) -> Loop:
        """What was seen, if the last update was done at ``end``."""
        counts = self._updates, self._source, self._target
        return Loop(*counts, end - self._start, self._wait)
