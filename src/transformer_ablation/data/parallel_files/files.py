"""Which files of a folder are which split, in one of two forms.

A split NAME is a file for each language (``NAME.en``, ``NAME.de``) or one table of
two columns (``NAME.en-de.tsv``, languages in the order of its name). Each is plain
or has ``.gz`` at the end.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from transformer_ablation.config import DataConfig
from transformer_ablation.data.parallel_text import (
    CorpusError,
    find_files,
    read_pairs,
    read_table,
)
from transformer_ablation.data.scan import Scan, scan_split, stamp_of

_SHOWN_NAMES = 12  # of the files of a folder, in a message


class Text(NamedTuple):
    """The text of one split.

    Attributes:
      paths: one file for each language in alphabetical order, or one table.
      order: the languages in the order of the files or columns.
    """

    paths: tuple[Path, ...]
    order: tuple[str, str]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Sentences in alphabetical order of their languages."""
        if len(self.paths) == 2:
            return read_pairs(*self.paths)
        rows = read_table(*self.paths)
        return rows if self.order[0] < self.order[1] else ((b, a) for a, b in rows)


class Located(NamedTuple):
    """The splits of a folder.

    Attributes:
      texts: by split; those without files are missing.
      lines: number of pairs by split.
      digests: what identifies the text, by split.
      stamps: of every file, as it was before it was read.
    """

    texts: dict[str, Text]
    lines: dict[str, int]
    digests: dict[str, dict[str, str]]
    stamps: dict[Path, dict[str, int]]

    def check_unchanged(self) -> None:
        """Refuses files that were changed since they were located."""
        for path, stamp in self.stamps.items():
            if stamp_of(path) != stamp:
                raise CorpusError(
                    f"{path}: was changed while it was read; run the command again"
                )


def locate(data: DataConfig, languages: tuple[str, str], notes: Path) -> Located:
    """The files of the config's splits, read through once.

    Args:
      languages: the two, in alphabetical order.
      notes: folder in which it is remembered what a file holds.

    Raises:
      CorpusError: if the folder or files of it are missing, do not fit together or
        cannot be read as text.
    """
    folder = Path(data.directory or "")
    if not folder.is_dir():
        raise CorpusError(
            f"data.directory: there is no folder {folder}; it must hold "
            f"{_needed(data.train_split, languages)}"
        )
    texts, problems = {}, []
    for field, split in _named(data):
        try:
            text = _find(folder, split, languages)
        except CorpusError as error:
            problems.append(str(error))
            continue
        if text is not None:
            texts[split] = text
        elif split == data.train_split or data.holdout_pairs is None:
            hint = split != data.train_split
            problems.append(_missing(folder, field, split, languages, hint))
    if problems:
        raise CorpusError("\n".join(problems))
    stamps = {path: stamp_of(path) for text in texts.values() for path in text.paths}
    scans = {
        split: scan_split(split, text.paths, notes) for split, text in texts.items()
    }
    return Located(
        texts,
        {split: found[0].lines for split, found in scans.items()},
        {split: _digests(texts[split], found) for split, found in scans.items()},
        stamps,
    )


def _named(data: DataConfig) -> list[tuple[str, str]]:
    fields = ("train_split", "validation_split", "test_split")
    return [(f, getattr(data, f)) for f in fields if getattr(data, f) is not None]


def _find(folder: Path, split: str, languages: tuple[str, str]) -> Text | None:
    """The one form in which a split is there; None if it is not."""
    sides = {x: find_files(folder, f"{split}.{x}") for x in languages}
    orders = (languages, languages[::-1])
    tables = {o: find_files(folder, f"{split}.{'-'.join(o)}.tsv") for o in orders}
    of_sides = [path for paths in sides.values() for path in paths]
    of_tables = [path for paths in tables.values() for path in paths]
    twice = any(len(paths) > 1 for paths in sides.values()) or len(of_tables) > 1
    if twice or (of_sides and of_tables):
        names = ", ".join(path.name for path in (*of_sides, *of_tables))
        raise CorpusError(
            f"{folder}: split {split!r} is there more than once: {names}; "
            f"keep {_needed(split, languages)}"
        )
    if of_tables:
        order = next(o for o, paths in tables.items() if paths)
        return Text((of_tables[0],), order)
    lacking = [language for language, paths in sides.items() if not paths]
    if len(lacking) == 1:
        raise CorpusError(
            f"{folder}: has {of_sides[0].name}, but no {split}.{lacking[0]} (plain or "
            "with .gz); a split needs a file for each language"
        )
    return None if lacking else Text(tuple(of_sides), languages)


def _missing(
    folder: Path, field: str, split: str, languages: tuple[str, str], hint: bool
) -> str:
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    more = f" and {len(names) - _SHOWN_NAMES} more" * (len(names) > _SHOWN_NAMES)
    held = ", ".join(names[:_SHOWN_NAMES]) + more
    remedy = f"add them, or name another split in data.{field}"
    if hint:
        remedy += (
            ", or take pairs out of the training file for it: "
            "--config.data.holdout_pairs=1000"
        )
    return (
        f"data.{field}: {folder} has no split {split!r}; it needs "
        f"{_needed(split, languages)}, and the folder holds {held or 'no file'}; "
        f"{remedy}"
    )


def _needed(split: str, languages: tuple[str, str]) -> str:
    a, b = languages
    return f"{split}.{a} and {split}.{b}, or {split}.{a}-{b}.tsv (plain or with .gz)"


def _digests(text: Text, found: list[Scan]) -> dict[str, str]:
    names = text.order if len(text.paths) == 2 else ("-".join(text.order),)
    return {name: each.sha256 for name, each in zip(names, found, strict=True)}
