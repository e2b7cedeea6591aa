"""Multi30k as a TFDS builder. Importing this file imports TFDS."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorflow_datasets as tfds

from transformer_ablation.data.parallel_text import read_pairs


class Multi30k(tfds.core.GeneratorBasedBuilder):
    """Sentence pairs in the order of the files; features are the two languages."""

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [
        tfds.core.BuilderConfig(name=name, description=f"Task 1, {name}.")
        for name in ("de-en", "en-fr")
    ]

    def __init__(self, *, files: Mapping[str, Mapping[str, Path]], **kwargs: Any):
        """``files``: split -> language -> text file, plain or gzipped."""
        self._files = files
        super().__init__(**kwargs)

    def _info(self) -> tfds.core.DatasetInfo:
        languages = self.builder_config.name.split("-")
        return self.dataset_info_from_configs(
            description="Multi30k task 1: descriptions of images and translations.",
            homepage="https://github.com/multi30k/dataset",
            features=tfds.features.Translation(languages=languages),
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict:
        del dl_manager  # the files are here already
        return {
            split: self._generate_examples(paths)
            for split, paths in self._files.items()
        }

    def _generate_examples(
        self, paths: Mapping[str, Path]
    ) -> Iterator[tuple[int, dict[str, str]]]:
        for i, pair in enumerate(read_pairs(*paths.values())):
            yield i, dict(zip(paths, pair, strict=True))
