"""``--preset=NAME``: one of ``configs/presets.py`` laid over a config."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from configs.presets import PRESETS, get_preset
from transformer_ablation.config import FIELDS, Config, differences, get, replace


def define(values: flags.FlagValues) -> None:
    """--preset."""
    text = (
        f"lay one over the config, before overrides: {', '.join(PRESETS)}; what each "
        "sets is in configs/presets.py"
    )
    flags.DEFINE_string("preset", None, text, flag_values=values)


def apply(config: Any, name: str | None) -> None:
    """Set the fields of a preset in a ``ConfigDict``.

    Raises:
      ConfigError: for a name that is none.
    """
    if name is None:
        return
    preset = get_preset(name)
    try:
        changes = preset(config)
        with config.unlocked(), config.ignore_type():
            for path, value in changes.items():
                section, _, field = path.partition(".")
                config[section][field] = value
    except (AttributeError, KeyError, TypeError):
        return  # a config so incomplete is refused by the schema, field by field


def compare(base: Config, names: Sequence[str]) -> dict[str, list[Any]]:
    """``{"section.field": [its value with each preset]}`` where presets differ.

    Raises:
      ConfigError: for a name that is none, or a preset that does not fit ``base``.
    """
    configs = [replace(base, get_preset(name)(base)) for name in names]
    first, *others = configs
    paths = [path for other in others for path in differences(first, other)]
    order = [path for path in FIELDS if path in paths]
    return {path: [get(config, path) for config in configs] for path in order}


def as_text(names: Sequence[str], found: dict[str, list[Any]]) -> str:
    """One line a field that differs, one column a preset."""
    if not found:
        return f"{' and '.join(names)}: no field differs"
    lines = [["field", *names]]
    lines += [[path, *map(str, values)] for path, values in found.items()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rows = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(row.rstrip() for row in rows)
