"""Corpora as sentence pairs, and the manifest that says exactly what they hold."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transformer_ablation.config import DataConfig
from transformer_ablation.data import checks, sources, storage
from transformer_ablation.data.languages import learn, sample_of
from transformer_ablation.data.parallel_text import CorpusError, DownloadError

__all__ = [
    "Corpus",
    "CorpusError",
    "DownloadError",
    "Pairs",
    "load_corpus",
    "manifest_differences",
    "manifest_hash",
    "read_manifest",
]

_READ_PAIRS = 2048  # pairs read at once


class Pairs:
    """(source, target) sentences of a split, in the order of the corpus.

    Nothing is opened before the first read, and little is held in memory.
    """

    def __init__(
        self, open_split: Callable[[], Any], length: int, source: str, target: str
    ):
        """``open_split()`` gives a TFDS data source with features of these names."""
        self._open_split = open_split
        self._length = length
        self._names = (source, target)
        self._opened: Any = None

    def __reduce__(self) -> tuple:
        """For other processes, which open the split themselves."""
        return (Pairs, (self._open_split, self._length, *self._names))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for chunk in self.chunks():
            yield from chunk

    def chunks(self) -> Iterator[list[tuple[str, str]]]:
        """All pairs, a few thousand at a time."""
        for start in range(0, self._length, _READ_PAIRS):
            yield self.read(range(start, min(start + _READ_PAIRS, self._length)))

    def read(self, indices: Iterable[int]) -> list[tuple[str, str]]:
        """The pairs at some indices; thousands at once are quickest."""
        if self._opened is None:
            self._opened = self._open_split()
        source, target = self._names
        records = self._opened.__getitems__([int(i) for i in indices])
        return [(_text(record[source]), _text(record[target])) for record in records]

    def at(self, indices: np.ndarray) -> "Pairs":
        """The pairs at some indices, in that order, as pairs of their own."""
        opener = functools.partial(_open_chosen, self._open_split, indices)
        return Pairs(opener, len(indices), *self._names)


def _open_chosen(open_split: Callable[[], Any], indices: np.ndarray) -> "_Chosen":
    return _Chosen(open_split(), indices)


@dataclasses.dataclass(frozen=True)
class _Chosen:
    """Records of a data source at some indices."""

    source: Any
    indices: np.ndarray

    def __getitems__(self, places: Sequence[int]) -> Any:
        return self.source.__getitems__(self.indices[places].tolist())


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A corpus in one direction.

    Attributes:
      splits: by the names that the config uses.
      check_unchanged: raises CorpusError if the text is another than was found.
    """

    source_language: str
    target_language: str
    splits: dict[str, Pairs]
    manifest: dict
    check_unchanged: Callable[[], None] = lambda: None

    def digests(self, split: str) -> list[list[str]]:
        """What identifies the text of a split, whatever the direction."""
        facts = self.manifest["splits"][split]
        languages = sorted((self.source_language, self.target_language))
        return [[language, facts[language]["sha256"]] for language in languages]


def load_corpus(data: DataConfig, cache: Path) -> Corpus:
    """The corpus of a config, prepared in ``cache`` by the first call.

    Raises:
      CorpusError: if files are missing, damaged or do not fit together.
      DownloadError: if files have to be fetched and cannot be.
    """
    source = sources.find(data, Path(cache))
    folder = _folder(source, cache)
    check_unchanged = functools.partial(_check_unchanged, source, data, Path(cache))

    def fill(path: Path) -> dict:
        facts = _prepare(source, data, path)
        check_unchanged()
        return facts

    facts = storage.read(folder)
    if facts is None:
        facts = storage.publish(folder, fill, digests=True)
    manifest = _manifest(facts, data)
    splits = {
        split: Pairs(
            _opener(folder / facts["data_path"], split),
            manifest["splits"][split]["pairs"],
            data.source_language,
            data.target_language,
        )
        for split in sources.splits_of(data)
    }
    languages = data.source_language, data.target_language
    return Corpus(*languages, splits, manifest, check_unchanged)


def read_manifest(data: DataConfig, cache: Path) -> dict | None:
    """The manifest if the corpus is prepared and intact, else None; quick."""
    try:
        source = sources.find(data, Path(cache))
    except CorpusError:
        return None
    facts = storage.read(_folder(source, cache))
    return None if facts is None else _manifest(facts, data)


def manifest_hash(manifest: dict) -> str:
    """SHA-256 of the direction and the text of every split, and of nothing else."""
    languages = manifest["source_language"], manifest["target_language"]
    texts = {
        name: {language: split[language]["sha256"] for language in languages}
        for name, split in manifest["splits"].items()
    }
    return storage.content_key([*languages, texts])


def manifest_differences(before: dict, now: dict) -> list[str]:
    """A line a split whose text is not that of an earlier manifest: what differs.

    Empty exactly where ``manifest_hash`` is equal for both.
    """
    languages = before["source_language"], before["target_language"]
    direction = now["source_language"], now["target_language"]
    if languages != direction:
        return [f"{'-'.join(languages)} there, {'-'.join(direction)} now"]
    found = []
    for name in sorted(before["splits"].keys() | now["splits"].keys()):
        old, new = before["splits"].get(name), now["splits"].get(name)
        if old is None or new is None:
            found.append(f"split {name}: {'not there' if old is None else 'gone'}")
            continue
        sides = [s for s in languages if old[s]["sha256"] != new[s]["sha256"]]
        if old["pairs"] != new["pairs"]:
            found.append(f"split {name}: {old['pairs']:,} pairs, {new['pairs']:,} now")
        elif sides:
            found.append(f"split {name}: the text of {' and '.join(sides)} differs")
    return found


def _folder(source: sources.Source, cache: Path) -> Path:
    """Where a corpus stands, with a report by the present rules."""
    return storage.place(cache, "corpora", f"{source.key}-checks{checks.RULES}")


def _check_unchanged(source: sources.Source, data: DataConfig, cache: Path) -> None:
    """Refuses text that is no longer what the source was found to be."""
    if sources.find(data, cache).key != source.key:
        raise CorpusError(
            f"data.directory: {data.directory} was changed while it was read; run the "
            "command again"
        )


def _opener(data_path: Path, split: str) -> Callable[[], Any]:
    """A function that opens a split of a prepared TFDS folder."""
    return functools.partial(_open_split, data_path, split)


def _open_split(data_path: Path, split: str) -> Any:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(data_path)
    raw = tfds.core.decode.DeserializeMethod.RAW_BYTES
    records = builder.as_data_source(split, deserialize_method=raw)
    return _TextRecords(records, f"{data_path}: split {split}")


class _TextRecords:
    """Records of text features alone, read in under half the time TFDS needs.

    TFDS turns every feature of a record into an array and back.
    """

    def __init__(self, records: Any, name: str):
        """``records`` is a TFDS data source that gives serialized examples."""
        self._records = records
        self._name = name

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, bytes]]:
        from google.protobuf import message
        from tensorflow_datasets.proto import tf_example_pb2

        parse = tf_example_pb2.Example.FromString
        try:
            return [
                {name: x.bytes_list.value[0] for name, x in features.items()}
                for record in self._records.__getitems__(indices)
                for features in (parse(record).features.feature,)
            ]
        except (RuntimeError, IndexError, message.DecodeError) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            raise CorpusError(
                f"{self._name} cannot be read ({reason}); restore the folder from a "
                "copy, or remove it if it is in the cache: it is then prepared anew"
            ) from error


def _prepare(source: sources.Source, data: DataConfig, folder: Path) -> dict:
    """Prepares a corpus below ``folder``; the facts to keep beside it."""
    import tensorflow_datasets as tfds

    data_path = source.prepare(folder)
    builder = tfds.builder_from_directory(data_path)
    below = data_path.is_relative_to(folder)
    splits = {
        name: Pairs(_opener(data_path, name), info.num_examples, *source.languages)
        for name, info in builder.info.splits.items()
    }
    return {
        "corpus": data.corpus,
        "version": str(builder.version),
        "data_path": str(data_path.relative_to(folder) if below else data_path),
        **_describe(splits, source.languages),
        **source.facts,
    }


def _manifest(facts: dict, data: DataConfig) -> dict:
    """What a record says of the data: the config's direction and splits.

    Of the overlaps of splits it has those of the training split with the others.
    """
    facts = {key: value for key, value in facts.items() if key != "data_path"}
    names = sources.splits_of(data)
    with_train = facts["overlaps"][data.train_split]
    manifest = {
        **facts,
        "source_language": data.source_language,
        "target_language": data.target_language,
        "splits": {name: facts["splits"][name] for name in names},
        "overlaps": {name: with_train[name] for name in names if name in with_train},
    }
    return {**manifest, "unusual": sources.unusual(manifest)}


def _describe(splits: dict[str, Pairs], sides: tuple[str, str]) -> dict:
    """Counts, hashes and findings of every split, and what splits share.

    ``sides`` are the languages of the pairs. Words are what white space separates;
    ``sha256`` is that of the lines joined with line ends, in UTF-8.

    Raises:
      CorpusError: if a split is empty or a sentence holds a line end.
    """
    for name, pairs in splits.items():
        if len(pairs) == 0:
            raise CorpusError(f"split {name} is empty")
    largest = max(splits.values(), key=len)
    sample = [pair for part in sample_of(len(largest)) for pair in largest.read(part)]
    typical = learn(sample)
    facts, prints = {}, {}
    for name, pairs in splits.items():
        examination = checks.Examination(sides, typical)
        for chunk in pairs.chunks():
            _refuse_line_ends(name, chunk, examination.length, sides)
            examination.add(chunk)
        facts[name], prints[name] = examination.facts(pairs.read)
    reads = {name: pairs.read for name, pairs in splits.items()}
    return {
        "splits": facts,
        "overlaps": checks.overlaps(prints, sides, reads),
        "checks": checks.rules(sides, typical, len(sample)),
    }


def _refuse_line_ends(
    split: str, chunk: Sequence[tuple[str, str]], start: int, sides: tuple[str, str]
) -> None:
    if "\n" not in "".join(map("".join, chunk)):
        return
    for i, pair in enumerate(chunk, start):
        for text, language in zip(pair, sides, strict=True):
            if "\n" in text:
                raise CorpusError(
                    f"split {split}, pair {i}, {language}: a line end in {text[:60]!r}"
                )


def _text(value: bytes | str) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else value
