"""What is wrong with stored configs, looked for once something could not be read."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_ablation.config import ConfigError, from_mapping
from transformer_ablation.report.record import (
    RECORD_FILE,
    SWEEP_FILE,
    RecordError,
    read_records,
    read_sweep,
    run_directory,
)


@contextlib.contextmanager
def damage_named(workdir: str | Path) -> Iterator[None]:
    """Inside it a config of another form is an error that names its file.

    Configs of records are not checked field by field when they are read, as those of
    earlier versions lack fields. Where that makes something fail, this tells which it
    is; any other failure stays what it is.

    Raises:
      RecordError: for a config that lacks a field, or holds what is not allowed.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        for path, config in _configs(Path(workdir)):
            try:
                from_mapping(config)
            except ConfigError as found:
                for problem in found.problems:
                    if _explains(problem, error):
                        raise RecordError(
                            f"{path}: {problem}; it is damaged, or of another version "
                            "of this program"
                        ) from error
        raise


def _explains(problem: str, error: Exception) -> bool:
    """A missing field explains a KeyError of its name, another fault the rest."""
    if isinstance(error, KeyError):
        return f".{error.args[0]}: missing" in problem
    return ": missing" not in problem


def _configs(workdir: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    sweep = read_sweep(workdir)
    if sweep is not None:
        path = workdir / SWEEP_FILE
        yield path, sweep["config"]
        yield from ((path, row["config"]) for row in sweep["rows"])
    for record in read_records(workdir):
        folder = run_directory(workdir, record["row"], record["seed"])
        yield folder / RECORD_FILE, record["config"]
