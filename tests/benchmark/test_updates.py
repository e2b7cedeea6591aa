"""Updates are those of training; waiting is what a fake clock says it is."""

import jax
import numpy as np
import pytest

from tests.benchmark.test_timing import FakeClock
from tests.train import tiny_training as tiny
from transformer_ablation import parallel
from transformer_ablation.benchmark.updates import Updater, Watched, without_dropout
from transformer_ablation.data.batches import Batch
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.train import step as steps


def make_case(**changes):
    config = tiny.make_config({**tiny.SETTINGS, **changes})
    model = Transformer(config.model, tiny.VOCABULARY, pad_id=0, bos_id=2, eos_id=3)
    return config, model, tiny.arrange(tiny.make_batch(), 4)


def straight(config, model, batch, rates_of):
    """Parameters after two updates, without what is tested here."""
    update, state = steps.make_update(model, config), steps.create_state(model, config)
    key = steps.purpose_key(config.train.seed, steps.DROPOUT)
    for number in (1, 2):
        state, _ = update(state, batch, key, rates_of(steps.rates_at(config, number)))
    return parallel.on_host(state.params)


@pytest.fixture(scope="module")
def case():
    return make_case()


@pytest.mark.parametrize("dropout", [True, False])
def test_updates_are_those_of_training(case, dropout):
    config, model, batch = case
    updater = Updater(model, config)
    for _ in range(2):
        updater.update(batch, dropout=dropout)
    rates = (lambda rates: rates) if dropout else without_dropout
    expected = straight(config, model, batch, rates)
    assert tiny.same_bits(parallel.on_host(updater.params), expected)


def test_no_place_of_dropout_is_left_without_it():
    rates = without_dropout(tiny.WITH)
    assert rates[:2] == tiny.WITH[:2] and rates[2:] == (None, None, None)


def test_update_returns_when_it_is_done(case):
    config, model, batch = case
    updater = Updater(model, config)
    updater.update(batch)
    assert all(leaf.is_ready() for leaf in jax.tree.leaves(updater.params))


def test_loop_counts_its_updates_and_goes_on_from_them(case):
    config, model, batch = case
    updater = Updater(model, config)
    updater.update(batch)
    found = updater.loop([batch] * 5, seconds=0)
    assert (found.updates, found.target_tokens) == (3, 3 * sum(tiny.TARGET_LENGTHS))
    assert found.source_tokens == 3 * sum(tiny.SOURCE_LENGTHS)
    assert 0 <= found.wait_share < 1
    moments = parallel.on_host(updater._state.optimizer)
    counts = [x for x in jax.tree.leaves(moments) if np.issubdtype(x.dtype, np.integer)]
    assert counts == [4]  # of all four updates, the loop's and the one before


def seen_by(clock, waits, steps_, seconds, closed=None):
    """What ``Watched`` says of batches that come and are used in these times."""

    def batches():
        try:
            for wait in waits:
                clock.now += wait
                yield Batch(None, None, 5, 7)
        finally:
            if closed is not None:
                closed.append(True)

    watched = Watched(batches(), seconds, clock)
    for number, _ in enumerate(watched):
        clock.now += steps_[number]
    return watched.loop(clock.now)


def test_first_wait_does_not_count_and_others_do():
    found = seen_by(FakeClock(), [9.0, 0.5, 0.25, 0.25], [1.0] * 4, seconds=100)
    assert (found.updates, found.source_tokens, found.target_tokens) == (4, 20, 28)
    assert (found.seconds, found.wait_seconds) == (5.0, 1.0)
    assert found.wait_share == 0.2


def test_batches_end_when_the_time_is_up_and_are_closed():
    closed = []
    found = seen_by(FakeClock(), [0.0] * 99, [1.0] * 99, seconds=5, closed=closed)
    assert found.updates == 5 and found.seconds == 5.0 and closed == [True]


def test_at_least_three_updates_are_made():
    assert seen_by(FakeClock(), [0.0] * 9, [50.0] * 9, seconds=1).updates == 3
