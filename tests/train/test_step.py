"""The update of a real model: one whatever the devices, random by (seed, update)."""

import jax
import numpy as np
import pytest

from tests.train.tiny_training import (
    VOCABULARY,
    WITH,
    WITHOUT,
    arrange,
    assert_close,
    joined_rows,
    leaves,
    make_batch,
    make_config,
    real,
    same_bits,
    stacked_rows,
)
from transformer_ablation import config as configs
from transformer_ablation import parallel
from transformer_ablation.model.dropout import dropout
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.train import step as steps
from transformer_ablation.vocabulary import BOS, EOS, PAD


def run_updates(update, start, rates, key, devices, accumulation=1, number=2):
    """State and metrics of some updates spread in some way, as numpy."""
    with pytest.MonkeyPatch.context() as patch:
        # pmap takes the first devices where there are more than shards.
        patch.setattr(parallel, "device_count", lambda: devices)
        state = parallel.replicate(start)
        for seed in range(number):
            batch = arrange(make_batch(seed), devices, accumulation)
            state, metrics = update(state, batch, key, rates)
    return jax.device_get(state), jax.device_get(metrics)


KEY, OTHER_KEY = (steps.purpose_key(seed, steps.DROPOUT) for seed in (3, 4))


@pytest.fixture
def updated(start, update):
    """``run_updates`` of the small Transformer on four devices."""

    def run(rates, devices=4, accumulation=1, key=KEY, start=start, number=2):
        return run_updates(update, start, rates, key, devices, accumulation, number)

    return run


def assert_moved(found, start):
    """By far more than ``assert_close`` tolerates."""
    start = leaves(start)
    for path, value in leaves(found).items():
        moved = np.abs(value - start[path])
        assert np.median(moved) > 1e-3 * np.abs(value).max(), path


@pytest.mark.parametrize("rates", [WITHOUT, WITH], ids=["plain", "dropout"])
@pytest.mark.parametrize(
    ("devices", "accumulation"),
    [pytest.param(4, 1, marks=pytest.mark.slow), (2, 2)],
)
def test_update_of_transformer_is_one_however_it_is_spread(
    updated, start, rates, devices, accumulation
):
    """Every place of dropout, also where rows are padding."""
    alone, metrics = updated(rates, devices=1)
    found, found_metrics = updated(rates, devices, accumulation)
    assert_close(found, alone)
    assert_close(found_metrics, metrics)
    assert_moved(alone.params, start.params)


class Embeddings:
    """Two tables and a dropout between them: compiles in no time."""

    pad_id, bos_id = PAD, BOS

    def init(self, key, source, target):
        first, second = jax.random.normal(key, (2, VOCABULARY, 5))
        return {"params": {"input": first, "output": second}}

    def apply(self, variables, source, target, noise, packed, method):
        assert method == "factors"
        params = variables["params"]
        x_B1D = params["input"][source].sum(axis=1, keepdims=True)
        x_BTD = params["input"][target] + x_B1D
        x_BTD = dropout(x_BTD, noise.dropout_rate, noise.words, noise.first_row)
        return x_BTD, params["output"]


@pytest.fixture(scope="module")
def embeddings(config):
    start = jax.device_get(steps.create_state(Embeddings(), config))
    return steps.make_update(Embeddings(), config), start


@pytest.mark.parametrize("rates", [WITHOUT, WITH], ids=["plain", "dropout"])
@pytest.mark.parametrize(("devices", "accumulation"), [(2, 1), (3, 1), (1, 4), (3, 2)])
def test_update_is_one_however_it_is_spread(embeddings, rates, devices, accumulation):
    alone, metrics = run_updates(*embeddings, rates, KEY, 1)
    found, found_metrics = run_updates(*embeddings, rates, KEY, devices, accumulation)
    assert_close(found, alone)
    assert_close(found_metrics, metrics)
    assert_moved(alone.params, embeddings[1].params)


@pytest.mark.parametrize("rates", [WITHOUT, WITH], ids=["plain", "dropout"])
def test_packed_update_is_one_however_it_is_spread(config, start, rates):
    """Five rows of two sequences each, on one device and on four."""
    config = configs.replace(config, {"data.packed_length": 14})
    model = Transformer(config.model, VOCABULARY, pad_id=PAD, bos_id=BOS, eos_id=EOS)
    update, found = steps.make_update(model, config), []
    for devices in (1, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parallel, "device_count", lambda n=devices: n)
            first, second = make_batch(0), make_batch(1)
            joined = joined_rows(first, second)
            result = update(
                parallel.replicate(start), arrange(joined, devices), KEY, rates
            )
            found.append(jax.device_get(result))
    # Long rows sum more: a missed mask would differ by a thousand times this.
    assert_close(found[1], found[0], 1e-4)
    assert found[0][1].tokens == 2 * 19
    if rates is WITHOUT:
        # The same pairs in ten rows: nothing but the rows has changed.
        apart = configs.replace(config, {"data.packed_length": None})
        batch = stacked_rows(first, second)
        update = steps.make_update(model, apart)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parallel, "device_count", lambda: 1)
            alone = update(parallel.replicate(start), arrange(batch, 1), KEY, rates)
        assert_close(found[0], jax.device_get(alone), 1e-4)


def test_spread_batch_has_an_uneven_shard_and_one_of_padding():
    shards = arrange(make_batch(), 4).target
    assert real(shards).sum(axis=(1, 2, 3)).tolist() == [9, 6, 4, 0]


@pytest.mark.parametrize(
    "place", ["dropout", "attention_dropout", "activation_dropout"]
)
def test_dropout_of_each_place_changes_the_update(updated, place):
    plain = updated(WITHOUT, number=1)[1]
    dropped = updated(WITHOUT._replace(**{place: 0.5}), number=1)[1]
    assert abs(plain.loss - dropped.loss) > 1e-4 * plain.loss


def test_metrics_divide_the_sums_of_all_devices_once(updated, start, model):
    _, metrics = updated(WITHOUT, number=1)
    batch = make_batch(0)
    logits_BTV = jax.jit(model.apply)(
        {"params": start.params}, batch.source, batch.target
    )
    logits_BTV = np.asarray(logits_BTV, np.float64)
    log_p_BTV = logits_BTV - np.log(np.exp(logits_BTV).sum(-1, keepdims=True))
    gold_BT = np.take_along_axis(log_p_BTV, batch.target[..., None], -1)[..., 0]
    nll_BT = np.where(real(batch.target), -gold_BT, 0)
    loss_BT = 0.9 * nll_BT - 0.1 * log_p_BTV.mean(-1) * real(batch.target)
    np.testing.assert_allclose(metrics.nll, nll_BT.sum() / 19, rtol=1e-5)
    np.testing.assert_allclose(metrics.loss, loss_BT.sum() / 19, rtol=1e-5)
    assert metrics.tokens == 7 + 2 + 5 + 1 + 4
    # The mean of the devices' means is another number.
    means = [nll_BT[0:2].sum() / 9, nll_BT[2:4].sum() / 6, nll_BT[4:].sum() / 4]
    assert abs(np.mean(means) - metrics.nll) > 1e-3 * metrics.nll


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"learning_rate": 1e-7},
        {"label_smoothing": 0.0},
        {"dropout": 0.0},
        {"attention_dropout": 0.5, "activation_dropout": 0.0},
    ],
)
def test_rates_and_keys_are_arguments_that_compile_nothing(
    updated, update, start, compilations, changes
):
    updated(WITH)
    before = len(compilations)
    state = parallel.replicate(start)
    assert len(compilations) > before  # what is compiled is seen
    batch, before = arrange(make_batch(), 4), len(compilations)
    for key in (KEY, OTHER_KEY):
        state, _ = update(state, batch, key, WITH._replace(**changes))
    assert len(compilations) == before


def test_rates_are_those_of_the_call(updated, start):
    state, metrics = updated(WITHOUT._replace(learning_rate=0.0), number=1)
    assert same_bits(state.params, start.params)
    assert abs(metrics.loss - metrics.nll) > 1e-4 * metrics.nll
    _, metrics = updated(WITHOUT._replace(label_smoothing=0.0), number=1)
    np.testing.assert_allclose(metrics.loss, metrics.nll, rtol=1e-6)


def test_restored_state_compiles_nothing(updated, update, start, compilations):
    """A state of numpy, replicated, is placed as the one that an update returns."""
    updated(WITH)
    state = parallel.replicate(jax.tree.map(np.array, start))
    batch, before = arrange(make_batch(), 4), len(compilations)
    for _ in range(2):
        state, _ = update(state, batch, KEY, WITH)
    assert len(compilations) == before


def test_equal_seeds_give_equal_bits_and_others_do_not(updated):
    first = updated(WITH)
    assert same_bits(updated(WITH), first)
    assert not same_bits(updated(WITH, key=OTHER_KEY), first)
    # Without dropout nothing is random.
    assert same_bits(updated(WITHOUT), updated(WITHOUT, key=OTHER_KEY))


def test_noise_is_a_function_of_the_number_of_the_update(updated, start):
    later = start._replace(step=np.int32(5))
    for rates, same in ((WITHOUT, True), (WITH, False)):
        a = updated(rates, start=start, number=1)
        b = updated(rates, start=later, number=1)
        assert (a[1].loss == b[1].loss) is np.bool_(same)
        assert (a[0].step, b[0].step) == (1, 6)


def test_initial_parameters_are_a_function_of_the_seed(model, config, start):
    again = steps.create_state(model, config)
    assert same_bits(jax.device_get(again), start)
    other = configs.replace(config, {"train.seed": config.train.seed + 1})
    other = leaves(jax.device_get(steps.create_state(model, other)).params)
    random = [path for path in other if "kernel" in path or "embedding" in path]
    assert len(random) > 10
    for path in random:
        assert (other[path] != leaves(start.params)[path]).mean() > 0.99, path


def test_purposes_and_seeds_have_keys_of_their_own():
    keys = [
        tuple(jax.random.key_data(steps.purpose_key(seed, purpose)).tolist())
        for seed in range(4)
        for purpose in (steps.INITIALISE, steps.DROPOUT)
    ]
    assert len(set(keys)) == 8


def test_state_shapes_are_those_of_the_state(model, config, start):
    def described(tree):
        return jax.tree.map(lambda x: (x.shape, np.dtype(x.dtype).name), tree)

    assert described(steps.state_shapes(model, config)) == described(start)


def test_rates_are_those_of_the_config():
    config = make_config({"regularization.dropout_rate": 0.25})
    rates = steps.rates_at(config, 4000)
    assert rates.learning_rate == pytest.approx(6.987712e-4, rel=5e-7)
    # Places whose rate is 0 in the config are left out of the program.
    assert rates[1:] == (0.1, 0.25, None, None)
    with pytest.raises(ValueError, match="updates count from 1, not 0"):
        steps.rates_at(config, 0)
