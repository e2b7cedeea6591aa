"""Which code made a record: its commit, and whether the commit has all of it."""

import shutil
import subprocess

import pytest

from experiments.origin import commit_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


@pytest.fixture
def checkout(tmp_path):
    """A repository with a file of code, a config and an ignored folder."""
    folder = tmp_path / "checkout"
    for name in ("src/package/code.py", "configs/mine.py", "notes.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (folder / ".gitignore").write_text("runs/\n")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["init"], ["add", "."], [*author, "commit", "-m", "first"]):
        subprocess.run(["git", "-C", folder, *command], check=True, capture_output=True)
    return folder


def dirty(folder, config="configs/mine.py"):
    return commit_of(folder, str(folder / config))["dirty"]


def test_commit_that_has_everything_is_clean(checkout):
    head = ["git", "-C", checkout, "rev-parse", "HEAD"]
    expected = subprocess.run(head, check=True, capture_output=True, text=True).stdout
    found = commit_of(checkout, None)
    assert found == {"hash": expected.strip(), "dirty": False}
    (checkout / "table.md").write_text("no code")
    (checkout / "runs").mkdir()
    assert not dirty(checkout)


@pytest.mark.parametrize("name", ["src/package/code.py", "notes.txt"])
def test_changed_file_is_an_uncommitted_change(checkout, name):
    (checkout / name).write_text("x = 2\n")
    assert dirty(checkout)


@pytest.mark.parametrize(
    "name", ["configs/norms.py", "src/package/deep/new.py", "experiments/new.py"]
)
def test_code_that_the_commit_lacks_is_an_uncommitted_change(checkout, name):
    path = checkout / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")
    assert dirty(checkout)


@pytest.mark.parametrize("name", ["mine.py", "runs/mine.py", "../elsewhere.py"])
def test_config_file_that_the_commit_lacks_is_an_uncommitted_change(checkout, name):
    """Wherever it is: it defines the rows."""
    path = checkout / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x = 1\n")
    assert dirty(checkout, name) and not dirty(checkout)


def test_folder_without_git_has_no_commit(tmp_path):
    assert commit_of(tmp_path, None) is None
