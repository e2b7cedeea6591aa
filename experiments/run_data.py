"""Whether the data at hand are those that a run was trained on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_ablation import RESULTS_VERSION
from transformer_ablation.data.corpus import manifest_differences, manifest_hash
from transformer_ablation.data.tokens import Prepared, prepare
from transformer_ablation.report.record import read_record
from transformer_ablation.runs.errors import LoadError
from transformer_ablation.runs.loading import SavedRun


def record_of(run: SavedRun) -> dict[str, Any] | None:
    """The record of a run of this program's version, or None where there is none.

    Raises:
      LoadError: for one of another version's.
    """
    record = read_record(run.directory)
    if record is not None:
        check_version(run, record)
    return record


def prepared_of(run: SavedRun, cache: Path) -> Prepared:
    """The data of a run, which are those that it is or was trained on.

    Raises:
      LoadError: if they are not, or nothing says which they were.
      CorpusError, VocabularyError: as ``prepare``.
    """
    record = record_of(run)
    if record is None or record["data"] is None:
        raise LoadError(
            f"{run.directory}: no record says which data it was trained on; wait until "
            "its training has begun"
        )
    prepared = prepare(run.config.data, cache)
    check_data(run, record["data"], prepared)
    return prepared


def check_data(run: SavedRun, recorded: Mapping[str, Any], prepared: Prepared) -> None:
    """Refuses to score other text, or other pieces, under the name of the run's.

    ``recorded`` is the ``data`` of the run's record.

    Raises:
      LoadError: naming the splits that differ, or the vocabularies.
    """
    data = run.config.data
    remedy = (
        "put the text it was trained on back "
        f"(data.directory = {data.directory}), or train a run on this one"
    )
    now = prepared.corpus.manifest
    if manifest_hash(now) != recorded["manifest_hash"]:
        found = "; ".join(manifest_differences(recorded["manifest"], now))
        raise LoadError(
            f"{run.directory}: the corpus {data.corpus} has changed since it was "
            f"trained ({found}); {remedy}"
        )
    if prepared.vocabulary.content_hash != run.vocabulary.content_hash:
        raise LoadError(
            f"{run.directory}: was trained with vocabulary "
            f"{run.vocabulary.content_hash[:12]}, but the data now give "
            f"{prepared.vocabulary.content_hash[:12]}; {remedy}"
        )


def check_version(run: SavedRun, record: Mapping[str, Any]) -> None:
    """Refuses to add scores of this program to a record of another version's.

    Raises:
      LoadError: naming both versions.
    """
    if record["results_version"] != RESULTS_VERSION:
        raise LoadError(
            f"{run.directory}: its numbers are of results version "
            f"{record['results_version']}, this program's of {RESULTS_VERSION}; score "
            "it with the program that trained it, or train it again"
        )
