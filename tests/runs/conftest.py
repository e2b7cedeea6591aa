"""The finished runs of the tiny sweep."""

import shutil

import pytest

from tests.experiments import tiny_sweeps as tiny


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Corpus, sweep file and cache."""
    return tiny.folder_of(tmp_path_factory)


@pytest.fixture(scope="session")
def base(folder):
    """The folder of a finished run; nobody writes there."""
    return tiny.straight(folder) / "runs/base/seed0"


@pytest.fixture
def moved(base, tmp_path):
    """The run copied elsewhere, free to be changed."""
    return shutil.copytree(base, tmp_path / "elsewhere" / "model")
