"""WMT 2014 English-German and English-French, by TFDS's own builder.

Its splits are the training data, newstest2013 and newstest2014; TFDS keeps them in
an order of its own, the same on every machine.
"""

import contextlib
import errno
import functools
import hashlib
import shutil
import sys
import tarfile
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.data import storage
from transformer_ablation.data.parallel_text import CorpusError, DownloadError
from transformer_ablation.data.scan import stamp_of
from transformer_ablation.data.tfds_buckets import plain_buckets

NAME = "wmt14_translate"
VERSION = "1.0.0"  # of TFDS's builder; another is another corpus
HOST = "http://www.statmt.org/"  # which has most of the files

_OF_BOTH = (
    f"{HOST}wmt13/training-parallel-europarl-v7.tgz",
    f"{HOST}wmt13/training-parallel-commoncrawl.tgz",
    f"{HOST}wmt14/training-parallel-nc-v9.tgz",
    "http://data.statmt.org/wmt19/translation-task/dev.tgz",
)
# What TFDS's builder asks for; TFDS knows their SHA-256.
ARCHIVES = {
    "de-en": _OF_BOTH,
    "fr-en": (
        *_OF_BOTH,
        f"{HOST}wmt13/training-parallel-un.tgz",
        f"{HOST}wmt10/training-giga-fren.tar",
    ),
}
# The sets of the paper's Tables 3 and 2, and their sentences.
NEWSTEST = {"validation": ("newstest2013", 3000), "test": ("newstest2014", 3003)}


def prepared_in(directory: str, pair: str) -> Path:
    """The folder of a language pair ("de-en") below a TFDS data folder.

    Raises:
      CorpusError: if it is not there, not whole, or in a format that needs
        TensorFlow.
    """
    folder = Path(directory) / NAME / pair / VERSION
    remedy = (
        "without data.directory it is downloaded and prepared in the cache; or prepare "
        "it with TensorFlow: import tensorflow_datasets as tfds, "
        f"tensorflow_datasets.translate.wmt14; tfds.builder('{NAME}/{pair}:{VERSION}', "
        f"data_dir={directory!r}, file_format='array_record').download_and_prepare()"
    )
    try:
        info = storage.read_json(folder / "dataset_info.json")
        files = _files(info, folder)
    except (OSError, ValueError, KeyError, TypeError):
        raise CorpusError(
            f"data.directory: {directory} holds no prepared {NAME}/{pair}/{VERSION}; "
            f"{remedy}"
        ) from None
    if info.get("fileFormat") != "array_record":
        raise CorpusError(
            f"data.directory: {folder} is in format {info.get('fileFormat')}; "
            f"array_record is needed; {remedy}"
        )
    lacking = [path.name for path in files if not path.is_file()]
    if lacking:
        raise CorpusError(
            f"data.directory: {folder} lacks {', '.join(lacking)}; copy the whole "
            f"folder again; {remedy}"
        )
    return folder


def state(folder: Path) -> list:
    """What is different after any change of a prepared folder, for JSON."""
    path = folder / "dataset_info.json"
    files = _files(storage.read_json(path), folder)
    return [
        hashlib.sha256(path.read_bytes()).hexdigest(),
        {path.name: stamp_of(path) for path in files},
    ]


def _files(info: Mapping[str, Any], folder: Path) -> list[Path]:
    """The files that hold the text, by what TFDS noted about a folder."""
    lengths = {split["name"]: split["shardLengths"] for split in info["splits"]}
    return [
        folder / f"{NAME}-{split}.array_record-{i:05d}-of-{len(of_split):05d}"
        for split in ("train", *NEWSTEST)
        for of_split in (lengths.get(split) or [0],)
        for i in range(len(of_split))
    ]


def unusual(manifest: Mapping[str, Any]) -> list[str]:
    """What to tell of splits that are not as long as the paper's sets."""
    notes = []
    for split, (name, expected) in NEWSTEST.items():
        facts = manifest["splits"].get(split)
        if facts is not None and facts["pairs"] != expected:
            notes.append(
                f"{split}: {facts['pairs']:,} sentences, but {name} has {expected:,}; "
                "scores are not comparable with the paper's"
            )
    return notes


def download(pair: str, folder: Path, downloads: Path) -> Path:
    """Downloads and prepares a language pair below ``folder``; its data folder.

    Finished downloads stay in ``downloads`` and are not fetched again. Archives that
    the user has put into its folder ``manual`` are not fetched at all.

    Raises:
      DownloadError: if a file cannot be fetched, or is not the published one.
      CacheError: if ``downloads`` cannot be written to.
    """
    import tensorflow_datasets as tfds
    import tensorflow_datasets.translate.wmt14  # registers the builder

    builder = tfds.builder(
        f"{NAME}/{pair}:{VERSION}", data_dir=folder, file_format="array_record"
    )
    manual = downloads / "manual"
    names = [url.rpartition("/")[2] for url in ARCHIVES[pair]]
    try:
        if not all((manual / name).is_file() for name in names):
            # Without a network TFDS would try again for minutes before it says so.
            urllib.request.urlopen(HOST, timeout=30).close()
        # TFDS reports on stdout, which belongs to the command.
        with (
            storage.writing(manual),
            contextlib.redirect_stdout(sys.stderr),
            plain_buckets(),
        ):
            _fetch(ARCHIVES[pair], downloads)
            builder.download_and_prepare(
                download_dir=downloads,
                download_config=tfds.download.DownloadConfig(try_download_gcs=False),
            )
    except storage.CacheError:
        raise
    except Exception as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        raise DownloadError(
            f"wmt14 {pair} could not be downloaded and prepared ({reason}); finished "
            "downloads are kept: run the same command again, or put "
            f"{', '.join(names)} into {manual}, or pass "
            f"--config.data.directory=DIR, a TFDS folder that holds {NAME}/{pair}/"
            f"{VERSION} in array_record format"
        ) from error
    return Path(builder.data_path)


def _fetch(urls: Iterable[str], downloads: Path) -> None:
    """Downloads and unpacks archives to where TFDS looks for them.

    TFDS can download without TensorFlow, but not unpack.
    """
    import tensorflow_datasets as tfds

    manager = tfds.download.DownloadManager(
        download_dir=downloads, manual_dir=downloads / "manual", dataset_name=NAME
    )
    for url in urls:
        path = Path(manager.download(url))
        method = tfds.download.Resource(path=path).extract_method.name
        place = downloads / "extracted" / f"{method}.{path.name}"
        storage.publish(place, functools.partial(_unpack, path))


def _unpack(archive: Path, folder: Path) -> dict:
    """Files of a tar archive below ``folder``, with little memory."""
    with tarfile.open(archive) as files:
        for member in files:
            path = Path(member.name)
            content = files.extractfile(member)
            if content is None or path.is_absolute() or ".." in path.parts:
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("wb") as file:
                shutil.copyfileobj(content, file, 2**20)
    return {}
