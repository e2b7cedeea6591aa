"""``bench``: every figure is there and fits the others; what cannot be is refused."""

import importlib.util
import json
import sys

import pytest

from experiments import bench, bench_peers, command
from tests.experiments.tiny_sweeps import folder_of
from transformer_ablation.benchmark.machine import ENVIRONMENT
from transformer_ablation.config import from_mapping
from transformer_ablation.report.json_file import read_json

GRAMMAR = "--config=configs/table3.py:grammar"
BENCH = {
    "sweep_file", "date", "results_version", "packages", "commit", "machine",
    "device", "environment", "seconds_per_measurement", "rows", "seconds",
}  # fmt: skip
ROW = {
    "row", "label", "identity", "manifest_hash", "config", "parameters", "padding",
    "updates_per_epoch", "updates", "epoch", "dropout", "loop", "products",
    "ceiling_flops_per_second", "compile", "decode", "score", "memory_bytes", "peers",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs ``bench`` on the tiny sweep; the exit code."""
    folder = folder_of(tmp_path_factory)

    def run(*more):
        return command.run(
            bench.COMMAND,
            [
                f"--config={folder / 'tiny.py'}",
                f"--config.data.directory={folder / 'corpus'}",
                f"--cache={folder / 'cache'}",
                "--seconds=0.001",
                "--config.data.length_buckets=2",
                "--config.data.tokens_per_batch=64",
                *more,
            ],
        )

    return run


@pytest.fixture(scope="module")
def found(run, tmp_path_factory):
    """The JSON of one bench of the rows base and narrow."""
    path = tmp_path_factory.mktemp("bench") / "new folder" / "bench.json"
    assert run("--rows=base,narrow", f"--json={path}") == 0
    return read_json(path)


def test_json_is_complete(found):
    assert set(found) == BENCH
    assert [row["row"] for row in found["rows"]] == ["base", "narrow"]
    assert all(set(row) == ROW for row in found["rows"])
    assert set(found["environment"]) == set(ENVIRONMENT)
    assert "device_count=4" in found["environment"]["XLA_FLAGS"]
    assert found["device"]["count"] == 4 and found["machine"]["cores"] >= 1
    assert found["packages"]["jax"] and found["date"].startswith("20")


def test_row_can_be_made_again_from_its_config(found):
    base, narrow = (from_mapping(row["config"]) for row in found["rows"])
    assert (base.model.d_ff, narrow.model.d_ff) == (20, 14)
    assert len({row["identity"] for row in found["rows"]}) == 2


def test_updates_cover_an_epoch(found):
    for row in found["rows"]:
        counts = [each["updates_per_epoch"] for each in row["updates"]]
        assert sum(counts) == row["updates_per_epoch"] and len(counts) == 2
        for each in row["updates"]:
            assert each["seconds"]["count"] >= 3
            spread = each["seconds"]
            assert spread["smallest"] <= spread["median"] <= spread["largest"]
            assert 0 < each["target_tokens"] <= each["rows"] * each["target_length"]


def test_rates_fit_times_and_the_ceiling(found):
    for row in found["rows"]:
        for each in row["updates"]:
            median = each["seconds"]["median"]
            rate = each["target_tokens_per_second"]
            assert rate * median == pytest.approx(each["target_tokens"])
        for each in [*row["updates"], row["epoch"]]:
            product = each["share_of_ceiling"] * row["ceiling_flops_per_second"]
            assert product == pytest.approx(each["flops_per_second"])
        fastest = max(p["flops_per_second"] for p in row["products"])
        assert len(row["products"]) == 3 and row["ceiling_flops_per_second"] == fastest


def test_every_program_is_compiled_here_and_named(found):
    """Also those that other tests have left in the folder of compiled programs."""
    base = found["rows"][0]
    shapes = [
        f"{u['rows']}x{u['source_length']}x{u['target_length']}"
        for u in base["updates"]
    ]
    names = [program["program"] for program in base["compile"]["programs"]]
    usual = max(base["updates"], key=lambda u: u["updates_per_epoch"])
    usual = shapes[base["updates"].index(usual)]
    updates = [f"update {shape}" for shape in shapes]
    assert names == [*updates, f"update {usual}, no dropout", "search", "scorer"]
    assert base["compile"]["cold"] is True
    for program in base["compile"]["programs"]:
        assert 0 < program["seconds"] <= program["first_call_seconds"]


def test_decoding_is_of_real_sentences(found):
    for row in found["rows"]:
        decode, score = row["decode"], row["score"]
        assert decode["sentences"] == score["sentences"] == 7  # all of validation
        assert decode["beam_size"] == 3
        assert 7 < decode["target_tokens"] <= score["target_tokens"]


def test_waiting_dropout_and_memory_are_there(found):
    for row in found["rows"]:
        assert 0 <= row["loop"]["wait_share"] < 1
        assert row["dropout"]["rates"]["dropout_rate"] == 0.03
        assert (
            row["dropout"]["ratio"]["count"] == row["dropout"]["with_seconds"]["count"]
        )
        assert row["memory_bytes"]["after_training"] > 2**20
        assert row["peers"] is None


def test_text_says_all_of_it(found, capsys):
    from experiments import bench_text

    text = bench_text.as_text(found)
    for part in ("target tok/s", "of ceiling", "dropout", "waiting for batches"):
        assert part in text
    for part in ("nothing from the cache: update ", "beam of 3", "narrow: ", "memory"):
        assert part in text
    assert max(map(len, text.splitlines())) < 400


def test_peers_are_shown_with_their_ratio(found):
    from experiments import bench_text

    spread = {"count": 5, "median": 1.25, "low": 1.1, "high": 1.3}
    spread |= {"smallest": 1.0, "largest": 1.5}
    part = {"per_turn": 2, "ours": spread, "theirs": spread, "ratio": spread}
    peers = {
        "torch": "2", "threads": 3, "parameters": 7_000, "differences": ["a note"],
        "training": part, "decode": part,
    }  # fmt: skip
    text = "\n".join(bench_text.row_lines({**found["rows"][0], "peers": peers}))
    assert "1.25 times (1.00 to 1.50 in 5 turns)" in text and "a note" in text


@pytest.fixture
def refused(repository, monkeypatch, capsys):
    """Message of a request that is refused before the data is touched."""
    monkeypatch.chdir(repository)
    monkeypatch.setattr(bench, "measure", lambda *_: pytest.fail("it was measured"))

    def refused(*arguments):
        assert command.run(bench.COMMAND, [GRAMMAR, *arguments]) == 2
        return capsys.readouterr().err

    return refused


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon"])
def test_time_that_is_none_is_refused(refused, value):
    assert "seconds" in refused(f"--seconds={value}")


def test_unknown_row_is_refused(refused):
    assert "unknown row 'bigg'; did you mean big" in refused("--rows=bigg")


def installed(monkeypatch, *names):
    """Only these of the peers' packages are there."""
    find = importlib.util.find_spec

    def find_spec(name, *rest):
        if name in bench_peers.PACKAGES:
            return object() if name in names else None
        return find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


def test_peers_without_torch_are_refused(refused, monkeypatch):
    installed(monkeypatch, "transformers")
    message = refused("--peers")
    assert "not installed: torch." in message
    assert "pip install -r requirements-parity.txt" in message


def test_peers_in_another_precision_are_refused(refused, monkeypatch):
    installed(monkeypatch, *bench_peers.PACKAGES)
    message = refused("--peers", "--config.model.dtype=bfloat16")
    assert "--config.model.dtype=float32" in message


def test_model_without_a_peer_is_refused(refused, monkeypatch):
    installed(monkeypatch, *bench_peers.PACKAGES)
    message = refused("--peers", "--config.model.num_heads=3")
    assert "3 heads do not share model.d_model = 64 evenly" in message


def test_json_is_one_object_on_stdout(run, monkeypatch, capsys):
    monkeypatch.setattr(bench, "measure", lambda *_: {"rows": []})
    assert run("--format=json") == 0
    assert json.loads(capsys.readouterr().out) == {"rows": []}
    assert "torch" not in sys.modules
