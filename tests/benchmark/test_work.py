"""Tokens counted from the ids themselves, operations and rates by hand."""

import collections

import numpy as np
import pytest

from tests.train import tiny_training as tiny
from transformer_ablation.benchmark import work
from transformer_ablation.config import replace
from transformer_ablation.data.batches import train_batches
from transformer_ablation.data.ragged import Ragged, TokenizedSplit

EOS = 3


def corpus(count=90):
    """Random pairs of one to twelve ids a side."""
    random = np.random.default_rng(3)
    lengths = random.integers(1, 13, (2, count))
    sides = (Ragged.of(tiny.sequences(random, side)) for side in lengths)
    return TokenizedSplit(*sides)


def batches_of(**data):
    changes = {f"data.{name}": value for name, value in data.items()}
    settings = {**tiny.SETTINGS, "data.max_train_length": 12, **changes}
    return train_batches(tiny.make_config(settings), corpus())


BATCHES = {
    "buckets": {"length_buckets": 3, "tokens_per_batch": 130},
    "packed": {"packed_length": 15, "tokens_per_batch": 60, "length_buckets": 1},
}


@pytest.fixture(params=BATCHES)
def batches(request):
    return batches_of(**BATCHES[request.param])


def test_every_shape_of_an_epoch_has_a_sample(batches):
    seen = collections.Counter()
    for update in range(batches.updates_per_epoch):
        batch = batches.batch(update)
        seen[(len(batch.source), batch.source.shape[1], batch.target.shape[1])] += 1
    found = work.samples(batches, 4)
    assert {tuple(s.shape): s.updates_per_epoch for s in found} == dict(seen)
    for sample in found:
        assert 1 <= len(sample.batches) == min(4, sample.updates_per_epoch)


def test_padding_is_no_work(batches):
    """Of arranged batches too, where rows of padding are added for the devices."""
    for sample in work.samples(batches, 4):
        sides = [
            np.concatenate([getattr(batch, side).ravel() for batch in sample.batches])
            for side in ("source", "target")
        ]
        n = len(sample.batches)
        assert sample.work.source_tokens == (sides[0] != 0).sum() / n
        assert sample.work.target_tokens == (sides[1] != 0).sum() / n
        assert sample.work.pairs == (sides[1] == EOS).sum() / n
        assert (sides[1] == 0).any()


def test_operations_of_an_update_by_hand(base_config):
    """One pair of 2 source and 3 target tokens: products forth, and twice back."""
    model = replace(
        base_config,
        {
            "model.num_layers": 1,
            "model.d_model": 10,
            "model.d_ff": 7,
            "model.num_heads": 1,
            "model.d_k": 5,
            "model.d_v": 3,
        },
    ).model
    projections = 2 * 10 * (5 + 5 + 3 + 3)  # query, key, value and output, a token
    feed_forward = 2 * 10 * 7 * 2
    encoder = 2 * (projections + feed_forward) + 2 * 2 * 2 * (5 + 3)
    own = 3 * projections + 2 * 3 * 3 * (5 + 3)
    # Keys and values of the memory are those of 2 tokens, queries of 3.
    memory = 3 * 2 * 10 * (5 + 3) + 2 * 2 * 10 * (5 + 3) + 2 * 3 * 2 * (5 + 3)
    logits = 2 * 3 * 10 * 23
    forward = encoder + own + memory + 3 * feed_forward + logits
    found = work.training_flops(model, 23, work.Work(1, 2, 3))
    assert found == 3 * forward


def test_rates_are_work_over_seconds():
    found = work.rates(work.Work(8, 100.0, 60.0), flops=4e9, seconds=0.5)
    assert found == work.Rates(200.0, 120.0, 8e9)


def test_epoch_weighs_shapes_by_their_updates():
    short, long = work.Work(10, 40, 50), work.Work(3, 60, 30)
    seconds, rates = work.epoch_rates([(3, short, 2e6, 0.1), (1, long, 4e6, 0.7)])
    assert seconds == pytest.approx(1.0)
    # Not the mean of the shapes' own rates, which is 271 target tokens a second.
    assert rates == pytest.approx((3 * 40 + 60, 3 * 50 + 30, 10e6))
