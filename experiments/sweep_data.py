"""The data of a sweep: found or prepared before its first run."""

import functools
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


def check(runs: Iterable[Run], cache: Path) -> None:
    """Refuse, before anything is trained, data that do not fit a row.

    Every row's vocabulary and tokens are made, and learned positions are counted.
    One pair of every corpus and direction is shown on stderr.

    Raises:
      ConfigError: naming every such row, the length it needs and where from.
      VocabularyError, CorpusError: for data that cannot be prepared.
    """
    from transformer_ablation.data import lengths, summary, tokens

    problems, examples = {}, {}
    prepare = functools.lru_cache(maxsize=1)(lambda data: tokens.prepare(data, cache))
    for run in runs:
        prepared = prepare(run.config.data)
        examples[summary.example_text(prepared)] = None
        if run.config.model.positions != "learned":
            continue
        try:
            lengths.check_lengths(prepared, run.config)
        except ConfigError as error:
            problems.update((f"row {run.row}: {text}", None) for text in error.problems)
    if problems:
        raise ConfigError(problems)
    for text in examples:
        print(text, file=sys.stderr, flush=True)
