"""``--config=FILE`` and ``--config.section.field=VALUE`` on a command line.

The syntax of ml_collections' config_flags. The types of the values come from the
schema in ``config`` instead of from the value the file happens to hold, so that
``None`` can be set and overridden, and every fault is named at once.
"""

import dataclasses
import re
from typing import Any

from absl import flags

from experiments import preset_flag
from transformer_ablation import config as schema

PARSERS = {
    bool: flags.BooleanParser(),
    float: flags.FloatParser(),
    int: flags.IntegerParser(),
    str: flags.ArgumentParser(),
}


@dataclasses.dataclass(frozen=True)
class Override:
    """A path and the text given for it."""

    path: str
    text: str


def split(arguments: list[str]) -> tuple[str | None, list[Override], list[str]]:
    """The value of --config, the overrides, and all other arguments."""
    config, found, rest = None, [], []
    left = list(arguments)
    while left:
        argument = left.pop(0)
        override = re.fullmatch(r"--?(no)?config\.([^=]*)(=.*)?", argument, re.DOTALL)
        plain = re.fullmatch(r"--?config(=.*)?", argument, re.DOTALL)
        if override:
            found.append(_override(*override.groups(), following=left))
        elif plain:
            value = plain.group(1)
            config = value[1:] if value else (left.pop(0) if left else None)
        else:
            rest.append(argument)
    return config or None, found, rest


def _override(no: str | None, path: str, value: str | None, following: list):
    """One override; ``--config.a.b VALUE`` takes VALUE off ``following``.

    A boolean field may stand alone, or be switched off by ``--noconfig.a.b``.
    """
    if value is not None and not no:
        return Override(path, value[1:])
    if no or bool in _types(path):
        return Override(path, "false" if no else "true")
    return Override(path, following.pop(0) if following else "")


def given(
    path: str | None, values: flags.FlagValues, overrides: list[Override]
) -> list[str]:
    """What a command line says of a config, flag by flag."""
    other = {"config": path, **values.flag_values_dict()}
    named = [n for n in ("config", "preset", "rows") if other.get(n) is not None]
    return [f"--{name}" for name in (*named, *(f"config.{o.path}" for o in overrides))]


def apply(
    config: Any, overrides: list[Override], preset: str | None = None
) -> list[str]:
    """Set fields of a ``ConfigDict``; the faults found, those fields left alone.

    A preset is laid over it first.
    """
    preset_flag.apply(config, preset)
    problems = []
    for override in overrides:
        path, text = override.path, override.text
        section, _, name = path.partition(".")
        if path in schema.SECTIONS:
            first = next(p for p in schema.FIELDS if p.startswith(f"{path}."))
            problems.append(
                f"{path}: is a section; set a field of it, as in --config.{first}=VALUE"
            )
        elif path not in schema.FIELDS:
            problems.append(f"{path}: unknown field{schema.suggestion(path)}")
        elif section in config:
            value = converted(path, text)
            fault = schema.field_fault(path, value)
            if fault:
                problems.append(fault)
                continue
            with config.unlocked(), config.ignore_type():
                config[section][name] = value
    return problems


def converted(path: str, text: str) -> Any:
    """The text as a value of the field's type; the text itself where it is none."""
    kinds = _types(path)
    if text.lower() == "none" and (type(None) in kinds or str not in kinds):
        return None
    kind = next(k for k in PARSERS if k in kinds)
    try:
        return PARSERS[kind].parse(text)
    except (ValueError, TypeError):
        return text


def _types(path: str) -> tuple[type, ...]:
    """Types allowed at a path; none for an unknown one."""
    return schema.FIELDS[path].metadata["rule"].types if path in schema.FIELDS else ()
