"""``verify``: says what holds, and exits 1 where a fault is planted."""

import json

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from experiments import command, verify
from tests.experiments.tiny_sweeps import folder_of
from transformer_ablation import parallel
from transformer_ablation.data.batches import TrainBatches
from transformer_ablation.model import banded, encoder_decoder, transformer
from transformer_ablation.model.neighbourhood import slot_mask
from transformer_ablation.model.packed import places

PACKED = "--config.data.packed_length=64"


@pytest.fixture
def check(tmp_path_factory, capsys):
    """Runs ``verify`` on the tiny sweep: exit code and findings by name."""
    folder = folder_of(tmp_path_factory)

    def run(name, *more):
        code = command.run(
            verify.COMMAND,
            [
                f"--config={folder / 'tiny.py'}",
                f"--config.data.directory={folder / 'corpus'}",
                f"--cache={folder / 'cache'}",
                f"--check={name}",
                "--format=json",
                *more,
            ],
        )
        out = capsys.readouterr().out
        return code, {f["check"]: f for f in json.loads(out)["checks"]} if out else {}

    return run


def test_everything_holds(check):
    code, found = check("all", PACKED)
    assert code == 0 and list(found) == ["devices", "resume", "packed", "decode"]
    assert all(finding["equal"] is True for finding in found.values())
    assert found["packed"]["figures"]["pairs"] > 8
    assert found["devices"]["figures"]["count"] == 4
    assert found["resume"]["figures"]["different"] == 0
    assert found["decode"]["figures"]["missed"] == 0


@pytest.mark.parametrize(
    "dtype", ["bfloat16", pytest.param("float16", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "name", ["resume", "packed", pytest.param("devices", marks=pytest.mark.slow)]
)
def test_half_precision_holds(check, name, dtype):
    code, found = check(name, PACKED, f"--config.model.dtype={dtype}")
    assert code == 0 and found[name]["equal"] is True, found


@pytest.mark.parametrize(
    "dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)]
)
def test_mean_of_means_is_caught(check, monkeypatch, dtype):
    """Every device divides by its own tokens, and the means are averaged."""

    def mean_of_means(local):
        gradients, sums = local
        own = jax.tree.map(lambda g: g / jnp.maximum(sums.tokens, 1), gradients)
        total = jax.tree.map(lambda x: lax.psum(x, parallel.AXIS), sums)
        mean = jax.tree.map(lambda g: lax.pmean(g, parallel.AXIS), own)
        return jax.tree.map(lambda g: g * total.tokens, mean), total

    monkeypatch.setattr(parallel, "sum_over_devices", mean_of_means)
    code, found = check("devices", f"--config.model.dtype={dtype}")
    assert code == 1 and found["devices"]["equal"] is False
    figures = found["devices"]["figures"]
    assert figures["gradient"] > 2 * figures["gradient_allowed"]


def test_data_position_that_is_not_restored_is_caught(check, monkeypatch):
    iterate = TrainBatches.iterate
    monkeypatch.setattr(
        TrainBatches,
        "iterate",
        lambda self, start, stop, count: iterate(self, 0, stop - start, count),
    )
    code, found = check("resume")
    assert code == 1 and found["resume"]["figures"]["different"] > 100


def test_optimizer_that_is_not_restored_is_caught(check, monkeypatch):
    replicate = parallel.replicate

    def forgetful(tree):
        return replicate(
            tree._replace(optimizer=jax.tree.map(jnp.zeros_like, tree.optimizer))
        )

    monkeypatch.setattr(parallel, "replicate", forgetful)
    code, found = check("resume")
    assert code == 1 and found["resume"]["figures"]["different"] > 100


def sees_every_sequence(queries, keys):
    """A leak: nothing keeps the sequences of a row apart."""
    return jnp.ones((len(queries[0]), 1, queries[0].shape[1], keys[0].shape[1]), bool)


def counts_through(tokens_BL, eos_id):
    """Positions that go on from one sequence of a row to the next."""
    found = places(tokens_BL, eos_id)
    index_BL = jnp.broadcast_to(jnp.arange(tokens_BL.shape[1]), tokens_BL.shape)
    return found._replace(position_BL=index_BL)


def starts_once(tokens_BL, eos_id):
    """A row's first sequence alone begins with the begin of sentence."""
    return jnp.zeros(tokens_BL.shape, bool).at[:, 0].set(True)


@pytest.mark.parametrize(
    "module, name, planted, dtype",
    [
        (banded, "same_sequence", sees_every_sequence, "float32"),
        (encoder_decoder, "places", counts_through, "float32"),
        (encoder_decoder, "starts", starts_once, "float32"),
        pytest.param(
            *(transformer, "same_sequence", sees_every_sequence, "float16"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(encoder_decoder, "places", counts_through, "bfloat16"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_sequences_of_a_row_that_are_not_alone_are_caught(
    check, monkeypatch, module, name, planted, dtype
):
    monkeypatch.setattr(module, name, planted)
    code, found = check("packed", PACKED, f"--config.model.dtype={dtype}")
    assert code == 1 and found["packed"]["equal"] is False
    figures = found["packed"]["figures"]
    assert figures["gradient"] > 2 * figures["gradient_allowed"]


def test_rows_of_one_pair_have_nothing_to_compare(check):
    code, found = check("packed")
    assert code == 0 and found["packed"]["equal"] is None
    assert found["packed"]["text"] == "A row of a batch holds one pair"


@pytest.mark.parametrize("shift", [-1, 1])
def test_cache_that_is_off_by_one_is_caught(check, monkeypatch, shift):
    """The position at hand is hidden, or an empty one is seen."""
    monkeypatch.setattr(
        transformer,
        "slot_mask",
        lambda origin, position, *rest: slot_mask(origin, position + shift, *rest),
    )
    code, found = check("decode")
    assert code == 1 and found["decode"]["figures"]["logits"] > 1e-3


def test_one_device_has_nothing_to_compare(check):
    with parallel.at_most(1):
        code, found = check("devices")
    assert code == 0 and found["devices"]["equal"] is None


@pytest.mark.parametrize(
    "flag",
    [
        "--config.model.norm=pre",
        pytest.param("--config.model.positions=learned", marks=pytest.mark.slow),
    ],
)
def test_decoding_of_other_models_holds(check, flag):
    code, found = check("decode", flag)
    assert code == 0, found


def test_unknown_check_is_refused(check):
    assert check("decoding") == (2, {})
