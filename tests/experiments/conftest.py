"""The tiny sweep of ``tiny_sweeps``, for every test of a command line."""

import shutil

import pytest

from tests.experiments import tiny_sweeps as tiny


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Its corpus, sweep file and cache."""
    return tiny.folder_of(tmp_path_factory)


@pytest.fixture
def workdir(folder, tmp_path):
    """Its finished workdir, free to be changed."""
    return shutil.copytree(tiny.straight(folder), tmp_path / "w")
