"""The estimate of memory against hand arithmetic and against XLA's own account."""

import jax
import numpy as np
import pytest

from configs import base as base_file
from transformer_ablation import parallel
from transformer_ablation.config import from_mapping, replace
from transformer_ablation.model.memory import update_memory
from transformer_ablation.runs.building import build_model
from transformer_ablation.train import step


@pytest.fixture
def config(tiny_config):
    """One layer, so that the arithmetic fits a docstring; rows of 40 positions."""
    changes = {"model.num_layers": 1, "model.rematerialize": "none"}
    changes["data.packed_length"] = 40
    changes["data.max_train_length"] = 39
    return replace(tiny_config, {**changes, "data.length_buckets": 1})


def test_estimate_by_hand(config):
    """d 12, F 20, H 2, K 7, U 5, V 600, rows of 40, 512 positions.

    An attention keeps 2 * (2*7 + 2*5 + 40) = 128 numbers a position, a feed-forward
    network 25, each of five sublayers 4 * 12; a decoder layer, of two attentions and
    three sublayers, comes on top. Attention has 2*12*2*12 = 576 parameters, a
    feed-forward network 2*12*20 + 32 = 512, a norm 24, embeddings 7200.
    """
    parameters = 3 * 576 + 2 * 512 + 5 * 24 + 7200
    decoder = 2 * 128 + 25 + 3 * 48
    layers = 512 * (3 * 128 + 2 * 25 + 5 * 48 + decoder)
    logits = 512 * 600 * 8
    expected = 16 * parameters + 4 * layers + logits
    assert update_memory(config) == expected
    half = replace(config, {"model.dtype": "bfloat16"})
    assert update_memory(half) == expected - 2 * layers


def test_rematerialisation_keeps_inputs_and_maps(config):
    """An attention's maps put out 2 * (2*7 + 5) + 12 = 50, a network's 20 + 12."""
    state = update_memory(config) - 4 * 512 * (3 * 128 + 2 * 25 + 5 * 48 + 425)
    cheap = replace(config, {"model.rematerialize": "cheap"})
    kept = 2 * 12 + 3 * 50 + 2 * 32 + 425
    assert update_memory(cheap) == state + 4 * 512 * kept
    least = replace(config, {"model.rematerialize": "layers"})
    assert update_memory(least) == state + 4 * 512 * (2 * 12 + 425)


def test_additive_scores_keep_a_sum_for_each_pair_and_feature(config):
    """Of 40 keys, 2 heads, 7 features, in three attentions and the two on top."""
    additive = replace(config, {"model.compatibility": "additive"})
    kept = 512 * (3 + 2) * 40 * 2 * 7
    parameters = 3 * 2 * 7  # the vector that weighs them
    assert update_memory(additive) == (
        update_memory(config) + 4 * kept + 16 * parameters
    )


def test_decoder_of_its_own_depth_is_counted(config):
    """Two more decoder layers of two attentions, a network and three sublayers."""
    deeper = replace(config, {"model.decoder_layers": 3})
    parameters = 2 * 576 + 512 + 3 * 24
    more = 2 * (16 * parameters + 4 * 512 * 425)
    assert update_memory(deeper) == update_memory(config) + more


def test_more_logits_than_a_device_takes_at_once_are_not_counted(config):
    """512 positions of a million pieces: 2^27 of 2^29 logits stand in memory."""
    million = replace(config, {"data.vocabulary_size": 1_000_000})
    logits = update_memory(million) - update_memory(config)
    assert logits == 16 * 12 * (10**6 - 600) + 8 * (2**27 - 512 * 600)


@pytest.mark.parametrize(
    ("kept", "packed", "gibibytes"),
    [
        ("none", 256, 17.9), ("cheap", 256, 9.7), ("layers", 256, 3.7),
        ("none", None, 14.8), ("cheap", None, 9.4), ("layers", None, 3.3),
    ],
)  # fmt: skip
def test_estimate_of_the_papers_base_is_near_what_xla_planned(kept, packed, gibibytes):
    """The figures of docs/numbers.md: a CPU's, which takes fewer logits at a time."""
    changes = {"model.rematerialize": kept, "data.packed_length": packed}
    base = replace(
        from_mapping(base_file.get_config()), {"data.length_buckets": 1, **changes}
    )
    found = update_memory(base) - 8 * (2**27 - 2**21)
    assert 0.8 < gibibytes * 2**30 / found < 1.35


def test_accumulation_divides_all_but_the_state(config):
    once = update_memory(config)
    twice = update_memory(replace(config, {"optimizer.accumulation_steps": 2}))
    state = 16 * (3 * 576 + 2 * 512 + 5 * 24 + 7200)
    assert twice - state == (once - state) / 2


def test_estimate_is_of_the_size_that_xla_allots(config, monkeypatch):
    """Within a factor: XLA frees and fuses as it sees fit."""
    sizes = {
        "model.d_model": 64, "model.d_ff": 256, "model.d_k": 16, "model.d_v": 16,
        "model.num_heads": 4, "data.vocabulary_size": 3000,
    }  # fmt: skip
    config, made = replace(config, sizes), []
    monkeypatch.setattr(parallel, "map_update", lambda update: made.append(update))
    model = build_model(config, config.data.vocabulary_size)
    step.make_update(model, config)
    rows = jax.ShapeDtypeStruct(
        (1, 1, config.data.tokens_per_batch // 40, 40), np.int32
    )
    mapped = jax.jit(
        jax.vmap(
            made[0], in_axes=(None, 0, None, None), out_axes=None,
            axis_name=parallel.AXIS,
        ),
        donate_argnums=(0,),
    )  # fmt: skip
    key = step.purpose_key(0, step.DROPOUT)
    given = (
        step.state_shapes(model, config),
        (rows, rows),
        key,
        step.rates_at(config, 1),
    )
    found = mapped.lower(*given).compile().memory_analysis()
    allotted = found.temp_size_in_bytes + found.argument_size_in_bytes
    allotted += found.output_size_in_bytes - found.alias_size_in_bytes
    assert 0.5 < allotted / update_memory(config) < 1.2
