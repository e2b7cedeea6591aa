"""Where each corpus comes from: its place in the cache and how it gets there.

Finding a source is quick and imports no TFDS; preparing it does.
"""

import contextlib
import dataclasses
import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.config import DataConfig
from transformer_ablation.data import storage, wmt14
from transformer_ablation.data.multi30k import files as multi30k_files
from transformer_ablation.data.parallel_files import files as parallel_files
from transformer_ablation.data.parallel_files import holdout as holdouts
from transformer_ablation.data.scan import scan_split


@dataclasses.dataclass(frozen=True)
class Source:
    """One corpus.

    Attributes:
      key: name of its folder in the cache; another content has another key.
      languages: the two, in alphabetical order.
      facts: what else the manifest says about it.
      prepare: makes array_record files below an empty folder; returns the folder
        that TFDS reads.
    """

    key: str
    languages: tuple[str, str]
    facts: dict
    prepare: Callable[[Path], Path]


def find(data: DataConfig, cache: Path) -> Source:
    """The source of a config.

    Raises:
      CorpusError: if the folder the user names, or something in it, is missing.
    """
    return {
        "grammar": _grammar,
        "multi30k": _multi30k,
        "wmt14": _wmt14,
        "parallel_files": _parallel_files,
    }[data.corpus](data, cache)


def unusual(manifest: Mapping[str, Any]) -> list[str]:
    """What to tell of text that goes by a published name and may be another."""
    return wmt14.unusual(manifest) if manifest["corpus"] == "wmt14" else []


def splits_of(data: DataConfig) -> list[str]:
    """The config's splits; the last is missing where there is no test split."""
    splits = (data.train_split, data.validation_split, data.test_split)
    return [split for split in splits if split is not None]


def _languages(data: DataConfig) -> tuple[str, str]:
    first, second = sorted((data.source_language, data.target_language))
    return first, second


def _notes(cache: Path) -> Path:
    """Where it is remembered what text files hold."""
    return storage.place(cache, "files", "scans")


def _grammar(data: DataConfig, cache: Path) -> Source:
    """The embedded corpus; any change of its code makes another key."""

    def prepare(folder: Path) -> Path:
        from transformer_ablation.data.grammar.builder import Grammar

        builder = Grammar(data_dir=folder, file_format="array_record")
        return _build(builder, folder)

    code = hashlib.sha256()
    for path in sorted((Path(__file__).parent / "grammar").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            code.update(f"{path.name} {path.stat().st_size}\n".encode())
            code.update(path.read_bytes())
    return Source(f"grammar-{code.hexdigest()[:16]}", _languages(data), {}, prepare)


def _multi30k(data: DataConfig, cache: Path) -> Source:
    languages = _languages(data)
    located = multi30k_files.locate(data.directory, splits_of(data), list(languages))

    def prepare(folder: Path) -> Path:
        from transformer_ablation.data.multi30k.builder import Multi30k

        files = multi30k_files.paths(located, cache / "downloads" / "multi30k")
        for split, by_language in files.items():
            scan_split(split, list(by_language.values()), _notes(cache))
        builder = Multi30k(
            files=files,
            config="-".join(languages),
            data_dir=folder,
            file_format="array_record",
        )
        return _build(builder, folder)

    key = storage.content_key([located.names, located.digests])[:16]
    facts = {"official": located.official}
    return Source(f"multi30k-{'-'.join(languages)}-{key}", languages, facts, prepare)


def _wmt14(data: DataConfig, cache: Path) -> Source:
    languages = _languages(data)
    pair = "-".join(sorted(languages, key=lambda language: language == "en"))
    if data.directory is None:
        downloads = cache / "downloads" / "wmt14"
        return Source(
            f"wmt14-{pair}-{wmt14.VERSION}",
            languages,
            {},
            lambda folder: wmt14.download(pair, folder, downloads),
        )
    folder = wmt14.prepared_in(data.directory, pair).resolve()
    key = storage.content_key([str(folder), wmt14.state(folder)])[:16]
    return Source(f"wmt14-{pair}-{key}", languages, {}, lambda _: folder)


def _parallel_files(data: DataConfig, cache: Path) -> Source:
    """A user's own text; only a file that was changed is read again."""
    languages = _languages(data)
    located = parallel_files.locate(data, languages, _notes(cache))
    holdout = holdouts.asked(data, located)

    def prepare(folder: Path) -> Path:
        from transformer_ablation.data.parallel_files.builder import ParallelFiles

        builder = ParallelFiles(
            languages=languages,
            splits=holdouts.splits(located, holdout),
            data_dir=folder,
            file_format="array_record",
        )
        path = _build(builder, folder)
        located.check_unchanged()
        return path

    key = storage.content_key([located.digests, holdout])[:16]
    facts = {} if holdout is None else {"holdout": holdout.facts(located)}
    return Source(
        f"parallel_files-{'-'.join(languages)}-{key}", languages, facts, prepare
    )


def _build(builder: Any, folder: Path) -> Path:
    """Runs a builder quietly; the folder it made."""
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    with contextlib.redirect_stdout(io.StringIO()):
        builder.download_and_prepare(download_dir=folder / "downloads")
    return Path(builder.data_path)
