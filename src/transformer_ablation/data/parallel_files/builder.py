"""A user's own text as a TFDS builder. Importing this file imports TFDS."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow_datasets as tfds
from array_record.python.array_record_module import ArrayRecordWriter
from tensorflow_datasets.proto import tf_example_pb2, tf_feature_pb2

Pair = tuple[str, str]

SHARD_PAIRS = 2**18  # in one file of the corpus
# As TFDS writes them, any record to be read alone, but not compressed: one sentence
# pair hardly gets smaller, and takes eight times as long.
WRITER_OPTIONS = "group_size:1,uncompressed"


class ParallelFiles(tfds.core.dataset_builder.FileReaderBuilder):
    """Sentence pairs in the order of the text; features are the two languages.

    Not a GeneratorBasedBuilder: that one holds up to 1,000 MiB of a split in memory,
    needs TensorFlow for more, and takes twice as long.
    """

    VERSION = tfds.core.Version("1.0.0")

    def __init__(
        self,
        *,
        languages: tuple[str, str],
        splits: Mapping[str, tuple[int, Iterable[Pair]]],
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

    def _download_and_prepare(
        self,
        dl_manager: tfds.download.DownloadManager,
        download_config: tfds.download.DownloadConfig | None = None,
    ) -> None:
        del dl_manager, download_config  # the files are here already
        splits = [self._write(name, *split) for name, split in self._splits.items()]
        self.info.set_splits(tfds.core.splits.SplitDict(splits))

    def _write(
        self, split: str, length: int, pairs: Iterable[Pair]
    ) -> tfds.core.splits.SplitInfo:
        template = self._get_filename_template(split_name=split)
        records = map(self._record, pairs)
        count = -(-length // SHARD_PAIRS)
        lengths, size = [], 0
        for i in range(count):
            path = template.sharded_filepath(shard_index=i, num_shards=count)
            lengths.append(_write_records(str(path), records))
            size += path.stat().length
        return tfds.core.splits.SplitInfo(
            name=split,
            shard_lengths=lengths,
            num_bytes=size,
            filename_template=template,
        )

    def _record(self, pair: Pair) -> bytes:
        """What TFDS makes of the features, in a third of the time."""
        texts = zip(self._languages, pair, strict=True)
        feature = {
            language: tf_feature_pb2.Feature(
                bytes_list=tf_feature_pb2.BytesList(value=[text.encode()])
            )
            for language, text in texts
        }
        features = tf_feature_pb2.Features(feature=feature)
        return tf_example_pb2.Example(features=features).SerializeToString()


def _write_records(path: str, records: Iterator[bytes]) -> int:
    """Writes the next ``SHARD_PAIRS`` records to a file; how many there were."""
    written = 0
    with contextlib.closing(ArrayRecordWriter(path, WRITER_OPTIONS)) as writer:
        for record in itertools.islice(records, SHARD_PAIRS):
            writer.write(record)
            written += 1
    return written
