"""A run's identity: what may never change between its start and its record."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from transformer_ablation.config import Config, to_mapping

# Fields that say where a machine keeps its files, not what is computed.
MACHINE_FIELDS = (("data", "directory"),)


def canonical_json(config: Config, manifest_hash: str, results_version: int) -> str:
    """JSON with sorted keys and no spaces, of all that decides a run's numbers."""
    content = {
        "config": _computed(to_mapping(config)),
        "manifest_hash": manifest_hash,
        "results_version": results_version,
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def run_identity(config: Config, manifest_hash: str, results_version: int) -> str:
    """SHA-256 (hex) of the config, the data and the version of the results."""
    text = canonical_json(config, manifest_hash, results_version)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def training(config: Config) -> str:
    """Equal for configs whose runs train alike: they differ in decoding alone."""
    return training_of(to_mapping(config))


def training_of(config: Mapping[str, Any]) -> str:
    """``training`` of a config as a mapping, as a record has it."""
    return json.dumps(without_decoding(config), sort_keys=True)


def without_decoding(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config as a mapping decides the training of a run, its seed too."""
    return {name: x for name, x in _computed(config).items() if name != "decode"}


def _computed(config: Mapping[str, Any]) -> dict[str, Any]:
    """A copy without the fields of a machine; a record may lack them already."""
    kept = {name: dict(section) for name, section in config.items()}
    for section, name in MACHINE_FIELDS:
        kept[section].pop(name, None)
    return kept
