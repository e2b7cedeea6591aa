"""WMT 2014 English-German and English-French, by TFDS's own builder.

Its splits are the training data, newstest2013 and newstest2014; TFDS keeps them in
an order of its own, the same on every machine.
"""

import contextlib
import errno
import hashlib
import sys
import urllib.request
from pathlib import Path

from transformer_ablation.data import storage
from transformer_ablation.data.parallel_text import CorpusError, DownloadError

NAME = "wmt14_translate"
VERSION = "1.0.0"  # of TFDS's builder; another is another corpus
HOST = "http://www.statmt.org/"  # which has most of the files


def prepared_in(directory: str, pair: str) -> Path:
    """The folder of a language pair ("de-en") below a TFDS data folder.

    Raises:
      CorpusError: if it is not there, or in a format that needs TensorFlow.
    """
    folder = Path(directory) / NAME / pair / VERSION
    remedy = (
        "prepare it on a machine with a network: import tensorflow_datasets as tfds, "
        f"tensorflow_datasets.translate.wmt14; tfds.builder('{NAME}/{pair}:{VERSION}', "
        f"data_dir={directory!r}, file_format='array_record').download_and_prepare()"
    )
    try:
        info = storage.read_json(folder / "dataset_info.json")
    except (OSError, ValueError):
        raise CorpusError(
            f"data.directory: {directory} holds no prepared {NAME}/{pair}/{VERSION}; "
            f"{remedy}"
        ) from None
    if info.get("fileFormat") != "array_record":
        raise CorpusError(
            f"data.directory: {folder} is in format {info.get('fileFormat')}; "
            f"array_record is needed; {remedy}"
        )
    return folder


def digest(folder: Path) -> str:
    """SHA-256 of what TFDS noted about a prepared folder."""
    return hashlib.sha256((folder / "dataset_info.json").read_bytes()).hexdigest()


def download(pair: str, folder: Path, downloads: Path) -> Path:
    """Downloads and prepares a language pair below ``folder``; its data folder.

    Finished downloads stay in ``downloads`` and are not fetched again.

    Raises:
      DownloadError: if a file cannot be fetched.
    """
    import tensorflow_datasets as tfds
    import tensorflow_datasets.translate.wmt14  # registers the builder

    builder = tfds.builder(
        f"{NAME}/{pair}:{VERSION}", data_dir=folder, file_format="array_record"
    )
    try:
        # Without a network TFDS would try again for minutes before it says so.
        urllib.request.urlopen(HOST, timeout=30).close()
        # TFDS reports on stdout, which belongs to the command.
        with contextlib.redirect_stdout(sys.stderr):
            builder.download_and_prepare(
                download_dir=downloads,
                download_config=tfds.download.DownloadConfig(try_download_gcs=False),
            )
    except Exception as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        raise DownloadError(
            f"wmt14 {pair} could not be downloaded and prepared ({reason}); finished "
            "downloads are kept: run the same command again, or pass "
            f"--config.data.directory=DIR, a TFDS folder that holds {NAME}/{pair}/"
            f"{VERSION} in array_record format"
        ) from error
    return Path(builder.data_path)
