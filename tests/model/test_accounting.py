"""Parameters and operations: by hand, by the shapes of the model, by XLA."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import pytest

from configs import table3
from tests.model.numpy_transformer import SMALL, parameter_shapes
from transformer_ablation.config import from_mapping
from transformer_ablation.model.accounting import (
    TRAINING_OVER_FORWARD,
    forward_flops,
    paper_counts,
    parameter_counts,
    step_flops,
)
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.sweep.rows import expand
from transformer_ablation.train.loss import loss_sums

# Fields that only these rows of a table would not try.
VARIANTS = [
    {"norm": "pre", "tied_embeddings": "decoder", "num_layers": 3},
    {"positions": "learned", "tied_embeddings": "none", "compatibility": "additive"},
    {"projection_biases": True, "num_layers": 2},
    {"num_layers": 2, "decoder_layers": 3, "norm": "pre"},
]


WIDER = dataclasses.replace(SMALL, d_model=96, d_ff=320, d_k=56, d_v=40)


@functools.cache
def rows(scale):
    """``{row name: its config}`` at a scale of Table 3."""
    base = from_mapping(table3.get_config(scale))
    return {item.row.name: item.config for item in expand(base, table3.get_rows())}


@functools.cache
def size(model, vocabulary_size):
    """Numbers in the parameters of the initialised model; rows share models."""
    shapes = parameter_shapes(
        Transformer(model, vocabulary_size, pad_id=0, bos_id=1, eos_id=3)
    )
    groups = dict.fromkeys(("embedding", "positions", "attention"), 0)
    groups |= dict.fromkeys(("feed_forward", "layer_norm"), 0)
    for path, leaf in jax.tree_util.tree_leaves_with_path(shapes):
        name = jax.tree_util.keystr(path)
        (group,) = [g for g, part in PARTS.items() if part(name)]
        groups[group] += math.prod(leaf.shape)
    return groups


PARTS = {
    "embedding": lambda name: name.endswith("_embedding']"),
    "positions": lambda name: "_positions'" in name,
    "attention": lambda name: "_attention']" in name,
    "feed_forward": lambda name: "'feed_forward']" in name,
    "layer_norm": lambda name: "norm']" in name,
}


@pytest.mark.parametrize("scale", table3.SCALES)
def test_counts_equal_the_shapes_of_every_row(scale):
    configs = rows(scale)
    assert len(configs) == 20
    for config in configs.values():
        vocabulary_size = config.data.vocabulary_size
        counts = parameter_counts(config.model, vocabulary_size)
        groups = size(config.model, vocabulary_size)
        assert counts == {**groups, "total": sum(groups.values())}


@pytest.mark.parametrize("fields", VARIANTS)
def test_counts_equal_the_shapes_of_variants(fields):
    model = dataclasses.replace(SMALL, **fields)
    groups = size(model, 29)
    assert parameter_counts(model, 29) == {**groups, "total": sum(groups.values())}


def test_base_counts_are_the_papers_arithmetic():
    """Section 3: 18 attentions of 4 d^2, 12 networks, 30 norms, one 37,000 x 512."""
    config = rows("wmt14")["base"]
    counts = parameter_counts(config.model, 37_000)
    assert counts == {
        "embedding": 18_944_000,
        "positions": 0,
        "attention": 18_874_368,  # 18 * 4 * 512 * 512
        "feed_forward": 25_196_544,  # 12 * (2 * 512 * 2048 + 2048 + 512)
        "layer_norm": 30_720,  # 30 * 2 * 512
        "total": 63_045_632,
    }
    # The first release's 44,138,496 without embeddings has four biases of 512 in
    # each of 18 attentions; the paper's formula has none.
    assert counts["total"] == 44_138_496 - 18 * 4 * 512 + 37_000 * 512


# Millions of parameters that Table 3 prints; other cells are blank.
PRINTED = {
    "base": 65, "B_dk16": 58, "B_dk32": 60, "C_N2": 36, "C_N4": 50, "C_N8": 80,
    "C_d256": 28, "C_d1024": 168, "C_ff1024": 53, "C_ff4096": 90, "big": 213,
}  # fmt: skip


def test_first_codes_count_is_every_printed_one_but_bigs():
    counts = {
        name: paper_counts(config.model)
        for name, config in rows("wmt14").items()
        if name in PRINTED
    }
    millions = {name: round(n["first_code"] / 1e6) for name, n in counts.items()}
    assert {n for n in PRINTED if millions[n] != PRINTED[n]} == {"big"}
    # The rows of the text reproduce none of the eleven.
    text = {name: round(n["text"] / 1e6) for name, n in counts.items()}
    assert all(text[name] != PRINTED[name] for name in PRINTED)


def test_first_codes_count_of_base_by_hand():
    """12 networks, 18 attentions of four square maps with biases, 30 norms."""
    layers = 12 * (2 * 512 * 2048 + 2048 + 512) + 18 * 4 * (512 * 512 + 512)
    layers += 30 * 2 * 512
    assert layers == 44_138_496  # as counted in the first release
    found = paper_counts(rows("wmt14")["base"].model)
    assert found["first_code"] == layers + (40_960 + 32) * 512
    assert found["text"] == layers + 37_000 * 512


def test_biases_of_keys_narrower_than_values_by_hand():
    """Queries and keys have h d_k biases each, values h d_v, the output d_model."""
    plain, biased = (
        parameter_counts(dataclasses.replace(SMALL, projection_biases=b), 29)
        for b in (False, True)
    )
    per_attention = 2 * 7 + 2 * 7 + 2 * 5 + 12
    assert biased["attention"] - plain["attention"] == 3 * per_attention


def test_row_differences_are_the_papers_arithmetic():
    """Rows of Table 3 against base, by what they change."""
    totals = {
        name: parameter_counts(config.model, 37_000)["total"]
        for name, config in rows("wmt14").items()
    }
    base = totals["base"]
    for name in ("A_h1", "A_h4", "A_h16", "A_h32", "D_drop0.0", "D_ls0.2"):
        assert totals[name] == base
    # Queries and keys of 18 attentions lose 48 or 32 of 64 columns in 8 heads.
    assert totals["B_dk16"] == base - 18 * 2 * 512 * 8 * 48
    assert totals["B_dk32"] == base - 18 * 2 * 512 * 8 * 32
    # Two tables of 1024 positions.
    assert totals["E_learned_pos"] == base + 2 * 1024 * 512
    layer = 3 * 4 * 512 * 512 + 2 * (2 * 512 * 2048 + 2048 + 512) + 5 * 2 * 512
    assert totals["C_N2"] == base - 4 * layer
    assert totals["C_N8"] == base + 2 * layer


def test_flops_of_a_small_model_are_the_hand_count():
    """Two operations a product; S = 3 and T = 5 tokens of one pair, V = 10."""
    model = dataclasses.replace(
        SMALL, num_layers=2, d_model=4, d_ff=6, num_heads=2, d_k=3, d_v=1
    )
    projections = 2 * (4 * 6 + 4 * 6 + 4 * 2 + 2 * 4)  # q, k, v, output: a token
    network = 2 * (4 * 6 + 6 * 4)
    pair = 2 * 2 * (3 + 1)  # a score and a weighted value in each of two heads
    encoder = 3 * (projections + network) + 9 * pair
    decoder_self = 5 * projections + 25 * pair
    cross = 5 * 2 * (4 * 6 + 2 * 4) + 3 * 2 * (4 * 6 + 4 * 2) + 15 * pair
    decoder = decoder_self + cross + 5 * network
    expected = 2 * (encoder + decoder) + 5 * 2 * 4 * 10
    assert forward_flops(model, 10, 3, 5, 3, 5) == expected
    deeper = dataclasses.replace(model, decoder_layers=5)
    assert forward_flops(deeper, 10, 3, 5, 3, 5) == expected + 3 * decoder


def test_flops_grow_with_tokens_and_lengths_as_said():
    """Twice the sentences of one length are twice the work, and no more."""
    once = forward_flops(SMALL, 29, 6, 8, 6, 8)
    assert forward_flops(SMALL, 29, 12, 16, 6, 8) == 2 * once
    pairs = 6 * 6 + 8 * (8 + 6)
    longer = forward_flops(SMALL, 29, 6, 8, 12, 16)
    assert longer - once == pairs * 2 * 2 * (7 + 5)  # scores and sums again


@functools.cache
def counted_by_xla(training, packed):
    """Operations of one layer as XLA counts them, of 3 rows of 17 and 23 positions."""
    module = Transformer(WIDER, 500, pad_id=0, bos_id=1, eos_id=3)
    shapes = parameter_shapes(module)
    source_BS = jax.ShapeDtypeStruct((3, 17), jnp.int32)
    target_BT = jax.ShapeDtypeStruct((3, 23), jnp.int32)

    def run(params, source_BS, target_BT):
        logits_BTV = module.apply(
            {"params": params}, source_BS, target_BT, None, packed
        )
        if not training:
            return logits_BTV
        return loss_sums(logits_BTV, target_BT, 0, 0.1, "all_classes").loss

    asked = jax.jit(jax.grad(run) if training else run)
    compiled = asked.lower(shapes, source_BS, target_BT).compile()
    return compiled.cost_analysis()["flops"]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_flops_are_within_a_tenth_of_xlas(training, packed):
    """One layer, as XLA counts the body of a scan once. It also counts the norms,
    the softmax and the like, so it finds more, not less. Attention in a packed row
    is over the whole row, whatever sequences it holds.
    """
    ours = forward_flops(WIDER, 500, 3 * 17, 3 * 23, 17, 23)
    ours *= TRAINING_OVER_FORWARD if training else 1
    assert ours < counted_by_xla(training, packed) < 1.1 * ours


def test_update_of_packed_rows_attends_over_whole_rows():
    """Against rows of 30: 18 more positions of source, own and cross attention."""
    config = rows("grammar")["base"]
    model, tokens = config.model, config.data.tokens_per_batch
    assert (config.data.packed_length, tokens, model.num_layers) == (48, 768, 3)
    more = 3 * 3 * 768 * (48 - 30) * 2 * model.num_heads * (model.d_k + model.d_v)
    thirty = forward_flops(model, config.data.vocabulary_size, tokens, tokens, 30, 30)
    assert step_flops(config) == 3 * thirty + 3 * more


def test_update_costs_three_forward_passes_of_the_token_budget():
    config = rows("wmt14")["base"]
    forward = forward_flops(config.model, 37_000, 25_000, 25_000, 30, 30)
    assert step_flops(config) == 3 * forward
    few = forward_flops(config.model, 37_000, 900, 700, 11, 13)
    assert step_flops(config, 900, 700, 11, 13) == 3 * few
