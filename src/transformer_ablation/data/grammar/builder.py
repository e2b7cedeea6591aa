"""The corpus as a TFDS builder; it needs neither a network nor TensorFlow."""

from collections.abc import Iterator

import tensorflow_datasets as tfds

from transformer_ablation.data.grammar import sentences

# Smaller splits draw first: a sentence of theirs is never one of train.
SEEDS = {"test": 3, "validation": 2, "train": 1}


def corpus(sizes: dict[str, int]) -> dict[str, list[sentences.Pair]]:
    """All splits, disjoint in English and in German."""
    seen: set[str] = set()
    splits: dict[str, list[sentences.Pair]] = {}
    for split, seed in SEEDS.items():
        splits[split] = []
        for english, german in sentences.sentences(seed):
            if len(splits[split]) == sizes[split]:
                break
            if english not in seen and german not in seen:
                seen |= {english, german}
                splits[split].append((english, german))
    return splits


class Grammar(tfds.core.GeneratorBasedBuilder):
    """English-German pairs from a hand-written synchronous grammar."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First version."}
    SIZES = {"train": 20_000, "validation": 500, "test": 500}

    def _info(self) -> tfds.core.DatasetInfo:
        text = tfds.features.Text
        return self.dataset_info_from_configs(
            description="English-German pairs from a hand-written synchronous grammar.",
            features=tfds.features.FeaturesDict({"en": text(), "de": text()}),
            supervised_keys=("en", "de"),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict:
        pairs = corpus(self.SIZES)
        order = ("train", "validation", "test")
        return {split: self._generate_examples(pairs[split]) for split in order}

    def _generate_examples(self, pairs: list[sentences.Pair]) -> Iterator:
        for index, (english, german) in enumerate(pairs):
            yield index, {"en": english, "de": german}
