"""Every row of every config: loadable, distinct, and the paper's at its scale."""

import pytest

from configs import base as base_file
from configs import table1, table3
from transformer_ablation.config import ConfigError, differences, from_mapping, replace
from transformer_ablation.sweep.rows import expand

# Table 3 of the paper with its blank cells filled from base: N, d_model, d_ff, h,
# d_k, d_v, P_drop, label smoothing, thousands of steps; then dev PPL, dev BLEU and
# millions of parameters (None where the cell is blank).
PAPER = {
    "base": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 4.92, 25.8, 65),
    "A_h1": (6, 512, 2048, 1, 512, 512, 0.1, 0.1, 100, 5.29, 24.9, None),
    "A_h4": (6, 512, 2048, 4, 128, 128, 0.1, 0.1, 100, 5.00, 25.5, None),
    "A_h16": (6, 512, 2048, 16, 32, 32, 0.1, 0.1, 100, 4.91, 25.8, None),
    "A_h32": (6, 512, 2048, 32, 16, 16, 0.1, 0.1, 100, 5.01, 25.4, None),
    "B_dk16": (6, 512, 2048, 8, 16, 64, 0.1, 0.1, 100, 5.16, 25.1, 58),
    "B_dk32": (6, 512, 2048, 8, 32, 64, 0.1, 0.1, 100, 5.01, 25.4, 60),
    "C_N2": (2, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 6.11, 23.7, 36),
    "C_N4": (4, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 5.19, 25.3, 50),
    "C_N8": (8, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 4.88, 25.5, 80),
    "C_d256": (6, 256, 2048, 8, 32, 32, 0.1, 0.1, 100, 5.75, 24.5, 28),
    "C_d1024": (6, 1024, 2048, 8, 128, 128, 0.1, 0.1, 100, 4.66, 26.0, 168),
    "C_ff1024": (6, 512, 1024, 8, 64, 64, 0.1, 0.1, 100, 5.12, 25.4, 53),
    "C_ff4096": (6, 512, 4096, 8, 64, 64, 0.1, 0.1, 100, 4.75, 26.2, 90),
    "D_drop0.0": (6, 512, 2048, 8, 64, 64, 0.0, 0.1, 100, 5.77, 24.6, None),
    "D_drop0.2": (6, 512, 2048, 8, 64, 64, 0.2, 0.1, 100, 4.95, 25.5, None),
    "D_ls0.0": (6, 512, 2048, 8, 64, 64, 0.1, 0.0, 100, 4.67, 25.3, None),
    "D_ls0.2": (6, 512, 2048, 8, 64, 64, 0.1, 0.2, 100, 5.47, 25.7, None),
    "E_learned_pos": (6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 4.92, 25.7, None),
    "big": (6, 1024, 4096, 16, 64, 64, 0.3, 0.1, 300, 4.33, 26.4, 213),
}
# The fields that a row may change; all others are base's.
VARIED = {
    "model.num_layers",
    "model.d_model",
    "model.d_ff",
    "model.num_heads",
    "model.d_k",
    "model.d_v",
    "model.positions",
    "regularization.dropout_rate",
    "regularization.label_smoothing",
    "train.steps",
}


def expanded(scale, changes=None):
    """``{name: ExpandedRow}`` at a scale."""
    base = replace(from_mapping(table3.get_config(scale)), changes or {})
    return {item.row.name: item for item in expand(base, table3.get_rows())}


@pytest.mark.parametrize("scale", table3.SCALES)
def test_every_row_loads_at_every_scale(scale):
    rows = expanded(scale)
    assert list(rows) == list(PAPER)
    assert len({item.config for item in rows.values()}) == 20
    for item in rows.values():
        assert set(item.changed) <= VARIED
        letter = item.row.name.partition("_")[0]
        assert item.row.group == letter and item.row.label


@pytest.mark.parametrize("name", PAPER)
def test_row_at_wmt14_is_the_papers(name):
    item = expanded("wmt14")[name]
    model, rates = item.config.model, item.config.regularization
    sizes = (model.num_layers, model.d_model, model.d_ff, model.num_heads)
    widths = (model.d_k, model.d_v, rates.dropout_rate, rates.label_smoothing)
    assert (*sizes, *widths) == PAPER[name][:8]
    assert item.config.train.steps == PAPER[name][8] * 1000
    learned = name == "E_learned_pos"
    assert model.positions == ("learned" if learned else "sinusoidal")
    paper = item.paper
    printed = (paper.ppl, paper.bleu, paper.parameters_millions)
    assert printed == PAPER[name][9:]


def test_wmt14_is_the_base_file():
    base = from_mapping(base_file.get_config())
    assert from_mapping(table3.get_config("wmt14")) == base


def test_wmt14_fr_differs_in_language_vocabulary_and_dropout_of_big():
    """Section 5.1: 32,000 word pieces; section 6.1: dropout 0.1 for big."""
    german, french = expanded("wmt14"), expanded("wmt14_fr")
    for name in PAPER:
        found = differences(german[name].config, french[name].config)
        expected = {
            "data.target_language": ("de", "fr"),
            "data.vocabulary_size": (37_000, 32_000),
        }
        if name == "big":
            expected["regularization.dropout_rate"] = (0.3, 0.1)
        assert found == expected


@pytest.mark.parametrize("scale", ["grammar", "multi30k", "multi30k_small"])
def test_smaller_scale_keeps_the_papers_proportions(scale):
    rows = expanded(scale)
    base, big = rows["base"].config.model, rows["big"].config
    assert base.d_k == base.d_v == base.d_model // base.num_heads
    assert base.d_ff == 4 * base.d_model
    for name, factor in [("A_h4", 0.5), ("A_h16", 2), ("A_h32", 4)]:
        model = rows[name].config.model
        assert model.num_heads == factor * base.num_heads
        assert (
            model.num_heads * model.d_k == base.d_model == model.d_v * model.num_heads
        )
    assert rows["A_h1"].config.model.d_k == base.d_model
    assert rows["B_dk16"].config.model.d_k * 4 == base.d_k
    assert rows["B_dk16"].config.model.d_v == base.d_v
    assert (big.model.d_k, big.model.num_heads) == (base.d_k, 2 * base.num_heads)
    assert big.regularization.dropout_rate == 0.3


def test_scales_name_their_corpus_and_default_to_grammar():
    assert table3.get_config().data.corpus == "grammar"
    multi30k = table3.get_config("multi30k").data
    assert (multi30k.corpus, multi30k.test_split) == ("multi30k", "test_2016_flickr")


def test_unknown_scale_is_refused_with_the_list():
    with pytest.raises(ConfigError) as caught:
        table3.get_config("multi30")
    assert str(caught.value) == (
        "unknown scale 'multi30'; did you mean multi30k? The scales are: grammar, "
        "multi30k, multi30k_small, wmt14, wmt14_fr"
    )


def test_rows_follow_a_base_that_was_overridden():
    """Half of an overridden d_model, not of the scale's own."""
    changes = {"model.d_model": 96, "model.d_k": 24, "model.d_v": 24}
    narrow = expanded("grammar", changes)["C_d256"].config.model
    assert (narrow.d_model, narrow.d_k, narrow.d_v) == (48, 12, 12)


def test_rows_of_depth_change_both_stacks():
    """The paper's N is of either."""
    rows = expanded("grammar", {"model.num_layers": 6, "model.decoder_layers": 3})
    models = {name: rows[name].config.model for name in ("C_N2", "C_N4", "C_N8")}
    found = {name: (m.num_layers, m.decoder_layers) for name, m in models.items()}
    assert found == {"C_N2": (2, 1), "C_N4": (4, 2), "C_N8": (8, 4)}


def test_override_that_makes_rows_equal_is_refused():
    with pytest.raises(ConfigError) as caught:
        expanded("grammar", {"regularization.label_smoothing": 0.2})
    (problem,) = caught.value.problems
    assert problem.startswith(
        "rows base and D_ls0.2 are equal: both have "
        "regularization.label_smoothing = 0.2; "
    )


def test_depth_that_has_no_thirds_is_refused_for_each_row():
    with pytest.raises(ConfigError) as caught:
        expanded("wmt14", {"model.num_layers": 4})
    starts = [problem.partition(" of ")[0] for problem in caught.value.problems]
    assert starts == [
        "row C_N2: a third",
        "row C_N4: two thirds",
        "row C_N8: four thirds",
    ]


@pytest.mark.parametrize("scale", table3.SCALES)
def test_layer_types_of_table_1_load_at_every_scale(scale):
    """Models of one depth and width, of which base is the sweep's own."""
    base = from_mapping(table1.get_config(scale))
    rows = {item.row.name: item for item in expand(base, table1.get_rows())}
    models = {name: item.config.model for name, item in rows.items()}
    assert models["base"] == from_mapping(table3.get_config(scale)).model
    assert {(m.num_layers, m.d_model) for m in models.values()} == {
        (base.model.num_layers, base.model.d_model)
    }
    assert [m.architecture for m in models.values()] == [
        "transformer",
        "recurrent",
        "convolutional",
        "convolutional",
        "transformer",
    ]
    restricted = models["restricted"]
    assert restricted.attention_implementation == "banded"
    assert restricted.attention_window == table1.NEIGHBOURS
