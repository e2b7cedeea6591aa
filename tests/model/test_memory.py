"""The estimate of memory against hand arithmetic and against XLA's own account."""

import jax
import numpy as np
import pytest

from transformer_ablation import parallel
from transformer_ablation.config import replace
from transformer_ablation.model.memory import update_memory
from transformer_ablation.runs.building import build_model
from transformer_ablation.train import step


@pytest.fixture
def config(tiny_config):
    """One layer, so that the arithmetic fits a docstring; rows of 40 positions."""
    changes = {"model.num_layers": 1, "data.packed_length": 40}
    changes["data.max_train_length"] = 39
    return replace(tiny_config, {**changes, "data.length_buckets": 1})


def test_estimate_by_hand(config):
    """d 12, F 20, H 2, K 7, U 5, V 600, rows of 40, 512 positions.

    An attention keeps 2 * (2*7 + 2*5 + 2*40) = 208 numbers a position, a feed-forward
    network 40, each of five sublayers 3 * 12. Attention has 2*12*2*12 = 576
    parameters, a feed-forward network 2*12*20 + 32 = 512, a norm 24, embeddings 7200.
    """
    parameters = 3 * 576 + 2 * 512 + 5 * 24 + 7200
    layers = 512 * (3 * 208 + 2 * 40 + 5 * 36)
    logits = 512 * 600 * 8
    expected = 16 * parameters + 4 * layers + logits
    assert update_memory(config) == expected
    half = replace(config, {"model.dtype": "bfloat16"})
    assert update_memory(half) == expected - 2 * layers


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
