"""Sweeps of what the paper left open: each loads and changes what it asks about."""

import importlib
import pkgutil

import pytest

from configs import questions, table3
from transformer_ablation.config import ConfigError, from_mapping, replace
from transformer_ablation.sweep.rows import expand

NAMES = sorted(module.name for module in pkgutil.iter_modules(questions.__path__))
ARCHITECTURE_FIELDS = (
    "architecture",
    "compatibility",
    "d_ff",
    "d_k",
    "d_v",
    "kernel_dilation",
    "num_heads",
    "positions",
    "recurrent_attention",
    "recurrent_cell",
    "reverse_source",
    "scale_embeddings",
)
# All fields that the rows of a question may change.
VARIED = {
    "attention_window": {"model.attention_window"},
    "compatibility": {"model.compatibility", "model.d_k"},
    "depths": {"model.num_layers", "model.decoder_layers"},
    "embeddings": {
        "model.tied_embeddings",
        "model.scale_embeddings",
        "model.embedding_stddev",
        "model.scale_logits",
    },
    "heads": {"model.num_heads", "model.d_k", "model.d_v"},
    "norm": {"model.norm", "model.num_layers", "optimizer.warmup_steps"},
    "positions": {"model.positions", "model.sinusoids"},
    "rates": {
        "optimizer.learning_rate_scale",
        *(f"model.{name}" for name in ARCHITECTURE_FIELDS),
    },
    "search": {"decode.beam_size", "decode.length_penalty_alpha"},
    "smoothing": {
        "regularization.label_smoothing",
        "regularization.label_smoothing_convention",
    },
}


def load(name):
    return importlib.import_module(f"configs.questions.{name}")


def expanded(name, scale="grammar"):
    module = load(name)
    base = from_mapping(module.get_config(scale))
    return {item.row.name: item for item in expand(base, module.get_rows())}


@pytest.mark.parametrize("scale", table3.SCALES)
@pytest.mark.parametrize("name", NAMES)
def test_rows_load_at_every_scale_and_change_what_is_asked(name, scale):
    found = expanded(name, scale)
    assert next(iter(found)) == "base" and not found["base"].changed
    changed = {path for item in found.values() for path in item.changed}
    changed.discard("model.rematerialize")  # moves no number
    assert changed == VARIED[name]
    assert load(name).TITLE and "section" in load(name).__doc__.lower()


def test_no_question_is_forgotten_here():
    assert set(NAMES) == set(VARIED)


def test_depths_apart_are_of_a_base_with_one_depth():
    module = load("depths")
    base = replace(from_mapping(module.get_config()), {"model.decoder_layers": 2})
    with pytest.raises(ConfigError, match="decoder_layers: 2; this sweep sets both"):
        expand(base, module.get_rows())


def test_functions_are_compared_at_equal_sizes_of_keys():
    found = expanded("compatibility", "wmt14")
    sizes = {}
    for item in found.values():
        model = item.config.model
        sizes.setdefault(model.compatibility, []).append(model.d_k)
        assert model.d_v == 64
    assert {name: sorted(x) for name, x in sizes.items()} == dict.fromkeys(
        ("scaled_dot", "dot", "additive"), [16, 64, 256]
    )


def test_norms_are_compared_at_every_depth_and_warm_up():
    found = [item.config for item in expanded("norm", "wmt14").values()]
    seen = {(c.model.norm, c.model.num_layers, c.optimizer.warmup_steps) for c in found}
    assert seen == {
        (norm, layers, steps)
        for norm in ("post", "pre")
        for layers in (6, 12)
        for steps in (4000, 400)
    }


def test_positions_are_trained_on_short_pairs():
    short = expanded("positions", "wmt14")["base"].config.data.max_train_length
    assert short == table3.get_config("wmt14").data.max_train_length / 3 == 85


def test_one_head_grows_to_the_size_of_all():
    found = {n: i.config.model for n, i in expanded("heads", "wmt14").items()}
    sizes = {name: (m.num_heads, m.d_k, m.d_v) for name, m in found.items()}
    assert sizes == {
        "base": (8, 64, 64),
        "one": (1, 64, 64),
        "one_double": (1, 128, 128),
        "one_as_all": (1, 512, 512),
        "half_the_heads": (4, 64, 64),
        "twice_the_heads": (16, 64, 64),
    }


def test_search_trains_once():
    configs = [item.config for item in expanded("search").values()]
    assert (
        len({(c.model, c.regularization, c.optimizer, c.train) for c in configs}) == 1
    )


def test_depths_by_hand():
    """N = 6: 8 and 4, 4 and 8; 12, or one layer, in one of the stacks."""
    found = {n: i.config.model for n, i in expanded("depths", "wmt14").items()}
    assert {n: (m.num_layers, m.layers_of_decoder) for n, m in found.items()} == {
        "base": (6, 6),
        "encoder_4_3": (8, 4),
        "decoder_4_3": (4, 8),
        "deep_encoder": (12, 6),
        "deep_decoder": (6, 12),
        "flat_encoder": (1, 6),
        "flat_decoder": (6, 1),
    }


def test_every_architecture_has_every_rate():
    """Half to eight times base's; base is the Transformer at its own."""
    found = [item.config for item in expanded("rates", "wmt14").values()]
    rates: dict = {}
    for config in found:
        model = config.model
        kind = (
            model.architecture,
            model.recurrent_cell,
            model.recurrent_attention,
            model.kernel_dilation,
        )
        rates.setdefault(kind, []).append(config.optimizer.learning_rate_scale)
    assert len(rates) == 6
    assert all(sorted(each) == [0.5, 1.0, 2.0, 4.0, 8.0] for each in rates.values())
