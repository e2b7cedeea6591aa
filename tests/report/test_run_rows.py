"""A sweep as rows, one a run, from workdirs written by hand."""

import json

import pytest

from tests.report import written_sweeps as written
from tests.report.written_workdirs import workdir
from transformer_ablation.report.json_file import RecordError
from transformer_ablation.report.run_rows import run_rows


@pytest.fixture
def rows(tmp_path):
    """Three rows of Table 3 and one of a user's own, two seeds, every kind of run."""
    base, heads, learned = written.paper_rows(["base", "A_h4", "E_learned_pos"])
    window = written.sweep_row("near", {"model.attention_window": 5}, "W")
    more = [
        written.bleu_score(26.5, beam_size=8),
        written.bleu_score(27.0, steps=(98_500, 100_000)),
        written.bleu_score(20.0, steps=(50_000,)),
        written.bleu_score(24.0, split="test"),
    ]
    first = written.scored(base, 4.9, 25.0)
    first["scores"] += more
    second = written.scored(base, 4.8, 25.2, seed=1)
    second["scores"].append(written.bleu_score(24.9, beam_size=2))
    failed = written.record(heads, 1, "failed", reason="out of memory", step=7)
    failed |= {"device": None, "flops": None, "seconds": None, "parameters": None}
    records = [
        first,
        second,
        written.scored(window, 5.5, 24.1),
        failed,
    ]
    return run_rows(
        workdir(tmp_path, [base, heads, learned, window], records, seeds=(0, 1))
    )


def of(rows, name, seed):
    (row,) = [r for r in rows if (r["row"], r["seed"]) == (name, seed)]
    return row


def test_every_planned_run_has_a_row_in_the_sweeps_order(rows):
    names = ["base", "A_h4", "E_learned_pos", "near"]
    assert [(r["row"], r["seed"]) for r in rows] == [
        (n, s) for n in names for s in (0, 1)
    ]
    states = {(r["row"], r["seed"]): r["state"] for r in rows}
    assert states["base", 0] == "finished" and states["A_h4", 1] == "failed"
    assert states["A_h4", 0] == states["near", 1] == "pending"
    assert of(rows, "A_h4", 1)["reason"] == "out of memory"
    assert of(rows, "base", 0)["directory"].endswith("/runs/base/seed0")


def test_all_rows_have_the_same_keys_in_the_same_order(rows):
    assert len({tuple(row) for row in rows}) == 1
    keys = list(rows[0])
    assert keys[:8] == "row group label seed state reason step directory".split()
    # What rows vary, in the order of a config; neither the seed nor what all share.
    varied = [key for key in keys if key.startswith(("model.", "train.", "data."))]
    assert varied == [
        f"model.{name}"
        for name in "num_heads d_k d_v positions attention_window".split()
    ]


def test_values_are_the_configs_own(rows):
    assert of(rows, "A_h4", 0)["model.num_heads"] == 4
    assert of(rows, "base", 1)["model.num_heads"] == 8
    assert of(rows, "E_learned_pos", 0)["model.positions"] == "learned"
    assert of(rows, "near", 0)["model.attention_window"] == 5
    assert of(rows, "base", 0)["model.attention_window"] is None


def test_scores_say_how_they_were_made(rows):
    base = of(rows, "base", 0)
    found = {k: v for k, v in base.items() if k.startswith(("validation", "test"))}
    assert found == {
        "validation_ppl": 4.9,
        "validation_bleu": 25.0,
        "validation_bleu[beam_size=2]": None,
        "validation_bleu[beam_size=8]": 26.5,
        "validation_bleu[average_checkpoints=2]": 27.0,
        "validation_bleu[step=50000]": 20.0,
        "test_bleu": 24.0,
    }
    other = of(rows, "base", 1)
    assert other["validation_bleu"] == 25.2
    assert other["validation_bleu[beam_size=2]"] == 24.9
    assert other["validation_bleu[beam_size=8]"] is None
    assert of(rows, "A_h4", 1)["validation_bleu"] is None


def test_cost_and_paper_are_there_and_unknown_is_none(rows):
    base, failed = of(rows, "base", 0), of(rows, "A_h4", 1)
    assert (base["train_seconds"], base["compile_seconds"]) == (100.0, 20.0)
    assert base["parameters"] == 65_126_400 and base["training_flops"] == 1_000_000
    assert (base["paper_ppl"], base["paper_bleu"]) == (4.92, 25.8)
    assert of(rows, "near", 0)["paper_bleu"] is None
    for key in ("train_seconds", "device_seconds", "training_flops", "parameters"):
        assert failed[key] is None, key
    assert of(rows, "A_h4", 0)["results_version"] is None


def test_sweep_without_paper_has_no_columns_of_it(tmp_path):
    row = written.sweep_row("base", {})
    (found,) = run_rows(workdir(tmp_path, [row], [written.scored(row, 3.0, 20.0)]))
    assert not [key for key in found if key.startswith(("paper", "model."))]


def test_broken_record_is_named(tmp_path):
    row = written.sweep_row("base", {})
    workdir(tmp_path, [row], [written.scored(row, 3.0, 20.0)])
    path = tmp_path / "runs/base/seed0/record.json"
    record = json.loads(path.read_text())
    del record["scores"]
    path.write_text(json.dumps(record))
    with pytest.raises(RecordError, match="record lacks scores"):
        run_rows(tmp_path)
