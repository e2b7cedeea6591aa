"""The schema: what each field may hold, every message, and the way through JSON."""

import dataclasses
import json
import math
import re

import ml_collections
import pytest

from configs import base
from transformer_ablation import config as config_lib
from transformer_ablation.config import ConfigError

AT_LEAST_1 = "a whole number of at least 1"
FRACTION = "a number in [0, 1)"
POSITIVE = "a finite number > 0"
FLAG = "True or False"
TEXT = "a non-empty string"

# Field: (what the message says is allowed, bad values, good values at the limits).
# Bad values of a type: another one, bool where a number belongs, None where no None.
WHOLE = (AT_LEAST_1, [0, -3, True, 2.0, "6", None], [1, 10**6])
SHARE = (FRACTION, [1, 1.0, -0.1, math.nan, False, "0.1", None], [0, 0.0, 0.999])
ABOVE_0 = (POSITIVE, [0, 0.0, -1, math.inf, math.nan, 10**400, True, None], [1e-30, 7])
SWITCH = (FLAG, [1, 0, "true", None], [True, False])
STRING = (TEXT, ["", 3, None, b"en"], [])
OPTIONAL_WHOLE = (AT_LEAST_1 + ", or None", [0, -1, False, 1.5, "5"], [1, None])
OPTIONAL_ABOVE_0 = (POSITIVE + ", or None", [0, -0.5, math.inf, "1", True], [0.5, None])
OPTIONAL_STRING = (TEXT + ", or None", ["", 3, False], [None])


def words(allowed, *wrong):
    """A choice: every allowed word is good; another word, case or type is not."""
    first, *_ = good = allowed.split(", ")
    return ("one of " + allowed, [*wrong, first.upper(), "", 1, None], good)


FIELD_CASES = {
    "model.architecture": (
        "one of transformer, recurrent, convolutional",
        ["transfomer", "Transformer", 1, None],
        ["transformer"],
    ),
    "model.num_layers": WHOLE,
    "model.decoder_layers": OPTIONAL_WHOLE,
    "model.d_model": (WHOLE[0], WHOLE[1], [2, 1024]),  # 1 is odd: refused below
    "model.d_ff": WHOLE,
    "model.num_heads": WHOLE,
    "model.d_k": WHOLE,
    "model.d_v": WHOLE,
    "model.positions": words("sinusoidal, learned, none", "sine"),
    "model.sinusoids": words("interleaved, halves", "concatenated"),
    "model.max_length": ("a whole number of at least 2", [1, 2.0, "9", None], [2]),
    "model.norm": words("post, pre", "layer"),
    "model.layer_norm_epsilon": (
        "a number in (0, 1)",
        [0, 0.0, 1, -1e-6, math.nan, True, "1e-6", None],
        [1e-12, 1e-5],
    ),
    "model.tied_embeddings": words("all, decoder, none", True, "both"),
    "model.scale_embeddings": SWITCH,
    "model.embedding_stddev": OPTIONAL_ABOVE_0,
    "model.scale_logits": SWITCH,
    "model.compatibility": words("scaled_dot, dot, additive", "cosine"),
    "model.attention_window": OPTIONAL_WHOLE,
    "model.projection_biases": SWITCH,
    "model.attention_implementation": (
        "one of own, banded, xla, cudnn",
        ["flash", "OWN", "", 1, None],
        ["own", "xla"],  # of banded and cudnn see CONTRADICTIONS
    ),
    "model.rematerialize": words("none, cheap, layers", "layer", True),
    # Of the other architectures: see CONTRADICTIONS and the tests below it.
    "model.recurrent_cell": (
        "one of lstm, gru",
        ["LSTM", "rnn", "", 1, None],
        ["lstm"],
    ),
    "model.recurrent_attention": (
        "one of none, additive",
        ["dot", "", True, None],
        ["none"],
    ),
    "model.reverse_source": (*SWITCH[:2], [False]),
    "model.kernel_width": (*WHOLE[:2], [3]),
    "model.kernel_dilation": (
        "one of none, doubling",
        ["double", 2, None],
        ["none"],
    ),
    "model.dtype": words("float32, bfloat16, float16", "float64"),
    "regularization.dropout_rate": SHARE,
    "regularization.attention_dropout_rate": SHARE,
    "regularization.activation_dropout_rate": SHARE,
    "regularization.label_smoothing": SHARE,
    "regularization.label_smoothing_convention": words(
        "all_classes, other_classes, other_pieces", "uniform"
    ),
    "regularization.label_smoothing_entropy": words("kept, subtracted", "removed"),
    "optimizer.warmup_steps": WHOLE,
    "optimizer.learning_rate_scale": ABOVE_0,
    "optimizer.beta1": SHARE,
    "optimizer.beta2": SHARE,
    "optimizer.epsilon": ABOVE_0,
    "optimizer.clip_norm": OPTIONAL_ABOVE_0,
    "optimizer.accumulation_steps": (WHOLE[0], WHOLE[1], [1, 2]),
    "data.corpus": (
        "one of grammar, multi30k, wmt14, parallel_files",
        ["wmt", 14, None],
        ["wmt14"],
    ),
    "data.directory": OPTIONAL_STRING,
    "data.source_language": STRING,
    "data.target_language": STRING,
    "data.train_split": STRING,
    "data.validation_split": STRING,
    "data.test_split": OPTIONAL_STRING,
    "data.holdout_pairs": (*OPTIONAL_WHOLE[:2], [None]),  # see CONTRADICTIONS
    "data.holdout_seed": (
        "a whole number from 0 to 2147483647",
        [-1, 2**31, 0.0, "0", False, None],
        [0, 2**31 - 1],
    ),
    "data.vocabulary_size": (
        "a whole number from 300 to 1000000",
        [299, 1_000_001, 37e3, "37000", True, None],
        [300, 1_000_000],
    ),
    "data.max_train_length": (WHOLE[0], WHOLE[1], [1, 255]),
    "data.filter_duplicates": SWITCH,
    "data.filter_overlap": SWITCH,
    "data.filter_copies": SWITCH,
    "data.filter_max_length_ratio": (
        "a finite number > 1, or None",
        [1, 1.0, 0, -2, math.inf, math.nan, "3", True],
        [1.001, 9, None],
    ),
    "data.filter_max_words": OPTIONAL_WHOLE,
    "data.filter_characters": SWITCH,
    "data.length_buckets": (
        "a whole number from 1 to 64",
        [0, 65, 8.0, "8", True, None],
        [1, 64],
    ),
    "data.packed_length": (*OPTIONAL_WHOLE[:2], [None]),  # see CONTRADICTIONS
    "data.tokens_per_batch": (WHOLE[0], WHOLE[1], [256]),
    "train.steps": WHOLE,
    "train.seed": (
        "a whole number from 0 to 2147483647",
        [-1, 2**31, 0.0, "0", False, None],
        [0, 2**31 - 1],
    ),
    "train.evaluate_every_steps": OPTIONAL_WHOLE,
    "train.checkpoint_every_steps": OPTIONAL_WHOLE,
    "train.checkpoint_every_minutes": OPTIONAL_ABOVE_0,
    "train.keep_checkpoints": WHOLE,
    "train.log_every_steps": WHOLE,
    "train.sample_sentences": (
        "a whole number from 0 to 64",
        [-1, 65, 2.0, "8", True, None],
        [0, 64],
    ),
    "train.attention_images": SWITCH,
    "decode.beam_size": (
        "a whole number from 1 to 1024",
        [0, 1025, 4.0, "4", True, None],
        [1, 1024],
    ),
    "decode.length_penalty": words("wu2016, power", "google"),
    "decode.length_penalty_alpha": (
        "a finite number",
        [math.inf, -math.inf, math.nan, 10**400, "0.6", False, None],
        [-1, 0, 0.6, 2.5],
    ),
    "decode.extra_length": WHOLE,
    "decode.average_checkpoints": (WHOLE[0], WHOLE[1], [1, 5]),
    "decode.sentences_per_batch": WHOLE,
}


def pairs(index):
    """(path, value) of every bad (1) or good (2) value above."""
    return [(p, v) for p, case in FIELD_CASES.items() for v in case[index]]


def put(mapping, path, value):
    section, _, name = path.partition(".")
    mapping[section][name] = value
    return mapping


def faults(mapping):
    """The lines of the refusal; fails where nothing is refused."""
    with pytest.raises(ConfigError) as error:
        config_lib.from_mapping(mapping)
    assert str(error.value).splitlines() == list(error.value.problems)
    return list(error.value.problems)


def changed(mapping, **changes):
    """``model__d_k=3`` stands for ``model.d_k``."""
    for path, value in changes.items():
        put(mapping, path.replace("__", "."), value)
    return mapping


# One field at a time.


def test_every_field_of_every_section_has_a_case():
    assert list(FIELD_CASES) == list(config_lib.FIELDS)
    sections = [f.name for f in dataclasses.fields(config_lib.Config)]
    assert list(config_lib.SECTIONS) == sections


@pytest.mark.parametrize(("path", "value"), pairs(1))
def test_bad_value_is_refused_with_path_value_and_what_is_allowed(
    base_mapping, path, value
):
    expected = f"{path}: {value!r} is not allowed; it must be {FIELD_CASES[path][0]}"
    assert faults(put(base_mapping, path, value)) == [expected]


@pytest.mark.parametrize(("path", "value"), pairs(2))
def test_good_value_at_the_limit_is_taken(base_mapping, path, value):
    # Room for the limits of the lengths, of which one checks the other.
    if path == "model.positions":
        base_mapping["model"]["max_length"] = 256
    config = config_lib.from_mapping(put(base_mapping, path, value))
    assert config_lib.get(config, path) == value


@pytest.mark.parametrize("path", FIELD_CASES)
def test_missing_field_is_named_with_what_is_allowed(base_mapping, path):
    section, _, name = path.partition(".")
    del base_mapping[section][name]
    assert faults(base_mapping) == [f"{path}: missing; {FIELD_CASES[path][0]}"]


def test_whole_numbers_of_real_fields_become_floats(base_mapping):
    changes = {"regularization__dropout_rate": 0, "decode__length_penalty_alpha": 1}
    config = config_lib.from_mapping(changed(base_mapping, **changes))
    assert type(config.regularization.dropout_rate) is float
    assert type(config.decode.length_penalty_alpha) is float
    assert type(config.model.num_layers) is int
    # So a hash of the JSON text cannot depend on how a number was typed.
    as_float = config_lib.replace(config, {"decode.length_penalty_alpha": 1.0})
    a, b = (json.dumps(config_lib.to_mapping(c)) for c in (config, as_float))
    assert a == b


# Names.


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("model.dropuot_rate", "regularization.dropout_rate"),
        ("model.num_layer", "model.num_layers"),
        ("model.heads", "model.num_heads"),
        ("train.beam_sise", "decode.beam_size"),
        ("data.warmup_steps", "optimizer.warmup_steps"),
    ],
)
def test_unknown_field_is_named_with_the_nearest_one(base_mapping, path, nearest):
    expected = f"{path}: unknown field; did you mean {nearest}?"
    assert faults(put(base_mapping, path, 1)) == [expected]
    with pytest.raises(ConfigError, match=r"^" + expected.replace("?", r"\?") + "$"):
        del base_mapping[path.split(".")[0]][path.split(".")[1]]
        config_lib.replace(config_lib.from_mapping(base_mapping), {path: 1})


def test_unknown_field_like_no_other_gets_the_fields_of_its_section(base_mapping):
    expected = (
        "decode.zzz: unknown field; decode has beam_size, length_penalty, "
        "length_penalty_alpha, extra_length, average_checkpoints, sentences_per_batch"
    )
    assert faults(put(base_mapping, "decode.zzz", 1)) == [expected]


def test_unknown_section_like_no_other_gets_the_sections(base_mapping):
    base_mapping["zzz"] = {}
    expected = (
        "zzz: unknown section; there are model, regularization, optimizer, data, "
        "train, decode"
    )
    assert faults(base_mapping) == [expected]


def test_field_without_its_section_gets_the_path(base_config):
    expected = r"^num_layers: unknown field; did you mean model\.num_layers\?$"
    with pytest.raises(ConfigError, match=expected):
        config_lib.replace(base_config, {"num_layers": 2})


def test_unknown_section_is_named_with_the_nearest_one(base_mapping):
    base_mapping["optimiser"] = {}
    expected = ["optimiser: unknown section; did you mean optimizer?"]
    assert faults(base_mapping) == expected


def test_missing_section_is_named(base_mapping):
    del base_mapping["decode"]
    assert faults(base_mapping) == ["decode: missing section"]


def test_value_in_place_of_a_section_is_shown(base_mapping):
    base_mapping["decode"] = 4
    assert faults(base_mapping) == ["decode: 4 is not a section; it must hold fields"]


def test_something_other_than_a_mapping_is_shown_with_the_sections():
    (line,) = faults([1, 2])
    assert line.startswith("[1, 2] is not a config; it must hold model, ")


def test_all_faults_are_told_at_once(base_mapping):
    del base_mapping["data"]["corpus"]
    changes = {"model__d_k": 0, "model__typo": 1, "decode__beam_size": "4"}
    base_mapping = changed(base_mapping, **changes) | {"extras": {}}
    # Whatever the order: one line each, none hidden by another.
    paths = sorted(line.partition(":")[0] for line in faults(base_mapping))
    assert paths == [
        "data.corpus",
        "decode.beam_size",
        "extras",
        "model.d_k",
        "model.typo",
    ]


def test_error_of_one_sentence_is_one_problem():
    assert ConfigError("a: b").problems == ("a: b",)
    assert str(ConfigError(["a: b", "c: d"])) == "a: b\nc: d"


# Fields that contradict each other.

FILES = {"data__corpus": "parallel_files", "data__directory": "text"}
RECURRENT, CONVOLUTIONAL = (
    {p.replace(".", "__"): v for p, v in config_lib.of_architecture(name).items()}
    for name in ("recurrent", "convolutional")
)
CONTRADICTIONS = {
    "cell_of_a_transformer": (
        {"model__recurrent_cell": "gru", "model__kernel_width": 5},
        "model.architecture: 'transformer' does not read model.recurrent_cell = 'gru', "
        "model.kernel_width = 5; set --config.model.recurrent_cell=lstm "
        "--config.model.kernel_width=3 (a row: config.of_architecture), or "
        "choose another",
    ),
    "heads_of_cells": (
        {**RECURRENT, "model__num_heads": 4},
        "model.architecture: 'recurrent' does not read model.num_heads = 4; set "
        "--config.model.num_heads=1 (a row: config.of_architecture), or choose "
        "another",
    ),
    "positions_of_cells": (
        {**RECURRENT, "model__positions": "learned"},
        "model.architecture: 'recurrent' does not read model.positions = 'learned'; "
        "set --config.model.positions=none (a row: config.of_architecture), or "
        "choose another",
    ),
    "reversed_and_both_ways": (
        {
            **RECURRENT,
            "model__recurrent_attention": "additive",
            "model__reverse_source": True,
        },
        "model.reverse_source: True, but with model.recurrent_attention = 'additive' "
        "the source is read both ways; make it False",
    ),
    "odd_halves": (
        {
            **RECURRENT,
            "model__recurrent_attention": "additive",
            "model__d_model": 511,
        },
        "model.d_model: 511 is odd, but with model.recurrent_attention = 'additive' "
        "each of two directions has half of it; make it even",
    ),
    "window_of_convolutions": (
        {**CONVOLUTIONAL, "model__attention_window": 3, "model__norm": "pre"},
        "model.architecture: 'convolutional' does not read model.norm = 'pre', "
        "model.attention_window = 3; set --config.model.norm=post "
        "--config.model.attention_window=None --config.model.positions=learned "
        "--config.model.scale_embeddings=False --config.model.compatibility=dot "
        "(a row: config.of_architecture), or choose another",
    ),
    "additive_convolutions": (
        {**CONVOLUTIONAL, "model__compatibility": "additive"},
        "model.compatibility: 'additive', but a convolutional decoder attends by "
        "products; make it scaled_dot or dot",
    ),
    "as_many_decoder_layers": (
        {"model__decoder_layers": 6},
        "model.decoder_layers: 6 is model.num_layers; make it None, which means the "
        "same, so that equal models have equal configs",
    ),
    "odd_sinusoids": (
        {"model__d_model": 511},
        "model.d_model: 511 is odd, but sinusoidal positions pair a sine with a "
        "cosine; make it even or set model.positions to learned or none",
    ),
    "short_position_table": (
        {"model__positions": "learned", "model__max_length": 255},
        "model.max_length: 255 learned positions are too few for "
        "data.max_train_length = 255 pieces and the end of sentence; "
        "it must be at least 256",
    ),
    "products_in_place_of_additive": (
        {
            "model__attention_implementation": "xla",
            "model__compatibility": "additive",
        },
        "model.attention_implementation: 'xla' computes products, but "
        "model.compatibility = 'additive'; make that scaled_dot or dot, or make it "
        "'own'",
    ),
    "dropout_of_weights_that_are_not_there": (
        {
            "model__attention_implementation": "xla",
            "regularization__attention_dropout_rate": 0.1,
        },
        "model.attention_implementation: 'xla' has no dropout of attention weights, "
        "but regularization.attention_dropout_rate = 0.1; make that 0, or make it "
        "'own'",
    ),
    "band_of_everything": (
        {"model__attention_implementation": "banded"},
        "model.attention_implementation: 'banded' is of restricted attention, but "
        "model.attention_window = None; give that a number of positions, or make it "
        "'own'",
    ),
    "cudnn_in_float32": (
        {"model__attention_implementation": "cudnn"},
        "model.attention_implementation: 'cudnn' takes half precision, but "
        "model.dtype = 'float32'; make that bfloat16, or the implementation 'own' or "
        "'xla'",
    ),
    "cudnn_of_large_heads": (
        {
            "model__attention_implementation": "cudnn",
            "model__dtype": "bfloat16",
            "model__d_v": 129,
        },
        "model.attention_implementation: 'cudnn' takes heads of at most 128, but "
        "model.d_k or model.d_v is 129; make them smaller, or the implementation "
        "'own' or 'xla'",
    ),
    "unknown_language": (
        {"data__source_language": "fi"},
        "data.source_language: corpus 'wmt14' has no 'fi'; it has en, de, fr",
    ),
    "french_of_the_grammar": (
        {"data__corpus": "grammar", "data__target_language": "fr"},
        "data.target_language: corpus 'grammar' has no 'fr'; it has en, de",
    ),
    "same_language": (
        {"data__target_language": "en"},
        "data.target_language: 'en' is the source language too",
    ),
    "no_english": (
        {"data__source_language": "fr"},
        "data.target_language: corpus 'wmt14' pairs every language with English; "
        "fr-de is not in it",
    ),
    "unknown_split": (
        {"data__test_split": "test_2016_flickr"},
        "data.test_split: corpus 'wmt14' has no split 'test_2016_flickr'; "
        "it has train, validation, test",
    ),
    "holdout_of_a_corpus_with_splits": (
        {"data__holdout_pairs": 5},
        "data.holdout_pairs: 5, but corpus 'wmt14' has splits of its own; make it None "
        "(it is of 'parallel_files' alone)",
    ),
    "files_without_a_folder": (
        {"data__corpus": "parallel_files"},
        "data.directory: corpus 'parallel_files' is text of your own; name its folder, "
        "as in --config.data.directory=DIR",
    ),
    "files_of_one_language": (
        {**FILES, "data__source_language": "de"},
        "data.target_language: 'de' is the source language too",
    ),
    "train_is_scored": (
        {"data__test_split": "train"},
        "data.train_split: 'train' is also scored; train on one split and score others",
    ),
    "validation_is_test": (
        {"data__test_split": "validation"},
        "data.test_split: 'validation' is the validation split too; "
        "name another or None",
    ),
    # 255 pieces and the end of sentence, in each of 100 steps: 25,600 positions.
    "batch_too_small": (
        {"optimizer__accumulation_steps": 100},
        "data.tokens_per_batch: 25000 cannot hold a sentence of "
        "data.max_train_length = 255 pieces in each of 100 accumulation steps; "
        "it must be at least 25600",
    ),
    # A row of 300 in each of 100 steps.
    "batch_too_small_for_rows": (
        {
            "optimizer__accumulation_steps": 100,
            "data__packed_length": 300,
            "data__length_buckets": 1,
        },
        "data.tokens_per_batch: 25000 cannot hold a row of data.packed_length = 300 "
        "pieces in each of 100 accumulation steps; it must be at least 30000",
    ),
    "row_too_short": (
        {"data__packed_length": 255, "data__length_buckets": 1},
        "data.packed_length: a row of 255 cannot hold a sentence of "
        "data.max_train_length = 255 pieces and its end; it must be at least 256",
    ),
    "buckets_of_packed_rows": (
        {"data__packed_length": 256},
        "data.length_buckets: 8 buckets, but packed rows (data.packed_length = 256) "
        "have one shape; make it 1, or data.packed_length None",
    ),
    "too_few_checkpoints": (
        {"decode__average_checkpoints": 20},
        "decode.average_checkpoints: 20 are averaged, but "
        "train.keep_checkpoints = 5 are kept; "
        "train with --config.train.keep_checkpoints=20",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradiction_is_refused_with_both_fields(base_mapping, name):
    changes, expected = CONTRADICTIONS[name]
    assert faults(changed(base_mapping, **changes)) == [expected]


@pytest.mark.parametrize(
    "changes",
    [
        {"model__d_model": 511, "model__positions": "learned"},
        {"model__d_model": 511, "model__positions": "none"},
        {"model__positions": "learned", "model__max_length": 256},
        {"model__max_length": 255},  # no table to overflow
        {"model__attention_implementation": "xla", "model__compatibility": "dot"},
        {
            "model__attention_implementation": "banded",
            "model__attention_window": 1,
            "model__compatibility": "additive",
            "regularization__attention_dropout_rate": 0.1,
        },
        {
            "model__attention_implementation": "cudnn",
            "model__dtype": "float16",
            "model__d_k": 16,
            "model__d_v": 128,
        },
        {"data__source_language": "de", "data__target_language": "en"},
        {"data__test_split": None},
        {"data__tokens_per_batch": 256},
        {"data__packed_length": 256, "data__length_buckets": 1},
        {"optimizer__accumulation_steps": 100, "data__tokens_per_batch": 25600},
        {"decode__average_checkpoints": 5},
        {**RECURRENT, "model__recurrent_cell": "gru", "model__d_model": 511},
        {**RECURRENT, "model__reverse_source": True},
        {**RECURRENT, "model__recurrent_attention": "additive"},
        {**CONVOLUTIONAL, "model__positions": "none", "model__kernel_width": 1},
        {
            **CONVOLUTIONAL,
            "model__compatibility": "scaled_dot",
            "model__scale_embeddings": True,
            "model__positions": "sinusoidal",
            "model__kernel_dilation": "doubling",
            "regularization__attention_dropout_rate": 0.1,
        },
    ],
)
def test_neighbour_of_a_contradiction_is_taken(base_mapping, changes):
    config_lib.from_mapping(changed(base_mapping, **changes))


@pytest.mark.parametrize("field", ["source_language", "target_language"])
@pytest.mark.parametrize(
    "code", ["pt/br", "../en", "-en", "e n", "en.tok", "gz", "checks", "a" * 65]
)
def test_language_that_cannot_end_a_file_name_is_refused(base_mapping, field, code):
    changes = {**FILES, f"data__{field}": code}
    assert faults(changed(base_mapping, **changes)) == [
        f"data.{field}: {code!r} cannot name files of corpus 'parallel_files'; it must "
        "be at most 64 ASCII letters, digits, _ and -, not begin with - and not be any "
        "of gz, pair, pairs, checks"
    ]


@pytest.mark.parametrize("field", ["train_split", "validation_split", "test_split"])
@pytest.mark.parametrize("name", ["a/b", "..", "train.tok", "All", "all"])
def test_split_that_cannot_begin_a_file_name_is_refused(base_mapping, field, name):
    changes = {**FILES, f"data__{field}": name}
    assert faults(changed(base_mapping, **changes)) == [
        f"data.{field}: {name!r} cannot name files of corpus 'parallel_files'; it must "
        "be at most 64 ASCII letters, digits, _ and -, not begin with - and not be any "
        "of all"
    ]


def test_own_files_have_any_languages_and_splits(base_mapping):
    changes = {
        **FILES,
        "data__source_language": "pt-br",
        "data__target_language": "zh_Hans",
        "data__train_split": "news-commentary_v9",
        "data__validation_split": "newstest2013",
        "data__test_split": None,
        "data__holdout_pairs": 1,
    }
    config_lib.from_mapping(changed(base_mapping, **changes))


def test_contradictions_are_told_at_once(base_mapping):
    changes = {"model__d_model": 511, "decode__average_checkpoints": 6}
    lines = faults(changed(base_mapping, **changes))
    assert [line.partition(":")[0] for line in lines] == [
        "model.d_model",
        "decode.average_checkpoints",
    ]


# Ways in and out.


def test_config_dict_and_plain_mapping_give_one_config(base_mapping):
    config = config_lib.from_mapping(base.get_config())
    assert config == config_lib.from_mapping(base_mapping)


def test_unset_placeholder_is_none_and_a_set_one_its_value():
    given = base.get_config()
    assert config_lib.from_mapping(given).model.attention_window is None
    given.model.attention_window = 3
    assert config_lib.from_mapping(given).model.attention_window == 3


def test_field_unknown_to_a_config_dict_is_refused():
    given = base.get_config()
    given.model.update(ml_collections.ConfigDict({"num_head": 4}))
    expected = "model.num_head: unknown field; did you mean model.num_heads?"
    assert faults(given) == [expected]


def test_bare_architecture_is_refused_with_all_that_it_takes(base_mapping):
    """The flags can be copied; what they leave is an architecture of its own."""
    (line,) = faults(put(base_mapping, "model.architecture", "recurrent"))
    given = dict(re.findall(r"--config\.(\S+)=(\S+)", line))
    assert given == {
        "model.d_ff": "1",
        "model.num_heads": "1",
        "model.d_k": "1",
        "model.d_v": "1",
        "model.positions": "none",
        "model.rematerialize": "none",
    }
    for path, value in given.items():
        put(base_mapping, path, int(value) if value == "1" else value)
    assert config_lib.from_mapping(base_mapping).model.architecture == "recurrent"


@pytest.mark.parametrize("name", ["recurrent", "convolutional"])
def test_every_config_can_be_made_of_any_architecture_and_back(base_config, name):
    """Back with sizes, which were lost on the way: of 1 it would be no Transformer."""
    other = config_lib.replace(base_config, config_lib.of_architecture(name))
    transformer = config_lib.of_architecture("transformer")
    with pytest.raises(ConfigError, match="with d_ff, num_heads, d_k and d_v of 1"):
        config_lib.replace(other, transformer)
    sizes = {"model.d_ff": 2048, "model.num_heads": 8, "model.d_k": 64, "model.d_v": 64}
    back = config_lib.replace(other, {**transformer, **sizes})
    lost = config_lib.differences(back, base_config)
    published = config_lib.PUBLISHED.get(name, {})
    assert set(lost) <= {*config_lib.UNREAD[name], *published} - set(sizes)


def test_config_survives_json(base_mapping):
    for path, value in {"model.attention_window": 3, "optimizer.clip_norm": 1}.items():
        put(base_mapping, path, value)
    config = config_lib.from_mapping(base_mapping)
    text = json.dumps(config_lib.to_mapping(config), allow_nan=False)
    assert config_lib.from_mapping(json.loads(text)) == config


def test_config_is_frozen(base_config):
    with pytest.raises(dataclasses.FrozenInstanceError):
        base_config.model.d_k = 3


def test_replace_changes_only_what_it_names(base_config):
    changes = {"model.d_k": 16, "train.seed": 7}
    replaced = config_lib.replace(base_config, changes)
    expected = {"model.d_k": (64, 16), "train.seed": (0, 7)}
    assert config_lib.differences(base_config, replaced) == expected
    assert base_config.model.d_k == 64


def test_replace_checks_again(base_config):
    with pytest.raises(ConfigError, match=r"^model\.d_k: 0 is not allowed"):
        config_lib.replace(base_config, {"model.d_k": 0})
    with pytest.raises(ConfigError, match=r"^model\.d_model: 33 is odd"):
        config_lib.replace(base_config, {"model.d_model": 33})


def test_replace_names_all_unknown_fields(base_config):
    with pytest.raises(ConfigError) as error:
        config_lib.replace(base_config, {"model.dk": 1, "seed": 2, "train.seed": 3})
    lines = error.value.problems
    assert [line.partition(":")[0] for line in lines] == ["model.dk", "seed"]


def test_differences_of_a_config_with_itself_are_none(base_config):
    assert config_lib.differences(base_config, base_config) == {}


# The paper.


def test_base_is_the_papers_base_model(base_config):
    paper = {
        # Table 3, row base.
        "model.num_layers": 6,
        "model.decoder_layers": None,
        "model.d_model": 512,
        "model.d_ff": 2048,
        "model.num_heads": 8,
        "model.d_k": 64,
        "model.d_v": 64,
        "regularization.dropout_rate": 0.1,
        "regularization.label_smoothing": 0.1,
        "train.steps": 100_000,
        # Sections 3.1 to 3.5: add, then normalise; one matrix for both embeddings
        # and the output; inputs times sqrt(d_model); sines and cosines.
        "model.architecture": "transformer",
        "model.norm": "post",
        "model.tied_embeddings": "all",
        "model.scale_embeddings": True,
        "model.compatibility": "scaled_dot",
        "model.positions": "sinusoidal",
        "model.attention_window": None,
        "model.sinusoids": "interleaved",
        "model.projection_biases": False,
        "model.attention_implementation": "own",
        # Ours: 25,000 tokens of 37,000 pieces fit into 12 GiB of one device.
        "model.rematerialize": "cheap",
        # What a Transformer does not read.
        "model.recurrent_cell": "lstm",
        "model.recurrent_attention": "none",
        "model.reverse_source": False,
        "model.kernel_width": 3,
        "model.kernel_dilation": "none",
        # Section 5.4 drops residual and embedding sums only.
        "regularization.attention_dropout_rate": 0.0,
        "regularization.activation_dropout_rate": 0.0,
        # Section 5.3.
        "optimizer.beta1": 0.9,
        "optimizer.beta2": 0.98,
        "optimizer.epsilon": 1e-9,
        "optimizer.warmup_steps": 4000,
        "optimizer.learning_rate_scale": 1.0,
        "optimizer.clip_norm": None,
        # Section 5.1: English to German, about 37,000 pieces, 25,000 target tokens.
        "data.corpus": "wmt14",
        "data.source_language": "en",
        "data.target_language": "de",
        "data.vocabulary_size": 37_000,
        "data.tokens_per_batch": 25_000,
        # "batched together by approximate sequence length"
        "data.packed_length": None,
        # Section 6.1; Table 3 is scored without averaging.
        "decode.beam_size": 4,
        "decode.length_penalty": "wu2016",
        "decode.length_penalty_alpha": 0.6,
        "decode.extra_length": 50,
        "decode.average_checkpoints": 1,
    }
    found = {path: config_lib.get(base_config, path) for path in paper}
    assert found == paper


@pytest.mark.parametrize(
    "changes, fault",
    [
        (
            {"train.checkpoint_every_steps": None, "train.keep_checkpoints": 3},
            "decode.average_checkpoints: 3 are averaged, but "
            "train.checkpoint_every_steps = None makes 1 in train.steps = 10; "
            "train with --config.train.checkpoint_every_steps=3",
        ),
        (
            {"train.checkpoint_every_steps": 5, "train.keep_checkpoints": 3},
            "decode.average_checkpoints: 3 are averaged, but "
            "train.checkpoint_every_steps = 5 makes 2 in train.steps = 10; "
            "train with --config.train.checkpoint_every_steps=3",
        ),
        ({"train.checkpoint_every_steps": 4, "train.keep_checkpoints": 3}, None),
        (
            {
                "train.checkpoint_every_steps": None,
                "train.checkpoint_every_minutes": 10.0,
                "train.keep_checkpoints": 3,
            },
            None,
        ),
    ],
)
def test_more_checkpoints_than_a_run_makes_are_not_averaged(
    base_config, changes, fault
):
    """Updates 4, 8 and 10 are three; 5 and 10 are two."""
    changes = {**changes, "train.steps": 10, "decode.average_checkpoints": 3}
    if fault is None:
        config_lib.replace(base_config, changes)
        return
    with pytest.raises(ConfigError) as error:
        config_lib.replace(base_config, changes)
    assert error.value.problems == (fault,)


def test_clock_beside_steps_makes_no_checkpoint_to_average(base_config):
    """What it saves depends on how fast the machine is."""
    changes = {
        "train.steps": 10,
        "train.checkpoint_every_steps": 5,
        "train.checkpoint_every_minutes": 1.0,
        "train.keep_checkpoints": 3,
        "decode.average_checkpoints": 3,
    }
    with pytest.raises(ConfigError, match="checkpoint_every_steps = 5 makes 2 in"):
        config_lib.replace(base_config, changes)


def test_number_too_large_to_reckon_with_is_refused(base_mapping):
    (fault,) = faults(put(base_mapping, "train.steps", 10**300))
    assert fault.endswith("is not allowed; it must be a whole number of at least 1")
