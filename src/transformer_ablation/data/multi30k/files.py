"""The files of Multi30k task 1 (Elliott et al. 2016): where they are, what they hold.

From the public repository multi30k/dataset: 29,000 training, 1,014 validation and
1,000 + 1,000 test sentences in English, German and French.
"""

import contextlib
import hashlib
import http.client
import urllib.request
from pathlib import Path
from typing import NamedTuple

from transformer_ablation.data import storage
from transformer_ablation.data.parallel_text import (
    CorpusError,
    DownloadError,
    content_digest,
    find_files,
)

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
URL = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw/"

# SHA-256 of NAME.gz, and of the text in it.
OFFICIAL = {
    "train.en": (
        "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    ),
    "train.de": (
        "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    ),
    "train.fr": (
        "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
        "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    ),
    "val.en": (
        "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    ),
    "val.de": (
        "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    ),
    "val.fr": (
        "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
        "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    ),
    "test_2016_flickr.en": (
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    ),
    "test_2016_flickr.de": (
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    ),
    "test_2016_flickr.fr": (
        "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
        "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    ),
    "test_2017_flickr.en": (
        "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
        "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
    ),
    "test_2017_flickr.de": (
        "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
        "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    ),
    "test_2017_flickr.fr": (
        "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
        "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
    ),
}
# Names of splits in a config -> names of files.
FILES = {
    "train": "train",
    "validation": "val",
    "test_2016_flickr": "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
}


class Located(NamedTuple):
    """Files of the splits of a language pair.

    Attributes:
      names: split -> language -> file name without ``.gz``.
      digests: file name -> SHA-256 of its text.
      directory: where they lie; None if they have to be downloaded.
    """

    names: dict[str, dict[str, str]]
    digests: dict[str, str]
    directory: Path | None

    @property
    def official(self) -> bool:
        """Whether every file holds the text that was published."""
        return all(sum_ == OFFICIAL[name][1] for name, sum_ in self.digests.items())


def locate(directory: str | None, splits: list[str], languages: list[str]) -> Located:
    """The files of a folder, or of the public repository if ``directory`` is None.

    Raises:
      CorpusError: if the folder or some of its files are missing, or there twice;
        names them all.
    """
    names = {s: {x: f"{FILES[s]}.{x}" for x in languages} for s in splits}
    flat = [name for split in names.values() for name in split.values()]
    if directory is None:
        return Located(names, {name: OFFICIAL[name][1] for name in flat}, None)
    folder = Path(directory)
    if not folder.is_dir():
        raise CorpusError(
            f"data.directory: there is no folder {directory}; it must hold "
            f"{_listed(flat)}"
        )
    found = {name: find_files(folder, name) for name in flat}
    twice = [name for name, files in found.items() if len(files) > 1]
    if twice:
        raise CorpusError(
            f"{folder}: there twice, plain and with .gz: {', '.join(twice)}; keep one "
            "of each"
        )
    missing = [name for name, files in found.items() if not files]
    if missing:
        present = [name for name in flat if name not in missing]
        raise CorpusError(
            f"data.directory: {directory} lacks {_listed(missing)}; it holds "
            f"{', '.join(present) or 'none'} of the files that Multi30k "
            f"{'-'.join(languages)} needs"
        )
    digests = {name: content_digest(_path(folder, name)) for name in flat}
    return Located(names, digests, folder)


def paths(located: Located, downloads: Path) -> dict[str, dict[str, Path]]:
    """split -> language -> file, downloaded into ``downloads`` if necessary.

    Raises:
      DownloadError: if a file cannot be fetched or is not the published one.
    """
    folder = located.directory
    if folder is None:
        folder = downloads
        _download(list(located.digests), folder)
    return {
        split: {x: _path(folder, name) for x, name in by_language.items()}
        for split, by_language in located.names.items()
    }


def _path(folder: Path, name: str) -> Path:
    files = find_files(folder, name)
    if not files:
        raise CorpusError(f"{folder}: {name} has disappeared")
    return files[0]


def _download(names: list[str], folder: Path) -> None:
    for name in names:
        path = folder / f"{name}.gz"
        with contextlib.suppress(CorpusError):
            if path.exists() and content_digest(path) == OFFICIAL[name][1]:
                continue
        content = _fetch(name, names)
        with storage.writing(path):
            storage.write_bytes(path, content)


def _fetch(name: str, names: list[str]) -> bytes:
    """Bytes of NAME.gz, checked."""
    url = f"{URL}{name}.gz"
    remedy = (
        "where there is no network pass --config.data.directory=DIR, a folder that "
        f"holds {_listed(names)}"
    )
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            content = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"{url}: cannot be fetched ({error}); {remedy}") from error
    if hashlib.sha256(content).hexdigest() != OFFICIAL[name][0]:
        raise DownloadError(f"{url}: is not the published file (SHA-256); {remedy}")
    return content


def _listed(names: list[str]) -> str:
    return ", ".join(names) + " (each plain or with .gz)"
