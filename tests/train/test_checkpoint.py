"""Checkpoints on disk: order, exactness, refusals, and training that goes on."""

import json

import jax
import numpy as np
import pytest

from configs.presets import get_preset
from tests.train.tiny_training import (
    VOCABULARY,
    leaves,
    same_bits,
    sequences,
)
from transformer_ablation import config as configs
from transformer_ablation import parallel
from transformer_ablation.data.batches import train_batches
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.train import integrity
from transformer_ablation.train import step as steps
from transformer_ablation.train.checkpoint import (
    CheckpointError,
    Checkpoints,
    read_facts,
)
from transformer_ablation.train.loop import Every, train
from transformer_ablation.train.optimizer import adam
from transformer_ablation.train.step import TrainState

VOCABULARY_HASH = "0123456789abcdef" * 4


def state_at(step, config, size=3):
    """A state without a model: leaves of different shapes, random to the last bit."""
    random = np.random.default_rng(step)
    params = {"kernel": np.zeros((2, size)), "norm": {"scale": np.zeros(5)}}
    params = jax.tree.map(np.float32, params)
    optimizer = jax.device_get(adam(config.optimizer).init(params))
    params, optimizer = jax.tree.map(
        lambda x: random.normal(size=x.shape).astype(x.dtype) if x.ndim else x,
        (params, optimizer),
    )
    return TrainState(np.int32(step), params, optimizer)


@pytest.fixture
def keeping(config):
    """The config with room for so many checkpoints."""
    return lambda count: configs.replace(config, {"train.keep_checkpoints": count})


@pytest.fixture
def opened(tmp_path):
    """``opened(config, hash)`` on one directory, each closed in the end."""
    managers = []

    def open_(config, vocabulary_hash=VOCABULARY_HASH):
        managers.append(Checkpoints(tmp_path / "run", config, vocabulary_hash))
        return managers[-1]

    yield open_
    for manager in managers:
        manager.close()


def save(checkpoints, config, *numbers):
    for step in numbers:
        checkpoints.save(state_at(step, config))
    checkpoints.wait()


def test_steps_are_in_numeric_order_and_the_newest_is_the_default(opened, keeping):
    config = keeping(3)
    save(opened(config), config, 9, 10, 100)
    again = opened(config)  # as another process sees them; as text, 9 is the last
    assert again.steps() == [9, 10, 100]
    like = state_at(0, config)
    assert same_bits(again.restore(like), state_at(100, config))
    for step in (9, 10):
        assert same_bits(again.restore(like, step), state_at(step, config))


def test_newest_are_kept(opened, keeping, tmp_path):
    config = keeping(2)
    checkpoints = opened(config)
    save(checkpoints, config, 8, 9, 10, 11)
    assert checkpoints.steps() == [10, 11]
    kept = {path.name for path in (tmp_path / "run").iterdir()}
    assert kept == {"10", "11"}


@pytest.mark.parametrize("minutes", [None, 0.5])
def test_checkpoint_of_a_stop_is_kept_until_the_next_only(opened, keeping, minutes):
    """Every fourth and the last, 10, are asked for; a stop, or the clock, came at 6."""
    changes = {"train.checkpoint_every_steps": 4, "train.steps": 10}
    changes["train.checkpoint_every_minutes"] = minutes
    config = configs.replace(keeping(2), changes)
    checkpoints = opened(config)
    save(checkpoints, config, 4)
    save(checkpoints, config, 6)
    assert (checkpoints.steps(), checkpoints.regular()) == ([4, 6], [4])
    again = opened(config)
    save(again, config, 8)
    assert (again.steps(), again.regular()) == ([4, 8], [4, 8])
    save(again, config, 10)
    assert again.steps() == [8, 10]


def test_reader_deletes_nothing(opened, keeping):
    save(opened(keeping(3)), keeping(3), 8, 9, 10)
    reader = opened(keeping(1))
    assert reader.steps() == [8, 9, 10]
    reader.close()
    assert opened(keeping(1)).steps() == [8, 9, 10]


def test_damaged_step_is_set_aside_and_can_be_made_again(opened, config, tmp_path):
    checkpoints = opened(config)
    save(checkpoints, config, 7, 8)
    place = checkpoints.set_aside(8)
    assert place == tmp_path / "damaged_checkpoints" / "8" and place.is_dir()
    assert checkpoints.steps() == [7]
    save(checkpoints, config, 8)
    assert checkpoints.steps() == [7, 8]


def test_restored_state_is_the_saved_one_in_tree_type_and_bits(opened, config):
    saved = state_at(7, config)
    save(opened(config), config, 7)
    shapes = jax.eval_shape(lambda: saved)
    found = opened(config).restore(shapes)
    assert same_bits(found, saved)
    assert jax.tree.structure(found) == jax.tree.structure(saved)
    assert int(found.step) == 7
    assert len(leaves(found.optimizer)) == 5  # count, and two moments of two leaves


def test_saved_values_are_those_of_the_moment_of_saving(opened, config):
    state = state_at(7, config)
    checkpoints = opened(config)
    checkpoints.save(state)
    state.params["kernel"][:] = -1  # as the next update does with donated buffers
    checkpoints.wait()
    assert same_bits(checkpoints.restore(state), state_at(7, config))


def test_facts_are_read_without_a_config(opened, config, tmp_path):
    save(opened(config), config, 7)
    facts = read_facts(tmp_path / "run", 7)
    assert configs.from_mapping(facts["config"]) == config
    assert facts["vocabulary_hash"] == VOCABULARY_HASH


REMEDY = "put back what it was trained with, or train in another run directory"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model.d_ff": 21}, "model.d_ff = 20, this run has 21"),
        ({"train.seed": 5}, "train.seed = 0, this run has 5"),
        (
            {"regularization.dropout_rate": 0.4, "data.tokens_per_batch": 70},
            "regularization.dropout_rate = 0.1, this run has 0.4",
        ),
    ],
)
def test_other_config_is_refused_by_its_first_difference(
    opened, config, tmp_path, changes, said
):
    save(opened(config), config, 7)
    other = opened(configs.replace(config, changes))
    with pytest.raises(CheckpointError) as caught:
        other.restore(state_at(7, config))
    assert str(caught.value) == (
        f"{tmp_path / 'run'}/7: was trained with {said}; {REMEDY}"
    )


def test_checkpoint_without_a_field_of_the_config_is_of_another_version(
    opened, config, tmp_path
):
    save(opened(config), config, 7)
    (path,) = (tmp_path / "run/7/facts").glob("metadata")
    facts = json.loads(path.read_text())
    del facts["config"]["data"]["packed_length"]
    path.write_text(json.dumps(facts))
    integrity.seal(tmp_path / "run/7")
    with pytest.raises(CheckpointError) as caught:
        opened(config).restore(state_at(7, config))
    assert str(caught.value).startswith(
        f"{tmp_path / 'run'}/7: was made by another version of this program "
        "(data.packed_length: missing"
    )


FREE_CHANGES = {
    "train.steps": 7,
    "train.evaluate_every_steps": None,
    "train.checkpoint_every_minutes": 3.0,
    "train.log_every_steps": 17,
    "train.sample_sentences": 3,
    "train.attention_images": True,
    "data.test_split": None,
    "data.directory": "elsewhere",
    "decode.beam_size": 7,
    "decode.average_checkpoints": 2,
    "train.keep_checkpoints": 2,
}


def test_fields_that_move_no_saved_number_are_free(opened, config):
    save(opened(config), config, 7)
    other = opened(configs.replace(config, FREE_CHANGES))
    assert same_bits(other.restore(state_at(0, config)), state_at(7, config))


def test_other_vocabulary_is_refused(opened, config):
    save(opened(config), config, 7)
    other = opened(config, "fedcba9876543210" * 4)
    with pytest.raises(CheckpointError, match="0123456789ab, .* fedcba987654; put"):
        other.restore(state_at(7, config))


def test_other_tree_is_refused_by_its_first_difference(opened, config):
    save(opened(config), config, 7)
    checkpoints, like = opened(config), state_at(7, config)
    wider = state_at(7, config, size=4)
    with pytest.raises(
        CheckpointError,
        match=r"/7: params/kernel is float32\[2,3\] in the checkpoint and "
        r"float32\[2,4\] in this model",
    ):
        checkpoints.restore(wider)
    like.params["norm"]["bias"] = np.zeros(5, np.float32)
    with pytest.raises(
        CheckpointError,
        match=r"params/norm/bias is absent in the checkpoint and float32\[5\]",
    ):
        checkpoints.restore(like)
    del like.params["norm"]
    with pytest.raises(
        CheckpointError,
        match=r"params/norm/scale is float32\[5\] in the checkpoint and absent",
    ):
        checkpoints.restore(like)


@pytest.mark.parametrize(
    ("changes", "field", "leaf"),
    [
        (
            {"model.num_layers": 3},
            "model.num_layers = 2, this run has 3",
            "params/decoder/cross_attention/key/kernel is float32[2,12,14] in the "
            "checkpoint and float32[3,12,14] in this model",
        ),
        (
            {"model.d_ff": 24},
            "model.d_ff = 20, this run has 24",
            "params/decoder/feed_forward/inner/bias is float32[2,20] in the "
            "checkpoint and float32[2,24] in this model",
        ),
        (
            "tensor2tensor_2017_06",
            "model.sinusoids = 'interleaved', this run has 'halves'",
            "params/decoder/cross_attention/key/bias is absent in the checkpoint and "
            "float32[2,14] in this model",
        ),
    ],
)
def test_other_model_is_refused_by_field_and_array(
    opened, config, tmp_path, changes, field, leaf
):
    def shapes(config):
        model = Transformer(config.model, VOCABULARY, pad_id=0, bos_id=2, eos_id=3)
        return steps.state_shapes(model, config)

    state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes(config))
    checkpoints = opened(config)
    checkpoints.save(state)
    checkpoints.wait()
    if isinstance(changes, str):
        changes = get_preset(changes)(config)
    other = configs.replace(config, changes)
    with pytest.raises(CheckpointError) as caught:
        opened(other).restore(shapes(other))
    assert str(caught.value) == (
        f"{tmp_path / 'run'}/0: was trained with {field}; {leaf}; {REMEDY}"
    )


def test_step_that_is_not_there_is_refused_with_those_that_are(opened, config):
    checkpoints = opened(config)
    with pytest.raises(CheckpointError, match="no checkpoint; there are: none"):
        checkpoints.restore(state_at(7, config))
    save(checkpoints, config, 9, 10, 100)
    with pytest.raises(
        CheckpointError, match="no checkpoint of update 11; there are: 9, 10, 100$"
    ):
        checkpoints.restore(state_at(7, config), 11)


def tokens():
    """Eleven pairs: batches of five, five and one, in an order of their own."""
    random = np.random.default_rng(2)
    source, target = np.tile([3, 6, 1, 4, 2, 5], 2)[:11], np.tile([7, 2, 5, 4], 3)[:11]
    return TokenizedSplit(
        Ragged.of(sequences(random, source)), Ragged.of(sequences(random, target))
    )


def train_until(last, state, update, config, checkpoints):
    """As a process does: the hook saves, the losses are written down."""
    losses = []

    class Losses:
        def needs_state(self, step):
            return False

        def after(self, report, state):
            *scalars, norms = report.metrics
            norms = {name: np.asarray(x).tolist() for name, x in norms.items()}
            losses.append((report.step, *scalars, norms))

    batches = train_batches(config, tokens())
    state = train(
        state,
        update,
        batches.iterate(int(state.step), last, parallel.device_count()),
        key=steps.purpose_key(config.train.seed, steps.DROPOUT),
        rates_at=lambda number: steps.rates_at(config, number),
        hooks=[Losses(), Every(lambda _, s: checkpoints.save(s), None, last)],
    )
    checkpoints.wait()
    return jax.device_get(state), losses


def test_resumed_run_is_the_straight_one_bit_for_bit(
    model, config, start, update, opened, tmp_path
):
    straight = Checkpoints(tmp_path / "straight", config, VOCABULARY_HASH)
    expected, losses = train_until(
        10, parallel.replicate(start), update, config, straight
    )
    straight.close()
    _, first = train_until(5, parallel.replicate(start), update, config, opened(config))
    checkpoints = opened(config)
    assert checkpoints.steps() == [5]
    restored = checkpoints.restore(steps.state_shapes(model, config))
    final, second = train_until(
        10, parallel.replicate(restored), update, config, checkpoints
    )
    assert same_bits(final, expected)
    assert first + second == losses
    assert [step for step, *_ in losses] == list(range(1, 11))
    assert same_bits(checkpoints.restore(final), final)
