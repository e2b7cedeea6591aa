"""The one kind of error that a user of runs has to know."""

import contextlib
from collections.abc import Iterator


class RunError(ValueError):
    """What was asked of a run or a sweep cannot be done; the message says why.

    ``load_run``, ``load_sweep`` and the methods of a run raise no other for a missing
    or broken file, an option that may not be, or a text that is too long.
    """


class LoadError(RunError):
    """A folder that holds no run, or none that can be used."""


class LineError(RunError):
    """A line that cannot be translated or scored; the message has its number."""


@contextlib.contextmanager
def as_run_errors() -> Iterator[None]:
    """Inside it, or inside a function that it decorates, refusals are ``RunError``.

    Refusals are subclasses of ValueError that this library defines (of a record, a
    vocabulary, a checkpoint, a config), and files that cannot be read.
    """
    try:
        yield
    except RunError:
        raise
    except ValueError as error:
        if type(error).__module__.partition(".")[0] != __name__.partition(".")[0]:
            raise
        raise RunError(str(error)) from error
    except OSError as error:
        if not (error.filename and error.strerror):
            raise
        raise RunError(f"{error.filename}: {error.strerror.lower()}") from error
