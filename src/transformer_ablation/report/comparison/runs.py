"""Which runs are compared, and the texts of each; what cannot be is refused."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_ablation.config import unknown_name
from transformer_ablation.report.consistency import run_name
from transformer_ablation.report.record import (
    RECORD_FILE,
    live_status,
    read_record,
    run_directory,
)
from transformer_ablation.report.run_status import RunStatus, read_status
from transformer_ablation.report.selection import select_score
from transformer_ablation.report.sentence_tests import Cache, Progress, Text, find_text
from transformer_ablation.report.translations import read_lines, source_file

READY = "finished"
REMEDY = "score it again with python -m experiments.evaluate --run={}"


class ComparisonError(ValueError):
    """Two runs that cannot be compared: which, why, and what to do."""


class Side(NamedTuple):
    """One run: its record, the score of the split, and the texts behind that."""

    folder: Path
    record: Mapping[str, Any]
    score: Mapping[str, Any]
    text: Text
    hypotheses: list[str]


class Pair(NamedTuple):
    """Two runs that are compared; ``seeds`` are equal but for runs of one's choice."""

    seeds: tuple[int, int]
    sides: tuple[Side, Side]

    @property
    def name(self) -> str:
        """``seed 0``, or ``seeds 0 and 1``."""
        first, second = self.seeds
        return f"seed {first}" if first == second else f"seeds {first} and {second}"


class Found(NamedTuple):
    """Pairs of runs and the lines that all of them translated."""

    names: tuple[str, str]
    split: str
    sources: list[str]
    references: list[str]
    pairs: list[Pair]
    left_out: list[str]  # why runs of other seeds are not here
    cache: Cache


def find_rows(
    workdir: Path,
    rows: Sequence[str],
    seeds: Sequence[int] | None,
    split: str,
    progress: Progress = lambda text: None,
) -> Found:
    """Two rows of a sweep, by the seeds named, or all that both have finished.

    Raises:
      ComparisonError, RecordError, TableError: what the runs or their texts lack.
    """
    first, second = _two("rows", rows, "two rows, for example --rows=base,A_h1")
    statuses = {(s.row, s.seed): s for s in read_status(workdir)}
    known = list(dict.fromkeys(row for row, _ in statuses))
    for name in (first, second):
        if name not in known:
            raise ComparisonError(f"--rows: {unknown_name('row', name, known, 3)}")
    shared, left_out = _seeds(statuses, (first, second), seeds)
    cache = Cache(workdir, progress)
    pairs = []
    for seed in shared:
        folders = [run_directory(workdir, row, seed) for row in (first, second)]
        pairs.append(_pair(folders, split, cache))
    return _found((first, second), pairs, left_out, cache)


def find_runs(
    folders: Sequence[Path], split: str, progress: Progress = lambda text: None
) -> Found:
    """Two runs by their folders, of one sweep or of two.

    Raises:
      ComparisonError, RecordError, TableError: what the runs or their texts lack.
    """
    example = "two folders, for example --runs=W/runs/base/seed0,V/runs/base/seed0"
    named = [str(folder) for folder in folders]
    first, second = (Path(name) for name in _two("runs", named, example))
    if first.resolve() == second.resolve():
        raise ComparisonError(f"--runs: {first} and {second} are one folder; {example}")
    cache = Cache(_workdir_of(first), progress)
    pair = _pair([first, second], split, cache)
    return _found(_names(pair), [pair], [], cache)


def _two(flag: str, names: Sequence[str], example: str) -> tuple[str, str]:
    if len(names) != 2:
        raise ComparisonError(
            f"--{flag}: names {len(names) or 'none'}, but {example}; tables shows them "
            "all"
        )
    if names[0] == names[1]:
        raise ComparisonError(
            f"--{flag}: {names[0]} stands there twice; name {example}"
        )
    return names[0], names[1]


def _seeds(
    statuses: Mapping[tuple[str, int], RunStatus],
    rows: tuple[str, str],
    asked: Sequence[int] | None,
) -> tuple[list[int], list[str]]:
    """Seeds to compare, and why others that a row has are left out."""
    there = sorted({seed for row, seed in statuses if row in rows})
    why = {
        seed: [_not_ready(statuses, row, seed) for row in rows]
        for seed in (there if asked is None else asked)
    }
    faults = {seed: "; ".join(filter(None, said)) for seed, said in why.items()}
    ready = [seed for seed, fault in faults.items() if not fault]
    left_out = [fault for fault in faults.values() if fault]
    if left_out and (asked is not None or not ready):
        raise ComparisonError("\n".join(left_out))
    return ready, left_out


def _not_ready(
    statuses: Mapping[tuple[str, int], RunStatus], row: str, seed: int
) -> str:
    """Why a run has no texts to compare yet; blank where it should have."""
    status = statuses.get((row, seed))
    if status is None:
        seeds = ", ".join(str(s) for r, s in statuses if r == row)
        return f"{row}/seed{seed}: there is no such run; row {row} has seeds {seeds}"
    return _state_fault(
        f"{row}/seed{seed}", status.state, status.reason, status.step, status.steps
    )


def _state_fault(
    name: str, state: str, reason: str | None, step: int | None, steps: int
) -> str:
    if state == READY:
        return ""
    at = f" at update {step} of {steps}" if step is not None else ""
    told = f" ({reason})" if reason else ""
    then = {
        "pending": "start it with the sweep's command",
        "running": "wait until it is finished",
    }.get(state, "run the sweep's command again to finish it")
    return f"{name}: is {state}{at}{told}; a run has texts when it is finished: {then}"


def _pair(folders: Sequence[Path], split: str, cache: Cache) -> Pair:
    first, second = (_side(folder, split, cache) for folder in folders)
    _check_alike(first, second)
    return Pair((first.record["seed"], second.record["seed"]), (first, second))


def _side(folder: Path, split: str, cache: Cache) -> Side:
    record = _record(folder)
    state = live_status(record)
    steps = record["config"]["train"]["steps"]
    fault = _state_fault(str(folder), state, record["reason"], record["step"], steps)
    if fault:
        raise ComparisonError(fault)
    name, again = _split(folder, record, split), REMEDY.format(folder)
    score = select_score(record, name, "bleu")
    if score is None:
        raise ComparisonError(
            f"{folder}: was not scored on split {name}; {again} --split={name}"
        )
    text = find_text(folder, score, cache)
    if not isinstance(text, Text):
        raise ComparisonError(f"{folder}: {text}; {again} --split={name}")
    if not source_file(folder, name).is_file():
        raise ComparisonError(f"{folder}: no stored sources; {again} --split={name}")
    return Side(folder, record, score, text, read_lines(text.hypotheses))


def _record(folder: Path) -> Mapping[str, Any]:
    record = read_record(folder) if folder.is_dir() else None
    if record is not None:
        return record
    below = sorted([*folder.glob("runs/*/seed*"), *folder.glob("seed*")])
    hint = f"; name a run in it, for example {below[0]}" if below else ""
    what = "there is no such folder"
    if folder.is_dir():
        what = f"holds no run ({RECORD_FILE} is missing)"
    raise ComparisonError(f"{folder}: {what}{hint}")


def _split(folder: Path, record: Mapping[str, Any], asked: str) -> str:
    """The split's name: ``validation`` and ``test`` are also what a run calls so."""
    data = record["config"]["data"]
    named = {"validation": data["validation_split"], "test": data["test_split"]}
    known = [name for name in named.values() if name]
    found = asked if asked in known else named.get(asked, asked)
    if found is None:
        raise ComparisonError(
            f"{folder}: has no test split (data.test_split is none); its scores are of "
            f"split {data['validation_split']}: --split=validation"
        )
    if found not in known:
        raise ComparisonError(f"--split: {unknown_name('split', asked, known)}")
    return found


def _check_alike(first: Side, second: Side) -> None:
    """Refuses two runs that did not translate the same lines, or scored otherwise."""
    between = f"{first.folder} and {second.folder}"
    for what, key in (
        ("splits", "split"),
        ("numbers of sentences", "sentences"),
        ("sacreBLEU signatures", "signature"),
    ):
        ours, theirs = first.score[key], second.score[key]
        if ours != theirs:
            raise ComparisonError(
                f"{between} have other {what}: {ours} and {theirs}; a comparison is of "
                "the same text, scored alike"
            )
    for what, mine, others in zip(
        ("sources", "references"), _lines(first), _lines(second), strict=True
    ):
        line = _first_difference(mine, others)
        if line is not None:
            raise ComparisonError(
                f"{between} have other {what} of split {first.score['split']}: "
                f"{len(mine)} and {len(others)} lines, the first that differs is line "
                f"{line + 1}; a comparison is of the same text"
            )


def _lines(side: Side) -> tuple[list[str], list[str]]:
    """Sources and references beside a run's hypotheses."""
    sources = read_lines(source_file(side.folder, side.score["split"]))
    references = read_lines(side.text.references)
    if len(sources) != len(references):
        again = REMEDY.format(side.folder)
        raise ComparisonError(
            f"{side.folder}: {len(sources)} sources for {len(references)} references "
            f"of split {side.score['split']}; {again}"
        )
    return sources, references


def _first_difference(ours: Sequence[str], theirs: Sequence[str]) -> int | None:
    if ours == theirs:
        return None
    pairs = enumerate(zip(ours, theirs, strict=False))
    short = min(len(ours), len(theirs))
    return next((i for i, (a, b) in pairs if a != b), short)


def _found(
    names: tuple[str, str], pairs: list[Pair], left_out: list[str], cache: Cache
) -> Found:
    first = pairs[0].sides[0]
    for pair in pairs[1:]:
        _check_alike(first, pair.sides[0])
    sources, references = _lines(first)
    split = first.score["split"]
    return Found(names, split, sources, references, pairs, left_out, cache)


def _names(pair: Pair) -> tuple[str, str]:
    """What tells two runs apart: rows, else rows and seeds, else folders."""
    first, second = pair.sides
    for name in (lambda side: side.record["row"], lambda side: run_name(side.record)):
        if name(first) != name(second):
            return name(first), name(second)
    return str(first.folder), str(second.folder)


def _workdir_of(folder: Path) -> Path:
    """``WORKDIR`` of ``WORKDIR/runs/ROW/seedK``; else the run's own folder."""
    parents = folder.absolute().parents
    return parents[2] if len(parents) > 2 and parents[1].name == "runs" else folder
