"""New runs beside old ones of the same rows, whose configs have changed since."""

from collections.abc import Mapping, Sequence
from typing import Any

from transformer_ablation.config import Config, ConfigError, differences
from transformer_ablation.config import from_mapping as config_from
from transformer_ablation.sweep.rows import ExpandedRow, Row
from transformer_ablation.sweep.runs import SweepError, describe

SEED = ("train.seed",)


def stored_base(sweep: Mapping[str, Any]) -> Config:
    """The base config of a ``sweep.json``.

    Raises:
      SweepError: it is of another version of this program.
    """
    try:
        return config_from(sweep["config"])
    except (ConfigError, KeyError, TypeError):
        raise SweepError(
            "--beside: sweep.json is of another version of this program; use another "
            "--workdir"
        ) from None


def beside(
    expanded: Sequence[ExpandedRow], base: Config, sweep: Mapping[str, Any]
) -> list[ExpandedRow]:
    """The rows under names that are theirs alone in a workdir.

    ``base`` is that of ``expanded``, ``sweep`` the workdir's ``sweep.json``. A row that
    is there with the same config keeps its name, whichever it has there. One whose
    config has changed, or of a changed base, becomes ROW.2, or the next number that is
    free. What a row changes is said against the base of ``sweep``.
    """
    there = {row["name"]: config_from(row["config"]) for row in sweep["rows"]}
    old = stored_base(sweep)
    changed = bool(describe(old, base, SEED))
    return [_named(item, there, old, changed) for item in expanded]


def _named(
    item: ExpandedRow, there: Mapping[str, Config], old: Config, changed: bool
) -> ExpandedRow:
    own = item.row.name
    if own not in there and not changed:
        return item
    numbers = range(2, len(there) + 3)
    names = [own, *there, *(f"{own}.{number}" for number in numbers)]
    name = next(
        name
        for name in names
        if (name in there and not describe(there[name], item.config, SEED))
        or (name not in there and name != own)
    )
    if name == own:
        return item
    found = differences(old, item.config)
    changes = {path: new for path, (_, new) in found.items() if path not in SEED}
    row = Row(name, item.row.group, item.row.label, lambda base: changes)
    return ExpandedRow(row, item.config, changes)
