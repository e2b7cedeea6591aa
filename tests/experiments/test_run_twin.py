"""A row that decodes otherwise is not trained again: it takes the checkpoints."""

import shutil
import types

import pytest

from configs import table3
from experiments import run_twin
from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.config import from_mapping
from transformer_ablation.report.record import read_record
from transformer_ablation.report.render import render
from transformer_ablation.report.table import Options, read_table

CONFIG = from_mapping(table3.get_config())
MANIFEST = {"source_language": "en", "target_language": "de", "splits": {}}
PREPARED = types.SimpleNamespace(corpus=types.SimpleNamespace(manifest=MANIFEST))


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """Base, trained elsewhere, and beside it the greedy row, run now."""
    folder = tiny.folder_of(tmp_path_factory)
    workdir = tmp_path_factory.mktemp("twin") / "w"
    shutil.copytree(tiny.straight(folder), workdir)
    done = tiny.process("sweep", tiny.arguments(folder, workdir, "--rows=base,greedy"))
    assert done.returncode == 0, done.stderr.decode()
    said = "trained already, as base/seed0, which differs in decoding alone"
    assert f"greedy seed 0: {said}" in done.stderr.decode()
    return workdir


def test_training_is_the_twins(workdir):
    base, greedy = (workdir / "runs" / row / "seed0" for row in ("base", "greedy"))
    mine, theirs = read_record(greedy), read_record(base)
    assert mine["trained_as"] == "base/seed0" and theirs["trained_as"] is None
    assert mine["status"] == "finished" and mine["identity"] != theirs["identity"]
    for key in ("tokens", "step", "data", "parameters", "flops"):
        assert mine[key] == theirs[key]
    assert mine["seconds"]["train"] == theirs["seconds"]["train"] > 0
    assert tiny.saved_steps(greedy) == tiny.saved_steps(base)
    assert tiny.checkpoint(greedy) == tiny.checkpoint(base)


def test_training_is_the_twins_also_after_a_stop_before_the_record(workdir, tmp_path):
    copied = shutil.copytree(workdir, tmp_path / "w") / "runs" / "greedy" / "seed0"
    (copied / "record.json").unlink()
    run = types.SimpleNamespace(directory=copied, seed=0)
    assert run_twin.adopt(run, None, pytest.fail) == "base/seed0"
    shutil.rmtree(copied / "checkpoints")
    shutil.rmtree(copied.parents[1] / "base")  # nothing to take, and none was
    run = types.SimpleNamespace(directory=copied, seed=0, config=CONFIG)
    assert run_twin.adopt(run, PREPARED, pytest.fail) is None
    (copied / "checkpoints" / "50").mkdir(parents=True)
    assert run_twin.adopt(run, None, pytest.fail) is None


def test_values_stand_once_and_scores_are_its_own(workdir):
    base, greedy = (workdir / "runs" / row / "seed0" for row in ("base", "greedy"))
    mine, theirs = tiny.values(greedy), tiny.values(base)  # no value twice
    assert mine.keys() == theirs.keys()
    different = {tag for key, x in mine.items() if theirs[key] != x for tag in [key[1]]}
    assert all("bleu" in tag for tag in different)
    scores = {(s["split"], s["metric"]): s for s in read_record(greedy)["scores"]}
    bleu = scores["validation", "bleu"]
    assert bleu["decode"]["beam_size"] == 1
    found = mine[150, "validation/final_bleu"]
    assert found == pytest.approx(bleu["value"])
    ppl = {(s["split"], s["metric"]): s for s in read_record(base)["scores"]}
    assert scores["validation", "ppl"]["value"] == pytest.approx(
        ppl["validation", "ppl"]["value"], rel=1e-6
    )


def test_score_is_that_of_a_row_trained_by_itself(workdir, tmp_path):
    folder = workdir.parents[1] / "tiny"
    assert folder.exists(), "the corpus of these tests lies beside"
    own = tmp_path / "own"
    done = tiny.process("sweep", tiny.arguments(folder, own, "--rows=greedy"))
    assert done.returncode == 0, done.stderr.decode()
    one, two = (
        read_record(place / "runs" / "greedy" / "seed0") for place in (workdir, own)
    )
    assert two["trained_as"] is None and one["identity"] == two["identity"]
    assert one["scores"] == two["scores"]


def test_table_says_so(workdir):
    text = " ".join(render(read_table(workdir, Options(sentences=None))).split())
    assert "decoded in several ways: greedy/seed0: as base/seed0." in text


def test_run_that_has_begun_goes_on_by_itself(workdir, tmp_path):
    """Neither damaged nor missing checkpoints of a twin are taken."""
    folder, own = workdir.parents[1] / "tiny", tmp_path / "w"
    shutil.copytree(workdir, own)
    shutil.rmtree(own / "runs" / "greedy")
    shutil.rmtree(own / "runs" / "base" / "seed0" / "checkpoints")
    done = tiny.process("sweep", tiny.arguments(folder, own, "--rows=greedy"))
    assert done.returncode == 0, done.stderr.decode()
    record = read_record(own / "runs" / "greedy" / "seed0")
    assert record["trained_as"] is None and record["step"] == 150
    again = tiny.checkpoint(own / "runs" / "greedy" / "seed0")
    assert again == tiny.checkpoint(workdir / "runs" / "greedy" / "seed0")
