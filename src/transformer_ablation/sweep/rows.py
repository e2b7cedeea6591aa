"""Rows: what a study varies, each a pure function of the base config."""

import collections
import dataclasses
import fractions
import math
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_ablation.config import (
    Config,
    ConfigError,
    differences,
    get,
    replace,
    unknown_name,
)

FRACTIONS = {
    (1, 2): "half",
    (1, 3): "a third",
    (2, 3): "two thirds",
    (4, 3): "four thirds",
    (1, 4): "a quarter",
}


@dataclasses.dataclass(frozen=True)
class PaperResult:
    """What the paper prints: of Table 3 dev perplexity, dev BLEU and millions of
    parameters, of Table 2 test BLEU and the FLOPs of training."""

    ppl: float | None = None
    bleu: float | None = None
    parameters_millions: float | None = None
    bleu_test: float | None = None
    training_flops: float | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of a table. ``changes(base)`` gives ``{"section.field": value}``.

    ``budget_reason`` says why it trains on more or less than base does. ``paper`` may
    be a function of base: what is printed can depend on the languages.
    """

    name: str
    group: str
    label: str
    changes: Callable[[Config], Mapping[str, Any]]
    paper: PaperResult | Callable[[Config], PaperResult | None] | None = None
    budget_reason: str | None = None


BASE = Row("base", "base", "base", lambda base: {})


@dataclasses.dataclass(frozen=True)
class ExpandedRow:
    """A row with its config; ``changed`` holds the fields that differ from base.

    ``paper`` is what the paper prints of it.
    """

    row: Row
    config: Config
    changed: dict[str, Any]
    paper: PaperResult | None = None


def fraction(base: Config, path: str, numerator: int, denominator: int) -> int:
    """An exact fraction of a whole field of base.

    Raises:
      ConfigError: the fraction is not a whole number.
    """
    share = fractions.Fraction(numerator, denominator)
    value = share * get(base, path)
    if value.denominator == 1:
        return int(value)
    parts = (share.numerator, share.denominator)
    words = FRACTIONS.get(parts, f"{parts[0]}/{parts[1]}")
    raise ConfigError(
        [
            f"{words} of {path} = {get(base, path)} is not a whole number; "
            f"make it a multiple of {share.denominator}, or leave the row out with "
            "--rows"
        ]
    )


def select(rows: Sequence[Row], names: Iterable[str] | None) -> tuple[Row, ...]:
    """The rows named, in the order of ``rows``; all of them for None.

    Raises:
      ConfigError: an unknown name, with the nearest one.
    """
    if names is None:
        return tuple(rows)
    wanted, known = list(names), [row.name for row in rows]
    problems = []
    for name in wanted:
        if name not in known:
            problems.append(unknown_name("row", name, known, nearest=3))
    if not wanted:
        problems.append(f"no row is named; the rows are: {', '.join(known)}")
    if problems:
        raise ConfigError(problems)
    return tuple(row for row in rows if row.name in wanted)


def expand(base: Config, rows: Sequence[Row]) -> list[ExpandedRow]:
    """Every row's config, checked.

    Raises:
      ConfigError: names twice or unfit for a folder, rows that cannot be run, rows
        with equal configs, or with another budget than base's and no reason for it;
        all faults at once.
    """
    problems = name_faults(rows)
    expanded, declared = [], {}
    for row in rows:
        try:
            changes = _changes(base, row)
            config = replace(base, changes)
            paper = _paper(base, row)
        except ConfigError as error:
            problems += [f"row {row.name}: {problem}" for problem in error.problems]
            continue
        declared[row.name] = list(changes)
        changed = {p: new for p, (_, new) in differences(base, config).items()}
        expanded.append(ExpandedRow(row, config, changed, paper))
    problems += _equal_rows(expanded, declared)
    problems += _unequal_budgets(base, expanded)
    if problems:
        raise ConfigError(problems)
    return expanded


def _changes(base: Config, row: Row) -> dict[str, Any]:
    """What the row changes, which may not be everything."""
    changes = _called("changes", lambda: dict(row.changes(base)), row.changes)
    if "train.seed" in changes:
        raise ConfigError(["train.seed: is not a row's to change; use --seeds"])
    if row.name == "base" and changes:
        raise ConfigError(
            [f"changes {', '.join(changes)}; the row base is the base config itself"]
        )
    return changes


def _paper(base: Config, row: Row) -> PaperResult | None:
    """What the paper prints of the row."""
    found, what, where = row.paper, "its paper", _place(row.changes)
    if callable(function := row.paper):
        found = _called("paper", lambda: function(base), function)
        what, where = "its paper(base)", _place(function)
    if found is None:
        return None
    if not isinstance(found, PaperResult):
        fault = f"{what} is {found!r}; it must be a PaperResult or None"
        raise ConfigError([f"{fault}{where}"])
    wrong = [
        f"{what} has {name} {value!r}; it must be a number or None{where}"
        for name, value in vars(found).items()
        if value is not None
        and (not isinstance(value, int | float) or not math.isfinite(value))
    ]
    if wrong:
        raise ConfigError(wrong)
    return found


def _called(name: str, call: Callable[[], Any], function: object) -> Any:
    """What a function of the row gives; one that fails is a fault of the row."""
    try:
        return call()
    except ConfigError:
        raise
    except Exception as error:
        fault = f"its {name}(base) raised {type(error).__name__}: {error}"
        raise ConfigError([f"{fault}{_place(function, error)}"]) from error


def _place(function: object, error: Exception | None = None) -> str:
    """File and line of a function, or of what in it failed; nothing if unknown."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    inside = [f.lineno for f in frames if f.filename == code.co_filename]
    path, here = Path(code.co_filename), Path.cwd()
    name = path.relative_to(here) if path.is_relative_to(here) else path
    return f" ({name}, line {inside[-1] if inside else code.co_firstlineno})"


def name_faults(rows: Sequence[Row]) -> list[str]:
    """Names that two rows share, or that cannot name a folder."""
    problems = []
    counts = collections.Counter(row.name for row in rows)
    folders: dict[str, str] = {}
    for name, count in counts.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", name):
            problems.append(
                f"row {name!r}: a row names a folder; it must be 1 to 64 letters, "
                "digits, '.', '_', '+' or '-', and begin with a letter or digit"
            )
        if count > 1:
            problems.append(f"row {name}: {count} rows have this name; rename them")
        other = folders.setdefault(name.casefold(), name)
        if other != name:
            problems.append(f"rows {other} and {name} differ only in case; rename one")
    return problems


def _equal_rows(expanded: list[ExpandedRow], declared: dict) -> list[str]:
    """Pairs of rows that would train the same model."""
    problems: list[str] = []
    first: dict[Config, ExpandedRow] = {}
    for item in expanded:
        twin = first.setdefault(item.config, item)
        if twin.row.name == item.row.name:
            continue
        paths = dict.fromkeys(declared[twin.row.name] + declared[item.row.name])
        shared = ", ".join(f"{p} = {get(item.config, p)!r}" for p in paths)
        why = f": both have {shared}" if shared else ""
        problems.append(
            f"rows {twin.row.name} and {item.row.name} are equal{why}; change base, "
            "or leave one of them out with --rows"
        )
    return problems


def budget(config: Config) -> int:
    """Target positions that a run trains on, padding included."""
    return config.train.steps * config.data.tokens_per_batch


def _unequal_budgets(base: Config, expanded: Iterable[ExpandedRow]) -> list[str]:
    """Rows that would win or lose by training longer, without a word."""
    return [
        f"row {item.row.name}: trains on {budget(item.config):,} target positions "
        f"(train.steps x data.tokens_per_batch), base on {budget(base):,}; give all "
        "rows one budget, or say why in Row(..., budget_reason=...)"
        for item in expanded
        if budget(item.config) != budget(base) and not item.row.budget_reason
    ]
