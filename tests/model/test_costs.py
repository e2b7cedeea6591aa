"""Parameters, operations and memory of the other architectures: by hand, by XLA."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_models import VARIANTS, fields_of, variant
from tests.model.numpy_transformer import SMALL, VOCABULARY, parameter_shapes
from transformer_ablation import config as configs
from transformer_ablation import parallel
from transformer_ablation.model import recurrence
from transformer_ablation.model.accounting import (
    TRAINING_OVER_FORWARD,
    forward_flops,
    paper_counts,
    parameter_counts,
    step_flops,
)
from transformer_ablation.model.architectures import new_model
from transformer_ablation.model.memory import update_memory
from transformer_ablation.runs.building import build_model
from transformer_ablation.train import step
from transformer_ablation.train.loss import loss_sums

# Modules whose parameters are counted as attention.
ATTENTION = ("cross_attention", "readout", "query", "output")


@pytest.mark.parametrize("name", VARIANTS)
def test_counts_equal_the_shapes(name):
    module = variant(name)
    recurrent = module.config.architecture == "recurrent"
    found: dict[str, int] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(parameter_shapes(module)):
        first, owner = path[0].key, path[-2].key if len(path) > 1 else ""
        group = "recurrence" if recurrent else "convolution"
        group = "attention" if owner in ATTENTION else group
        if "_embedding" in first or "_positions" in first:
            group = first.rpartition("_")[2]
        found[group] = found.get(group, 0) + math.prod(leaf.shape)
    counts = parameter_counts(module.config, VOCABULARY)
    assert counts.pop("total") == sum(found.values())
    assert {k: v for k, v in counts.items() if v} == found


def small(architecture, **fields):
    return dataclasses.replace(SMALL, **fields_of(architecture, **fields))


def test_parameters_of_a_layer_by_hand():
    """Eight matrices of 12 x 12 and four biases in an LSTM, six and four in a GRU."""
    plain = parameter_counts(small("recurrent"), 29)
    assert plain["recurrence"] == 2 * (8 * 144 + 4 * 12)
    assert plain["attention"] == 0
    gru = parameter_counts(small("recurrent", recurrent_cell="gru"), 29)
    assert gru["recurrence"] == 2 * (6 * 144 + 4 * 12)
    # Both ways, 12 -> 6 each; a context of 12 beside the decoder's input; of attention
    # two squares, a vector, and the readout's 24 x 12 with its bias.
    both = parameter_counts(small("recurrent", recurrent_attention="additive"), 29)
    assert both["recurrence"] == 2 * 4 * (12 * 6 + 36 + 6) + 4 * (36 * 12 + 12)
    assert both["attention"] == 2 * 144 + 12 + 24 * 12 + 12
    # Kernels of 3 places, 12 -> 24, in both stacks; two maps with biases; 29 pieces and
    # two tables of 15 positions.
    gated = parameter_counts(small("convolutional"), 29)
    assert gated["convolution"] == 2 * (3 * 12 * 24 + 24)
    assert gated["attention"] == 2 * (144 + 12)
    rest = gated["convolution"] + gated["attention"]
    assert gated["total"] == (29 + 2 * 15) * 12 + rest


def test_flops_of_a_layer_by_hand():
    """S = 3, T = 5, V = 10; two operations a product."""
    logits = 2 * 5 * 12 * 10
    lstm = forward_flops(small("recurrent"), 10, 3, 5, 3, 5)
    assert lstm == 2 * 8 * 8 * 144 + logits
    attends = small("recurrent", recurrent_attention="additive")
    cells = 3 * 2 * 4 * (12 * 6 + 36) + 5 * 4 * 36 * 12
    attention = 3 * 144 + 5 * 3 * 144 + 15 * 2 * 12
    assert forward_flops(attends, 10, 3, 5, 3, 5) == 2 * (cells + attention) + logits
    kernels, maps = 8 * 3 * 12 * 24, 5 * 2 * 144 + 15 * 2 * 12
    gated = forward_flops(small("convolutional"), 10, 3, 5, 3, 5)
    assert gated == 2 * (kernels + maps) + logits


def test_the_papers_counts_are_of_transformers():
    assert (
        paper_counts(small("recurrent")) == paper_counts(small("convolutional")) == {}
    )


LARGE = {
    "lstm": small("recurrent", d_model=96),
    "gru_attention": small(
        "recurrent", d_model=96, recurrent_cell="gru", recurrent_attention="additive"
    ),
    "convolutional": small("convolutional", d_model=96, num_layers=2),
}


def counted_by_xla(name, training):
    """Operations as XLA counts them, of 3 rows of 4 and 5 positions."""
    module = new_model(LARGE[name], 500, pad_id=0, bos_id=1, eos_id=3)
    source_BS = jax.ShapeDtypeStruct((3, 4), jnp.int32)
    target_BT = jax.ShapeDtypeStruct((3, 5), jnp.int32)

    def run(params, source_BS, target_BT):
        logits_BTV = module.apply({"params": params}, source_BS, target_BT)
        if not training:
            return logits_BTV
        return loss_sums(logits_BTV, target_BT, 0, 0.1, "all_classes").loss

    asked = jax.jit(jax.grad(run) if training else run)
    compiled = asked.lower(parameter_shapes(module), source_BS, target_BT).compile()
    return compiled.cost_analysis()["flops"]


@pytest.mark.parametrize(
    ("name", "training"),
    [("lstm", False), ("gru_attention", True), ("convolutional", True)],
)
def test_flops_are_those_of_xla(name, training, monkeypatch):
    """Loops written out, as XLA counts the body of one once. It finds more: functions
    of gates and, of additive attention, sums and tangents of every pair, made twice.
    """
    monkeypatch.setattr(recurrence, "UNROLL", 5)
    ours = forward_flops(LARGE[name], 500, 3 * 4, 3 * 5, 4, 5)
    ours *= TRAINING_OVER_FORWARD if training else 1
    assert ours < counted_by_xla(name, training) < 1.08 * ours


@pytest.fixture
def wide(tiny_config):
    """Of an architecture, in packed rows of 40 positions."""

    def make(name, **fields):
        of = configs.of_architecture(name)
        changes = {f"model.{k}": v for k, v in fields.items()}
        rows = {"data.packed_length": 40, "data.max_train_length": 39}
        sizes = {"model.d_model": 64, "data.vocabulary_size": 3000}
        rows |= {"data.length_buckets": 1, **sizes}
        return configs.replace(tiny_config, {**of, **rows, **changes})

    return make


def test_update_costs_three_forward_passes(wide):
    config = wide("convolutional")
    forward = forward_flops(config.model, 3000, 512, 512, 40, 40)
    assert step_flops(config) == 3 * forward


@pytest.mark.parametrize(
    ("name", "fields"),
    [("recurrent", {"recurrent_attention": "additive"}), ("convolutional", {})],
)
def test_memory_is_of_the_size_that_xla_allots(wide, monkeypatch, name, fields):
    """Within a factor: XLA frees and fuses as it sees fit."""
    config, made = wide(name, **fields), []
    monkeypatch.setattr(parallel, "map_update", lambda update: made.append(update))
    model = build_model(config, config.data.vocabulary_size)
    step.make_update(model, config)
    rows = jax.ShapeDtypeStruct((1, 1, 512 // 40, 40), np.int32)
    mapped = jax.jit(
        jax.vmap(
            made[0], in_axes=(None, 0, None, None), out_axes=None,
            axis_name=parallel.AXIS,
        ),
        donate_argnums=(0,),
    )  # fmt: skip
    given = (
        step.state_shapes(model, config),
        (rows, rows),
        step.purpose_key(0, step.DROPOUT),
        step.rates_at(config, 1),
    )
    found = mapped.lower(*given).compile().memory_analysis()
    allotted = found.temp_size_in_bytes + found.argument_size_in_bytes
    allotted += found.output_size_in_bytes - found.alias_size_in_bytes
    assert 0.5 < allotted / update_memory(config) < 1.3
