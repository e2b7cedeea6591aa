"""The bar: on a terminal and for long work alone, gone at the end."""

import io
import sys

import pytest

from transformer_ablation.data import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "total", "shown"),
    [
        (Terminal(), 10**6, True),
        (Terminal(), 99_999, False),
        (io.StringIO(), 10**6, False),
    ],
)
def test_bar_is_shown_on_a_terminal_for_long_work(monkeypatch, stream, total, shown):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress.bar("counting sheep", total) as done:
        done(total // 2)
    assert ("counting sheep" in stream.getvalue()) is shown
    assert (f"{total // 2}/{total}" in stream.getvalue()) is shown


def test_failure_of_the_work_goes_through(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyError), progress.bar("counting sheep", 10**6):
        raise KeyError
