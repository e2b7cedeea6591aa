"""Runs made from sweep.json alone: the ones that ``sweep`` itself would make."""

import pytest

from experiments import overrides, planned_runs, sweep_data, sweep_record
from transformer_ablation.config import ConfigError, replace
from transformer_ablation.data import corpus
from transformer_ablation.model import accounting
from transformer_ablation.report import table
from transformer_ablation.report.json_file import read_json, write_json
from transformer_ablation.sweep import file, rows, runs

MANIFEST = {
    "corpus": "grammar",
    "source_language": "en",
    "target_language": "de",
    "splits": {"train": {"en": {"sha256": "1"}, "de": {"sha256": "2"}}},
}


@pytest.fixture
def planned(repository, tmp_path, monkeypatch):
    """A workdir where base has seeds 3 and 5 and A_h1 seed 5; the runs by name."""
    monkeypatch.chdir(repository)
    monkeypatch.setattr(corpus, "read_manifest", lambda data, cache: MANIFEST)
    found = file.load("configs/table3.py:grammar", lambda c: overrides.apply(c, []))
    expanded = rows.expand(found.base, rows.select(found.rows, ["base", "A_h1"]))
    sweep_record.write(tmp_path, None, found, expanded, [5])
    previous = planned_runs.read_sweep(tmp_path)
    sweep_record.write(tmp_path, previous, found, expanded[:1], [3])
    identify = sweep_data.identifier(expanded, tmp_path, [])
    made = runs.make_runs(expanded, [3, 5], tmp_path, identify)
    return {f"{run.row}/seed{run.seed}": run for run in made}


def test_sweep_json_has_the_counts_of_rows_that_no_run_has(planned, tmp_path):
    """As the plan has them: a table of an unfinished sweep shows them."""
    stored = {row["name"]: row for row in planned_runs.read_sweep(tmp_path)["rows"]}
    config = planned["A_h1/seed5"].config
    size, updates = config.data.vocabulary_size, config.train.steps
    counts = accounting.parameter_counts(config.model, size)
    per_step = accounting.step_flops(config)
    assert stored["A_h1"]["parameters"] == counts
    flops = {"per_step": per_step, "training": updates * per_step}
    assert stored["A_h1"]["flops"] == flops
    (tmp_path / "runs").mkdir()
    rows = {row.name: row for row in table.read_table(tmp_path).rows}
    assert rows["A_h1"].parameters == counts and rows["A_h1"].state == "pending"
    assert rows["A_h1"].training_flops == updates * per_step


def test_runs_are_those_of_the_sweep_with_their_identities(planned, tmp_path):
    found = planned_runs.load(tmp_path, tmp_path)
    names = ["base/seed3", "base/seed5", "A_h1/seed5"]
    assert found == [planned[name] for name in names]
    assert found[0].config == replace(planned["base/seed5"].config, {"train.seed": 3})


def test_run_is_found_by_its_name(planned, tmp_path):
    found = planned_runs.find(tmp_path, "A_h1/seed5", tmp_path)
    assert found == planned["A_h1/seed5"]
    assert found.directory == tmp_path / "runs" / "A_h1" / "seed5"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("A_h1/seed3", "unknown run 'A_h1/seed3'; did you mean A_h1/seed5"),
        ("A_h1", "--run=A_h1: must be ROW/seedK, for example --run=base/seed0"),
        ("../../seed5", "--run=../../seed5: must be ROW/seedK"),
        ("base/seed05", "must be ROW/seedK"),
        ("base/seed5\n", "must be ROW/seedK"),
        ("../seed5", "unknown run '../seed5'"),
    ],
)
def test_other_names_are_refused(planned, tmp_path, name, message):
    with pytest.raises(runs.SweepError) as error:
        planned_runs.find(tmp_path, name, tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../../out"}, "row '../../out': a row names a folder"),
        ({"name": "a b"}, "row 'a b': a row names a folder"),
        ({"name": "x$(id)\n"}, "a row names a folder"),
        ({"name": "A_h1"}, "row A_h1: 2 rows have this name"),
        ({"seeds": [0, -1]}, "row base: seeds must be whole numbers"),
        ({"seeds": ["1/../.."]}, "row base: seeds must be whole numbers"),
    ],
)
def test_written_names_cannot_leave_the_workdir(planned, tmp_path, change, message):
    path = tmp_path / "sweep.json"
    sweep = read_json(path)
    sweep["rows"][0].update(change)
    write_json(path, sweep)
    with pytest.raises((ConfigError, runs.SweepError)) as error:
        planned_runs.load(tmp_path, tmp_path)
    assert message in str(error.value) and str(error.value).startswith(str(path))


def test_config_of_a_row_is_checked(planned, tmp_path):
    path = tmp_path / "sweep.json"
    sweep = read_json(path)
    sweep["rows"][1]["config"]["model"]["num_heads"] = 0
    write_json(path, sweep)
    with pytest.raises(runs.SweepError) as error:
        planned_runs.load(tmp_path, tmp_path)
    assert f"{path}: row A_h1: model.num_heads" in str(error.value)


def test_other_version_and_missing_plan_are_refused(planned, tmp_path):
    with pytest.raises(runs.SweepError, match="nothing is planned there"):
        planned_runs.load(tmp_path / "elsewhere", tmp_path)
    path = tmp_path / "sweep.json"
    write_json(path, read_json(path) | {"results_version": 0})
    with pytest.raises(runs.SweepError, match="results version 0, this program has 1"):
        planned_runs.load(tmp_path, tmp_path)
