"""Digests of the cache: computed once for files that stay as they are."""

import errno
import os
from pathlib import Path

import pytest

from transformer_ablation.data import storage


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A published folder, long enough ago."""

    def fill(folder):
        (folder / "a").write_text("first")
        (folder / "b").write_text("second")
        return {"is": "whole"}

    storage.publish(tmp_path / "x", fill, digests=True)
    monkeypatch.setattr(storage, "_SETTLED_SECONDS", -3600)
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


@pytest.mark.parametrize("digests", [False, True])
@pytest.mark.parametrize(
    ("was", "now"), [('"pairs": 3000', '"pairs": 1000'), ('"pairs"', '"qairs"')]
)
def test_damaged_facts_are_not_believed(tmp_path, digests, was, now):
    folder = tmp_path / "x"

    def fill(folder):
        (folder / "a").write_text("first")
        return {"splits": {"train": {"pairs": 3000}}}

    facts = storage.publish(folder, fill, digests=digests)
    contents = folder / storage.CONTENTS
    text = contents.read_text()
    assert was in text
    contents.write_text(text.replace(was, now))
    assert storage.read(folder) is None
    assert storage.publish(folder, fill, digests=digests) == facts
    assert contents.read_text() == text


def test_what_was_just_digested_is_not_read_again(tmp_path, digested, monkeypatch):
    monkeypatch.setattr(storage, "_SETTLED_SECONDS", -3600)
    publish = {"fill": lambda folder: {"n": (folder / "a").write_text("first")}}
    storage.publish(tmp_path / "x", **publish, digests=True)
    assert storage.read(tmp_path / "x") == {"n": 5}
    assert digested == ["a"]


NUMBERS = [errno.ENOSPC, errno.EDQUOT]


def chained(error):
    try:
        raise RuntimeError("could not write") from error
    except RuntimeError as caught:
        return caught


@pytest.mark.parametrize(
    "error",
    [
        *(OSError(number, os.strerror(number)) for number in NUMBERS),
        *(OSError(number, os.strerror(number), "/elsewhere") for number in NUMBERS),
        RuntimeError("write() failed: No space left on device; writing /x"),
        chained(OSError(errno.ENOSPC, "No space left on device")),
    ],
    ids=str,
)
def test_full_disk_names_the_folder_that_was_to_be_made(tmp_path, error):
    """Also where room is left: for less than was to be written, or freed meanwhile."""

    def fill(folder):
        raise error

    with pytest.raises(OSError) as caught:
        storage.publish(tmp_path / "x", fill)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.lock"]


def test_other_errors_stay_what_they_are(tmp_path):
    def fill(folder):
        raise PermissionError(errno.EACCES, "Permission denied", "/home/text.en")

    with pytest.raises(PermissionError, match="text.en"):
        storage.publish(tmp_path / "x", fill)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_cache_that_cannot_be_written_to_says_what_it_is(tmp_path, monkeypatch, number):
    def refuse(self, **_):
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(storage.CacheError) as caught:
        storage.publish(tmp_path / "format1" / "x" / "y", lambda folder: {})
    reason = os.strerror(number).lower()
    assert str(caught.value) == (
        f"{tmp_path}/format1/x: {reason}; this is in the cache of prepared data: name "
        "a folder that can be written to with --cache=DIR or TRANSFORMER_ABLATION_CACHE"
    )
    assert caught.value.exit_code == 1


def test_file_in_place_of_the_cache_says_what_it_is(tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(storage.CacheError, match="not a directory; .*--cache=DIR"):
        storage.publish(tmp_path / "cache" / "x" / "y", lambda folder: {})
