"""A config from a nested mapping, back to one, changed, and compared."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from transformer_ablation.config.contradictions import contradictions
from transformer_ablation.config.names import suggestion
from transformer_ablation.config.rules import ConfigError, Rule
from transformer_ablation.config.sections import FIELDS, SECTIONS, Config, get


def from_mapping(mapping: Mapping[str, Any]) -> Config:
    """The frozen config of a nested mapping or ``ConfigDict``.

    Raises:
      ConfigError: with every fault at once, each with its path, its value and
        what is allowed there.
    """
    if not hasattr(mapping, "items"):
        sections_text = ", ".join(SECTIONS)
        raise ConfigError(f"{mapping!r} is not a config; it must hold {sections_text}")
    problems: list[str] = []
    sections = {}
    for name in mapping:
        if name not in SECTIONS:
            problems.append(f"{name}: unknown section{suggestion(str(name))}")
    for name, section in SECTIONS.items():
        given = mapping.get(name)
        if name not in mapping:
            problems.append(f"{name}: missing section")
            continue
        if not hasattr(given, "items"):
            problems.append(f"{name}: {given!r} is not a section; it must hold fields")
            continue
        sections[name] = _section(name, section, given, problems)
    if problems:
        raise ConfigError(problems)
    config = Config(**sections)
    problems = contradictions(config)
    if problems:
        raise ConfigError(problems)
    return config


def _section(name: str, section: Any, given: Any, problems: list[str]) -> Any:
    """One section as a dataclass; faults are appended to ``problems``."""
    values = {}
    for key in given:
        if f"{name}.{key}" not in FIELDS:
            problems.append(f"{name}.{key}: unknown field{suggestion(f'{name}.{key}')}")
    for f in dataclasses.fields(section):
        path = f"{name}.{f.name}"
        if f.name not in given:
            problems.append(f"{path}: missing; {f.metadata['rule'].allowed}")
            continue
        value = given[f.name]
        fault = field_fault(path, value)
        if fault:
            problems.append(fault)
        else:
            values[f.name] = _canonical(f, value)
    return None if problems else section(**values)


def _canonical(f: dataclasses.Field, value: Any) -> Any:
    """Whole numbers given for a real field become floats, so hashes agree."""
    takes_float = float in f.metadata["rule"].types
    if takes_float and type(value) is int:
        return float(value)
    return value


def field_fault(path: str, value: Any) -> str | None:
    """What is wrong with a value at a path, or None."""
    rule: Rule = FIELDS[path].metadata["rule"]
    # bool is an int in Python; here it is not.
    if type(value) not in rule.types:
        return f"{path}: {value!r} is not allowed; it must be {rule.allowed}"
    if not rule.check(value):
        return f"{path}: {value!r} is not allowed; it must be {rule.allowed}"
    return None


def to_mapping(config: Config) -> dict[str, dict[str, Any]]:
    """The config as nested plain values, ready for JSON."""
    return dataclasses.asdict(config)


def replace(config: Config, changes: Mapping[str, Any]) -> Config:
    """The config with ``{"section.field": value}`` changed and checked again."""
    mapping = to_mapping(config)
    unknown = [p for p in changes if p not in FIELDS]
    if unknown:
        raise ConfigError(f"{p}: unknown field{suggestion(p)}" for p in unknown)
    for path, value in changes.items():
        section, _, name = path.partition(".")
        mapping[section][name] = value
    return from_mapping(mapping)


def differences(a: Config, b: Config) -> dict[str, tuple[Any, Any]]:
    """``{"section.field": (value in a, value in b)}`` where the two differ."""
    pairs = {path: (get(a, path), get(b, path)) for path in FIELDS}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
