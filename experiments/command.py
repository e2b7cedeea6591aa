"""The one wrapper of every command line: flags, help, messages, exit codes.

Exit 0 on success, 2 on a refused request, 1 on a failure, 75 if told to stop by a
signal or a limit, 130 by Ctrl-C while it loads. A user's mistake is one message on
stderr: an error of a subclass of ValueError of this project. A failure, not a refusal
(no network, say), has ``exit_code = 1``. Others are bugs and keep their traceback.
"""

import dataclasses
import os
import sys
from collections.abc import Callable
from functools import partial

from absl import flags

from experiments import loaded, overrides, preset_flag, telling
from experiments.help_text import flag_error, help_text
from transformer_ablation.sweep import file, stopping
from transformer_ablation.sweep.failures import out_of_space

HELP = {"--help", "-help", "-h", "-?", "--helpshort", "--helpfull"}
PACKAGES = {"transformer_ablation", "experiments", "configs", file.MODULE, "__main__"}


class UsageError(ValueError):
    """A command line that cannot be understood."""


@dataclasses.dataclass(frozen=True)
class Command:
    """``body(options)``, or ``body(options, sweep_file)`` where ``takes_config``,
    returns an exit code or None; ``define`` defines flags on the object given;
    ``config(options)`` stands for a --config that is not given, unless None;
    ``without_config(options)`` says why nothing of a config counts, unless None."""

    name: str
    summary: str
    examples: tuple[str, ...]
    define: Callable[[flags.FlagValues], None]
    body: Callable[..., int | None]
    takes_config: bool = False
    config: Callable[[flags.FlagValues], str | None] = lambda options: None
    without_config: Callable[[flags.FlagValues], str | None] = lambda options: None


def main(command: Command) -> None:
    """Run a command on ``sys.argv`` and exit."""
    code = run(command, sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or 1
        if not isinstance(error, BrokenPipeError):
            why = (error.strerror or str(error)).lower()
            print(f"cannot write the output: {why}", file=sys.stderr)
    sys.exit(code)


def run(command: Command, arguments: list[str]) -> int:
    """Run a command on arguments; the exit code."""
    values = flags.FlagValues()
    command.define(values)
    if command.takes_config:
        preset_flag.define(values)
    if HELP & set(arguments):
        out = help_text(command.summary, command.examples, values, command.takes_config)
        print(out)
        return 0
    try:
        loaded()
        with telling.own_warnings(PACKAGES):
            return _run(command, values, arguments) or 0
    except (flags.Error, UsageError) as error:
        message, code = flag_error(error, command.name), 2
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt as error:
        message, code = stopping.told(error)
    except Exception as error:
        workdir = values["workdir"].value if "workdir" in values else None
        code, message = explain(error, workdir or os.getcwd())
        if message is None:
            raise
    telling.complain(message)
    return code


def _run(command: Command, values: flags.FlagValues, arguments: list[str]):
    """Parse, load the config where there is one, and call the body."""
    path, changes, rest = overrides.split(arguments)
    if not command.takes_config:
        path, changes, rest = None, [], arguments
    if left := values(["command", *rest])[1:]:
        raise UsageError(f"unexpected argument {left[0]!r}; options are --name=value")
    if not command.takes_config:
        return command.body(values)
    given = overrides.given(path, values, changes)
    if given and (why := command.without_config(values)):
        raise UsageError(f"{', '.join(given)}: {why}; leave it away")
    if (path := path or command.config(values)) is None:
        raise UsageError("--config is missing; name one, as configs/table3.py:grammar")
    change = partial(overrides.apply, overrides=changes, preset=values.preset)
    return command.body(values, file.load(path, change))


def explain(error: BaseException, folder: str) -> tuple[int, str | None]:
    """Exit code and message of an exception; no message for a bug."""
    full = out_of_space(error)
    if full is not None:
        remedy = "free space and run the same command again: finished runs are kept"
        return 1, f"disk full: {full.filename or folder}; {remedy}"
    package = type(error).__module__.partition(".")[0]
    if isinstance(error, ValueError) and package in PACKAGES:
        return getattr(error, "exit_code", 2), str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return 1, f"{error.filename}: {error.strerror.lower()}"
    return 1, None
