"""The same few sentences of a split, as every row translates them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_ablation.report.json_file import RecordError
from transformer_ablation.report.record import run_directory
from transformer_ablation.report.translations import (
    FOLDER,
    hypothesis_files,
    read_lines,
    reference_file,
)

SENTENCES = 8
MOST_LETTERS = 600  # of a sentence that is shown


class Sample(NamedTuple):
    """One sentence; ``line`` counts from 1. Source or reference is None if not kept."""

    line: int
    source: str | None
    reference: str | None
    hypothesis: str


class Samples(NamedTuple):
    """Of one run; ``file`` holds its hypotheses. ``fault`` says why there are none."""

    row: str
    seed: int
    file: str | None
    sentences: Sequence[Sample]
    fault: str | None = None


def read_samples(
    workdir: Path, finished: Iterable[Mapping[str, Any]], split: str
) -> list[Samples]:
    """Of each row the first seed's, at equal distances through the split.

    A row's sentences are left out where they are not those of the first row.
    """
    first_seeds: dict[str, int] = {}
    for record in finished:
        seed = first_seeds.setdefault(record["row"], record["seed"])
        first_seeds[record["row"]] = min(seed, record["seed"])
    found: list[Samples] = []
    pairs: list[tuple] | None = None
    for row, seed in first_seeds.items():
        try:
            samples = _samples(workdir, row, seed, split)
        except (RecordError, OSError) as error:
            samples = Samples(row, seed, None, [], str(error))
        mine = [(s.line, s.source, s.reference) for s in samples.sentences]
        if mine and pairs is None:
            pairs = mine
        if mine and mine != pairs:
            fault = "its sources or references are not those of the rows before it"
            samples = samples._replace(sentences=[], fault=fault)
        found.append(samples)
    return found


def _samples(workdir: Path, row: str, seed: int, split: str) -> Samples:
    run = run_directory(workdir, row, seed)
    files = hypothesis_files(run, split)
    if not files:
        return Samples(row, seed, None, [], f"no stored translations of {split}")
    hypotheses = read_lines(files[0])
    sources = _kept(run / FOLDER / f"{split}.source.txt", len(hypotheses))
    references = _kept(reference_file(run, split), len(hypotheses))
    sentences = [
        Sample(
            place + 1,
            None if sources is None else _short(sources[place]),
            None if references is None else _short(references[place]),
            _short(hypotheses[place]),
        )
        for place in places(len(hypotheses))
    ]
    return Samples(row, seed, files[0].name, sentences)


def places(count: int, most: int = SENTENCES) -> list[int]:
    """At most so many of ``range(count)``, in the middles of equal stretches."""
    chosen = min(count, most)
    return [(2 * i + 1) * count // (2 * chosen) for i in range(chosen)]


def _kept(path: Path, count: int) -> list[str] | None:
    """Lines that stand beside as many hypotheses; None for other ones."""
    lines = read_lines(path) if path.is_file() else []
    return lines if len(lines) == count else None


def _short(sentence: str) -> str:
    if len(sentence) <= MOST_LETTERS:
        return sentence
    return sentence[: MOST_LETTERS - 1] + "…"
