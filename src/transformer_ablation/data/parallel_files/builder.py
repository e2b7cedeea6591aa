"""A user's own text as a TFDS builder. Importing this file imports TFDS."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import tensorflow_datasets as tfds

# One file of the corpus; TFDS keeps the pairs of one in memory.
SHARD_PAIRS = 2**16


class ParallelFiles(tfds.core.ShardBasedBuilder):
    """Sentence pairs in the order of the text; features are the two languages.

    Shard by shard, since TFDS's GeneratorBasedBuilder holds up to 1,000 MiB of a
    split in memory and needs TensorFlow for more.
    """

    VERSION = tfds.core.Version("1.0.0")

    def __init__(
        self,
        *,
        languages: tuple[str, str],
        splits: Mapping[str, tuple[int, Iterable[tuple[str, str]]]],
        **kwargs: Any,
    ):
        """``splits``: split -> number of pairs, and the pairs; they are read once."""
        self._languages = languages
        self._splits = splits
        super().__init__(**kwargs)

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            description="Sentence pairs from text files of a user.",
            features=tfds.features.Translation(languages=list(self._languages)),
            disable_shuffling=True,
        )

    def _shard_iterators_per_split(
        self, dl_manager: tfds.download.DownloadManager
    ) -> dict:
        del dl_manager  # the files are here already
        return {
            split: [self._next_shard(iter(pairs))] * -(-length // SHARD_PAIRS)
            for split, (length, pairs) in self._splits.items()
        }

    def _next_shard(
        self, pairs: Iterator[tuple[str, str]]
    ) -> Callable[[], Iterator[tuple[int, dict[str, str]]]]:
        """A function whose every call goes on where the last one ended."""

        def shard() -> Iterator[tuple[int, dict[str, str]]]:
            for i, pair in enumerate(itertools.islice(pairs, SHARD_PAIRS)):
                yield i, dict(zip(self._languages, pair, strict=True))

        return shard
