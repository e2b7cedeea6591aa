"""Sweep files: ``get_config()`` and ``get_rows()`` of a Python file."""

import dataclasses
import importlib.util
import inspect
import pathlib
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any

from transformer_ablation.config import Config, ConfigError, from_mapping
from transformer_ablation.sweep.rows import BASE, Row

MODULE = "sweep_file"


class SweepFileError(ValueError):
    """A sweep file that cannot be found, read or understood."""


@dataclasses.dataclass(frozen=True)
class SweepFile:
    """What a sweep file says, after the overrides of the command line.

    ``slurm`` is its ``SLURM``: what a cluster is asked for, no part of any config.
    """

    path: str
    title: str
    base: Config
    rows: tuple[Row, ...]
    slurm: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def load(argument: str, override: Callable[[Any], list[str]]) -> SweepFile:
    """Read ``FILE.py`` or ``FILE.py:ARGUMENT``; relative to the current folder.

    ``override`` changes fields of the file's config in place and returns the
    faults it found. A file without ``get_rows`` is a study of one row, base.

    Raises:
      SweepFileError: no such file, or a file that fails (with file and line).
      ConfigError: faults of the config and of the overrides, all at once.
    """
    path, scale = _separate(argument)
    module = _module(path)
    config = _call(module, path, "get_config", [] if scale is None else [scale])
    if not hasattr(config, "items"):
        raise SweepFileError(
            f"{path}: get_config() returns a {type(config).__name__}; "
            "it must return a ConfigDict"
        )
    problems = override(config)
    try:
        base = from_mapping(config)
    except ConfigError as error:
        problems = [*problems, *error.problems]
    if problems:
        raise ConfigError(problems)
    title = str(getattr(module, "TITLE", path.stem))
    slurm = getattr(module, "SLURM", {})
    if not isinstance(slurm, Mapping):
        raise SweepFileError(
            f"{path}: SLURM must be a dict, as in {{'time': '4:00:00'}}"
        )
    return SweepFile(argument, title, base, _rows(module, path, scale), slurm)


def _separate(argument: str) -> tuple[pathlib.Path, str | None]:
    """Path and argument of ``FILE.py:ARGUMENT``."""
    name, colon, scale = argument.partition(":")
    path = pathlib.Path(name)
    if not path.is_file():
        hint = _near(path, colon + scale)
        raise SweepFileError(f"--config={argument}: there is no file {name}{hint}")
    if path.suffix != ".py":
        raise SweepFileError(f"--config={argument}: {name} is not a Python file (.py)")
    return path, scale if colon else None


def _near(path: pathlib.Path, scale: str) -> str:
    """A file of this name with its ending or in a folder, else all beside it."""
    name = path.name.removesuffix(".py") + ".py"
    folders = [path.parent, *sorted(p for p in pathlib.Path().iterdir() if p.is_dir())]
    for other in (folder / name for folder in folders):
        if other.is_file():
            return f"; did you mean --config={other}{scale}?"
    beside = sorted(str(p) for p in path.parent.glob("*.py") if p.stem != "__init__")
    return f"; files there: {', '.join(beside)}" if beside else ""


def _module(path: pathlib.Path) -> types.ModuleType:
    """The sweep file as a module of its own."""
    spec = importlib.util.spec_from_file_location(MODULE, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    execute = spec.loader.exec_module
    _guarded(path, lambda: execute(module))
    return module


def _call(module: types.ModuleType, path: pathlib.Path, name: str, given: list) -> Any:
    """``module.name(*given)``; whatever it raises names the line of the file."""
    function = getattr(module, name, None)
    if not callable(function):
        raise SweepFileError(f"{path}: has no function {name}(); define it there")
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        fault = (
            f"takes no argument, but {given[0]!r} is given" if given else "needs one"
        )
        form = f"{path}" if given else f"{path}:ARGUMENT"
        message = f"{path}: {name}() {fault}; write --config={form}"
        raise SweepFileError(message) from None
    return _guarded(path, lambda: function(*given))


def _rows(
    module: types.ModuleType, path: pathlib.Path, scale: str | None
) -> tuple[Row, ...]:
    """The file's rows; the base alone where it has no ``get_rows``.

    One that takes an argument is given that of ``get_config``.
    """
    if not hasattr(module, "get_rows"):
        return (BASE,)
    function = module.get_rows
    takes = callable(function) and bool(inspect.signature(function).parameters)
    given = [scale] if takes and scale is not None else []
    found = _call(module, path, "get_rows", given)
    if not isinstance(found, list | tuple) or not all(
        isinstance(r, Row) for r in found
    ):
        raise SweepFileError(f"{path}: get_rows() must return a list of Row")
    if not found:
        raise SweepFileError(f"{path}: get_rows() returns no row")
    return tuple(found)


def _guarded(path: pathlib.Path, action: Callable[[], Any]) -> Any:
    """The action's value; its exceptions as one message with file and line."""
    try:
        return action()
    except ConfigError:
        raise
    except SyntaxError as error:
        where = f"{error.filename or path}, line {error.lineno}"
        raise SweepFileError(f"{where}: {error.msg}") from error
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if f.filename == str(path.resolve())]
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        message = f"{where}: {type(error).__name__}: {error}"
        raise SweepFileError(message) from error
