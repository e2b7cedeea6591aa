"""The data of a sweep: found or prepared before its first run."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import Config, ConfigError, DataConfig
from transformer_ablation.data import corpus
from transformer_ablation.sweep.identity import run_identity
from transformer_ablation.sweep.runs import Run


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


def check_lengths(runs: Iterable[Run], cache: Path) -> None:
    """Refuse, before anything is trained, rows whose learned positions are too few.

    Raises:
      ConfigError: naming every such row, the length it needs and where from.
    """
    problems = {}
    for run in runs:
        if run.config.model.positions != "learned":
            continue
        from transformer_ablation.data import lengths, tokens

        try:
            lengths.check_lengths(tokens.prepare(run.config.data, cache), run.config)
        except ConfigError as error:
            problems.update((f"row {run.row}: {text}", None) for text in error.problems)
    if problems:
        raise ConfigError(problems)
