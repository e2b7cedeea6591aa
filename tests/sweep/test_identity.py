"""Identity: equal for equal runs on any machine, different for anything else."""

import hashlib
import json
import subprocess
import sys

import pytest

from transformer_ablation import config as schema
from transformer_ablation.config import replace
from transformer_ablation.sweep.identity import run_identity


def test_identity_is_the_hash_of_the_canonical_text(base_mapping):
    """The text is written out by hand for every field but those of the model."""
    model = json.dumps(base_mapping["model"], sort_keys=True, separators=(",", ":"))
    text = (
        '{"config":{"data":{"corpus":"wmt14","filter_characters":false,'
        '"filter_copies":false,"filter_duplicates":false,'
        '"filter_max_length_ratio":null,"filter_max_words":null,'
        '"filter_overlap":false,"holdout_pairs":null,"holdout_seed":0,'
        '"length_buckets":8,'
        '"max_train_length":255,"packed_length":null,"source_language":"en","target_language":"de",'
        '"test_split":"test","tokens_per_batch":25000,"train_split":"train",'
        '"validation_split":"validation","vocabulary_size":37000},'
        '"decode":{"average_checkpoints":1,"beam_size":4,"extra_length":50,'
        '"length_penalty":"wu2016","length_penalty_alpha":0.6,'
        '"sentences_per_batch":64},'
        f'"model":{model},'
        '"optimizer":{"accumulation_steps":1,"beta1":0.9,"beta2":0.98,'
        '"clip_norm":null,"epsilon":1e-09,"learning_rate_scale":1.0,'
        '"warmup_steps":4000},"regularization":{"activation_dropout_rate":0.0,'
        '"attention_dropout_rate":0.0,"dropout_rate":0.1,"label_smoothing":0.1,'
        '"label_smoothing_convention":"all_classes",'
        '"label_smoothing_entropy":"kept"},'
        '"train":{"attention_images":false,"checkpoint_every_minutes":null,"checkpoint_every_steps":1500,'
        '"evaluate_every_steps":5000,"keep_checkpoints":5,"log_every_steps":100,'
        '"sample_sentences":8,"seed":0,"steps":100000}},"manifest_hash":"abc","results_version":7}'
    )
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert run_identity(schema.from_mapping(base_mapping), "abc", 7) == expected


def test_identity_ignores_where_the_data_lies(base_config):
    moved = replace(base_config, {"data.directory": "/elsewhere"})
    assert run_identity(moved, "m", 1) == run_identity(base_config, "m", 1)


@pytest.mark.parametrize("path", sorted(set(schema.FIELDS) - {"data.directory"}))
def test_identity_depends_on_every_other_field(base_config, path):
    """Any new value will do: identity is not asked whether a config can be run."""
    section, _, name = path.partition(".")
    part = getattr(base_config, section)
    value = getattr(part, name)
    other = "another" if isinstance(value, str) else not value
    changed_part = type(part)(**{**vars(part), name: other})
    changed = type(base_config)(**{**vars(base_config), section: changed_part})
    assert run_identity(changed, "m", 1) != run_identity(base_config, "m", 1)


def test_identity_depends_on_data_and_version(base_config):
    found = {
        run_identity(base_config, *rest) for rest in [("m", 1), ("n", 1), ("m", 2)]
    }
    assert len(found) == 3


def test_whole_number_in_a_real_field_gives_the_same_identity(base_mapping):
    base_mapping["optimizer"]["learning_rate_scale"] = 1
    as_int = schema.from_mapping(base_mapping)
    base_mapping["optimizer"]["learning_rate_scale"] = 1.0
    as_float = schema.from_mapping(base_mapping)
    assert run_identity(as_int, "m", 1) == run_identity(as_float, "m", 1)


def test_identity_is_the_same_in_another_process(base_config):
    code = (
        "from configs import base\n"
        "from transformer_ablation.config import from_mapping\n"
        "from transformer_ablation.sweep.identity import run_identity\n"
        "print(run_identity(from_mapping(base.get_config()), 'm', 1))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == run_identity(base_config, "m", 1)
