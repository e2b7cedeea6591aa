"""A bar on the terminal for work that takes a while."""

import contextlib
import sys
from collections.abc import Callable, Iterator

_WORTH_SHOWING = 100_000  # pairs; fewer are done in a few seconds


@contextlib.contextmanager
def bar(
    what: str, total: int | None, least: int = _WORTH_SHOWING
) -> Iterator[Callable[[int], None]]:
    """A function that is told of so many more done of ``total``, None if not known.

    The bar is on stderr, and goes when the work is done. Where stderr is no terminal
    or there are fewer than ``least`` to do there is none.
    """
    if (total is not None and total < least) or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        refresh_per_second=2,
        transient=True,
    )
    task = shown.add_task(what, total=total)
    shown.start()
    try:
        yield lambda count: shown.update(task, advance=count)
    finally:
        with contextlib.suppress(OSError):  # the terminal is gone: that ends no work
            shown.stop()
