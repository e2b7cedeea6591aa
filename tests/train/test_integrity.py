"""A checkpoint's manifest: every kind of damage is found and named."""

import hashlib
import json
import subprocess
import sys

import pytest

from tests.train.test_checkpoint import VOCABULARY_HASH, save, state_at
from tests.train.tiny_training import same_bits
from transformer_ablation.train import integrity
from transformer_ablation.train.checkpoint import (
    CheckpointError,
    Checkpoints,
    DamagedError,
)


@pytest.fixture
def folder(tmp_path):
    """Two files and their manifest."""
    place = tmp_path / "7"
    (place / "state").mkdir(parents=True)
    (place / "state/array").write_bytes(bytes(range(200)))
    (place / "facts").write_bytes(b"{}")
    integrity.seal(place)
    return place


def test_manifest_holds_size_and_digest_of_every_file(folder):
    assert integrity.is_sealed(folder) and integrity.faults(folder) == []
    listed = json.loads((folder / integrity.MANIFEST).read_text())["files"]
    assert listed == {
        "facts": {"size": 2, "sha256": hashlib.sha256(b"{}").hexdigest()},
        "state/array": {
            "size": 200,
            "sha256": hashlib.sha256(bytes(range(200))).hexdigest(),
        },
    }


def flip(path):
    content = bytearray(path.read_bytes())
    content[100] ^= 4  # one bit
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda f: flip(f / "state/array"), "state/array has other bytes than were"),
        (
            lambda f: (f / "state/array").write_bytes(bytes(range(150))),
            "state/array has 150 bytes instead of 200",
        ),
        (lambda f: (f / "facts").unlink(), "facts is missing"),
        (lambda f: (f / "state/b").touch(), "state/b is not one of its files"),
        (lambda f: (f / integrity.MANIFEST).write_text("{"), "sha256.json cannot be"),
        (lambda f: (f / integrity.MANIFEST).write_text("[]"), "sha256.json cannot be"),
    ],
    ids=["bit", "cut", "missing", "extra", "torn manifest", "other manifest"],
)
def test_damage_is_named(folder, damage, found):
    damage(folder)
    (fault,) = integrity.faults(folder)
    assert fault.startswith(found)


def test_few_faults_are_named_and_the_rest_counted():
    assert integrity.as_text(["a", "b"]) == "a; b"
    assert integrity.as_text(list("abcde")) == "a; b; c; and 2 more"


@pytest.fixture
def opened(tmp_path, config):
    managers = []

    def open_():
        managers.append(Checkpoints(tmp_path / "run", config, VOCABULARY_HASH))
        return managers[-1]

    yield open_
    for manager in managers:
        manager.close()


def largest(folder):
    """The file with the arrays."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return max((f for f in files if f.name != integrity.MANIFEST), key=size)


def size(path):
    return path.stat().st_size


def test_flipped_bit_is_found_set_aside_and_the_step_before_is_used(
    opened, config, tmp_path
):
    save(opened(), config, 7, 8)
    flip(largest(tmp_path / "run/8"))
    checkpoints, told = opened(), []
    like = state_at(0, config)
    with pytest.raises(DamagedError, match="run/8: is damaged: .* has other bytes"):
        checkpoints.restore(like)
    found = checkpoints.restore_intact(like, told.append)
    assert same_bits(found, state_at(7, config))
    assert checkpoints.steps() == [7]
    place = tmp_path / "damaged_checkpoints/8"
    (line,) = told
    assert line.endswith(f"; moved to {place}, the one before is used")
    assert place.is_dir()
    save(checkpoints, config, 8)  # it can be made again
    assert same_bits(opened().restore(like), state_at(8, config))


def test_nothing_intact_is_none(opened, config, tmp_path):
    save(opened(), config, 7)
    largest(tmp_path / "run/7").write_bytes(b"")
    assert opened().restore_intact(state_at(0, config), lambda line: None) is None


def test_checkpoint_without_its_manifest_is_not_there_and_is_made_again(
    opened, config, tmp_path
):
    save(opened(), config, 7, 8)
    (tmp_path / "run/8" / integrity.MANIFEST).unlink()
    half = tmp_path / "run/9.orbax-checkpoint-tmp-123"
    half.mkdir()
    checkpoints, like = opened(), state_at(0, config)
    assert checkpoints.steps() == [7]
    with pytest.raises(CheckpointError, match="no checkpoint of update 8; there are"):
        checkpoints.restore(like, 8)
    assert (tmp_path / "run/8").is_dir()  # a reader deletes nothing
    save(checkpoints, config, 8)
    assert checkpoints.steps() == [7, 8] and not half.exists()
    assert same_bits(opened().restore(like), state_at(8, config))


def test_checkpoint_of_a_version_without_manifests_counts(opened, config, tmp_path):
    save(opened(), config, 7)
    facts = tmp_path / "run/7/facts/metadata"
    content = json.loads(facts.read_text())
    del content["manifest"]
    facts.write_text(json.dumps(content))
    (tmp_path / "run/7" / integrity.MANIFEST).unlink()
    checkpoints = opened()
    assert checkpoints.steps() == [7]
    assert same_bits(checkpoints.restore(state_at(0, config)), state_at(7, config))
    largest(tmp_path / "run/7/state").write_bytes(b"")
    with pytest.raises(DamagedError, match="run/7: cannot be read"):
        opened().restore(state_at(0, config))


KILLED = """
import os, signal, sys
from tests.train.test_checkpoint import VOCABULARY_HASH, save, state_at
from tests.train.tiny_training import SETTINGS, make_config
from transformer_ablation.train import integrity
from transformer_ablation.train.checkpoint import Checkpoints

config = make_config(SETTINGS)
checkpoints = Checkpoints(sys.argv[1], config, VOCABULARY_HASH)
save(checkpoints, config, 7)
integrity.seal = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
save(checkpoints, config, 8)
"""


def test_kill_between_orbax_and_the_manifest_leaves_the_step_before(
    opened, config, tmp_path
):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "run")]
    assert subprocess.run(command, check=False).returncode == -9
    assert (tmp_path / "run/8/facts").is_dir()  # Orbax had finished
    assert opened().steps() == [7]
