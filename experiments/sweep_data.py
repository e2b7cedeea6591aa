"""The data of a sweep: found or prepared before its first run."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import Config, DataConfig
from transformer_ablation.data import corpus
from transformer_ablation.sweep.identity import run_identity


def identifier(data: Iterable[DataConfig], cache: Path) -> Callable[[Config], str]:
    """A function from a config to its run's identity, for configs of this data.

    Corpora that are not in the cache yet are prepared.
    """
    hashes = {each: _manifest_hash(each, cache) for each in dict.fromkeys(data)}
    return lambda config: run_identity(config, hashes[config.data], RESULTS_VERSION)


def _manifest_hash(data: DataConfig, cache: Path) -> str:
    manifest = corpus.read_manifest(data, cache)
    if manifest is None:
        from transformer_ablation.data import tokens

        print(f"preparing the corpus {data.corpus} ...", file=sys.stderr, flush=True)
        manifest = tokens.prepare(data, cache).corpus.manifest
    return corpus.manifest_hash(manifest)
