"""The data of a sweep: found or prepared before its first run."""

import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import Config, ConfigError, DataConfig, differences
from transformer_ablation.data import corpus
from transformer_ablation.sweep.identity import run_identity
from transformer_ablation.sweep.rows import ExpandedRow
from transformer_ablation.sweep.runs import Run


def identifier(
    expanded: Sequence[ExpandedRow], cache: Path, records: Iterable[Mapping[str, Any]]
) -> Callable[[Config], str]:
    """A function from a config of these rows to its run's identity.

    Corpora that are not in the cache yet are prepared. ``records`` are those of the
    workdir.

    Raises:
      ConfigError: if rows, or what was recorded of others, are of different text.
    """
    data = dict.fromkeys(item.config.data for item in expanded)
    hashes = {each: _manifest_hash(each, cache) for each in data}
    _check_same_text(expanded, hashes, records)
    return lambda config: run_identity(config, hashes[config.data], RESULTS_VERSION)


def _check_same_text(
    expanded: Sequence[ExpandedRow],
    hashes: Mapping[DataConfig, str],
    records: Iterable[Mapping[str, Any]],
) -> None:
    """Refuses, before anything is trained, what no table would take together."""
    first, *others = expanded
    problems = []
    for item in others:
        if hashes[item.config.data] != hashes[first.config.data]:
            found = differences(first.config, item.config).items()
            fields = [
                f"{k} {b!r}, not {a!r}" for k, (a, b) in found if k[:5] == "data."
            ]
            names = f"row {item.row.name}: is of other text than row {first.row.name}"
            problems.append(f"{names}: {', '.join(fields)}")
    ours = {item.row.name for item in expanded}  # whose folders are checked later
    for record in records:
        known = (record["data"] or {}).get("manifest_hash")
        if record["row"] not in ours and known not in (None, *hashes.values()):
            names = f"row {first.row.name}: is of other text than row {record['row']}"
            problems.append(f"{names}, which this workdir holds")
    if problems:
        remedy = "no table takes both: give all rows one text, or each a --workdir"
        raise ConfigError([*problems, remedy])


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
