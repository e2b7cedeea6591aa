"""What the checks of ``experiments.verify`` train: a config's own updates, or few."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from transformer_ablation import parallel
from transformer_ablation.config import Config, replace
from transformer_ablation.data.tokens import Prepared
from transformer_ablation.runs.building import build_model, train_batches
from transformer_ablation.train.verification import Case

NO_DROPOUT = {
    "regularization.dropout_rate": 0.0,
    "regularization.attention_dropout_rate": 0.0,
    "regularization.activation_dropout_rate": 0.0,
}
# Of the comparison of packed rows, so that logits of long rows fit into memory.
PACKED_ROWS = 4
PAIRS_AT_ONCE = 8


def case(config: Config, prepared: Prepared) -> Case:
    """The updates of a config's training."""

    def batches(start: int, stop: int) -> Iterable[Any]:
        made = train_batches(config, prepared)
        return made.iterate(start, stop, parallel.device_count())

    return Case(config, build_model(config, prepared.vocabulary.size), batches)


def packed_and_alone(config: Config, prepared: Prepared) -> tuple[Case, Case, int]:
    """A few packed rows without dropout, their pairs in rows of their own, how many.

    The first update of the one and of the other is of the same pairs.
    """
    length = config.data.packed_length
    assert length is not None
    few = {**NO_DROPOUT, "data.tokens_per_batch": PACKED_ROWS * length}
    packed = replace(config, {**few, "optimizer.accumulation_steps": 1})
    pairs = prepared.train.take(train_batches(packed, prepared).indices(0))
    longest = int(max(pairs.source.lengths.max(), pairs.target.lengths.max()))
    steps = -(-len(pairs) // PAIRS_AT_ONCE)
    rows = {
        "data.packed_length": None,
        "data.length_buckets": 1,
        "data.max_train_length": longest - 1,
        "data.tokens_per_batch": steps * PAIRS_AT_ONCE * longest,
        "optimizer.accumulation_steps": steps,
    }
    apart = dataclasses.replace(prepared, train=pairs, plan=None)
    alone = case(replace(packed, rows), apart)
    return case(packed, prepared), alone, len(pairs)
