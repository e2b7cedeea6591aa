"""Digests of the cache: computed once for files that stay as they are."""

import os

import pytest

from transformer_ablation.data import storage


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A published folder, long enough ago."""

    def fill(folder):
        (folder / "a").write_text("first")
        (folder / "b").write_text("second")
        return {"is": "whole"}

    monkeypatch.setattr(storage, "_SETTLED_SECONDS", -3600)
    storage.publish(tmp_path / "x", fill, digests=True)
    return tmp_path / "x"


@pytest.fixture
def digested(monkeypatch):
    """Names of the files whose digests are computed from now on."""
    names, digest = [], storage._digest

    def noted(path):
        names.append(path.name)
        return digest(path)

    monkeypatch.setattr(storage, "_digest", noted)
    return names


def test_digests_are_computed_once(folder, digested):
    assert storage.read(folder) == {"is": "whole"}
    assert sorted(digested) == ["a", "b"]
    assert storage.read(folder) == {"is": "whole"}
    assert sorted(digested) == ["a", "b"]


def test_file_written_anew_is_read_again(folder, digested):
    storage.read(folder)
    digested.clear()
    (folder / "a").write_text("first")
    assert storage.read(folder) == {"is": "whole"}
    assert digested == ["a"]


@pytest.mark.parametrize("replaced", [False, True])
def test_damage_is_found_though_size_and_time_are_the_old(folder, replaced):
    """Also where a tool puts the time of the last writing back."""
    storage.read(folder)
    path = folder / "a"
    before = path.stat()
    if replaced:
        path.unlink()
    path.write_text("farst")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert storage.read(folder) is None


def test_file_changed_just_now_is_not_trusted(folder, digested, monkeypatch):
    """Within one tick of the clock a second writing leaves no trace."""
    monkeypatch.setattr(storage, "_SETTLED_SECONDS", 3600)
    for _ in range(2):
        assert storage.read(folder) == {"is": "whole"}
    assert sorted(digested) == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    "content", ["", "[]", "7", '{"a": 7}', '{"a": ["x", 1, 2, 3]}']
)
def test_damaged_note_of_what_was_verified_is_made_anew(folder, digested, content):
    (folder / storage.VERIFIED).write_text(content)
    assert storage.read(folder) == {"is": "whole"}
    assert sorted(digested) == ["a", "b"]
    digested.clear()
    assert storage.read(folder) == {"is": "whole"}
    assert digested == []


def test_cache_that_cannot_be_written_to_is_read(folder, digested, monkeypatch):
    def refuse(path, value):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(storage, "write_json", refuse)
    assert storage.read(folder) == {"is": "whole"}
    assert sorted(digested) == ["a", "b"]
