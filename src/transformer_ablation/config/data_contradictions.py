"""Faults of the data section that two of its fields have together."""

import re

from transformer_ablation.config.sections import Config, DataConfig

# Languages and splits of each corpus; a user's own files have any.
LANGUAGES = {
    "grammar": ("en", "de"),
    "multi30k": ("en", "de", "fr"),
    "wmt14": ("en", "de", "fr"),
}
SPLITS = {
    "grammar": ("train", "validation", "test"),
    "multi30k": ("train", "validation", "test_2016_flickr", "test_2017_flickr"),
    "wmt14": ("train", "validation", "test"),
}
# What names a user's own files: NAME.LANGUAGE or NAME.LANGUAGE-LANGUAGE.tsv.
FILE_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
# Words with another meaning in the names of files or in what is written of them.
RESERVED_LANGUAGES = ("gz", "pair", "pairs", "checks")
RESERVED_SPLITS = ("all",)


def data_contradictions(config: Config) -> list[str]:
    data = config.data
    named = _file_names if data.corpus == "parallel_files" else _corpus_names
    problems = named(data)
    if data.source_language == data.target_language:
        problems.append(
            f"data.target_language: {data.target_language!r} is the source language too"
        )
    if data.train_split in (data.validation_split, data.test_split):
        problems.append(
            f"data.train_split: {data.train_split!r} is also scored; "
            "train on one split and score others"
        )
    if data.packed_length is not None and data.length_buckets != 1:
        problems.append(
            f"data.length_buckets: {data.length_buckets} buckets, but packed rows "
            f"(data.packed_length = {data.packed_length}) have one shape; make it 1, "
            "or data.packed_length None"
        )
    if data.validation_split == data.test_split:
        problems.append(
            f"data.test_split: {data.test_split!r} is the validation split too; "
            "name another or None"
        )
    return problems


def _splits_of(data: DataConfig) -> list[tuple[str, str]]:
    """(field, name) of every split that the config uses."""
    fields = ("train_split", "validation_split", "test_split")
    named = [(field, getattr(data, field)) for field in fields]
    return [(field, name) for field, name in named if name is not None]


def _corpus_names(data: DataConfig) -> list[str]:
    """Languages and splits that a corpus of fixed ones does not have."""
    problems = []
    languages = (data.source_language, data.target_language)
    known = LANGUAGES[data.corpus]
    for field in ("source_language", "target_language"):
        if getattr(data, field) not in known:
            problems.append(
                f"data.{field}: corpus {data.corpus!r} has no "
                f"{getattr(data, field)!r}; it has {', '.join(known)}"
            )
    if len(set(languages)) == 2 and "en" not in languages and not problems:
        problems.append(
            f"data.target_language: corpus {data.corpus!r} pairs every language with "
            f"English; {'-'.join(languages)} is not in it"
        )
    for field, split in _splits_of(data):
        if split not in SPLITS[data.corpus]:
            problems.append(
                f"data.{field}: corpus {data.corpus!r} has no split {split!r}; "
                f"it has {', '.join(SPLITS[data.corpus])}"
            )
    if data.holdout_pairs is not None:
        problems.append(
            f"data.holdout_pairs: {data.holdout_pairs}, but corpus {data.corpus!r} has "
            "splits of its own; make it None (it is of 'parallel_files' alone)"
        )
    return problems


def _file_names(data: DataConfig) -> list[str]:
    """Languages and splits that cannot be part of the name of a file."""
    problems = []
    if data.directory is None:
        problems.append(
            "data.directory: corpus 'parallel_files' is text of your own; name its "
            "folder, as in --config.data.directory=DIR"
        )
    languages = (
        (field, getattr(data, field), RESERVED_LANGUAGES)
        for field in ("source_language", "target_language")
    )
    splits = ((field, name, RESERVED_SPLITS) for field, name in _splits_of(data))
    for field, name, reserved in (*languages, *splits):
        if not FILE_WORD.fullmatch(name) or name.lower() in reserved:
            problems.append(
                f"data.{field}: {name!r} cannot name files of corpus 'parallel_files'; "
                "it must be at most 64 ASCII letters, digits, _ and -, "
                f"not begin with - and not be any of {', '.join(reserved)}"
            )
    return problems
