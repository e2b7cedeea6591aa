"""A browser for the tests of pages, started once a module."""

import pytest

from tests.report import browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started
