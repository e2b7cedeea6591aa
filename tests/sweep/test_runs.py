"""Runs: their order, seeds, folders, and what a workdir may hold."""

import json

import pytest

from transformer_ablation.config import replace, to_mapping
from transformer_ablation.sweep import runs


def test_runs_go_seed_by_seed_into_their_own_folders(make, tmp_path):
    todo = make(seeds=(3, 5))
    assert [run.name for run in todo] == [
        "base seed 3", "small seed 3", "wide seed 3",
        "base seed 5", "small seed 5", "wide seed 5",
    ]  # fmt: skip
    assert todo[4].directory == tmp_path / "runs" / "small" / "seed5"
    assert todo[4].config.train.seed == 5 and todo[4].config.model.num_layers == 1
    assert len({run.identity for run in todo}) == 6


def test_run_reaches_another_process_whole(make):
    (run, *_) = make(seeds=(3,))
    text = json.dumps(runs.run_to_mapping(run))
    assert runs.run_from_mapping(json.loads(text)) == run


def test_workdir_of_another_base_is_refused(tiny_config, tmp_path):
    previous = {"config": to_mapping(tiny_config)}
    now = replace(tiny_config, {"model.d_ff": 21, "train.seed": 4})
    runs.check_base(tmp_path, previous, replace(tiny_config, {"train.seed": 4}))
    runs.check_base(tmp_path, None, now)
    with pytest.raises(runs.SweepError) as caught:
        runs.check_base(tmp_path, previous, now)
    assert str(caught.value) == (
        f"{tmp_path}: holds another sweep: model.d_ff is 20 there and 21 now; "
        "use another --workdir, or have new runs beside those with sweep --beside"
    )


@pytest.mark.parametrize("text", ["1_0", "0-3", "a", "", "1,,2", "-1", "9" * 30, "٣"])
def test_seeds_that_are_no_plain_numbers_are_refused(text):
    with pytest.raises(runs.SweepError, match="must be whole numbers"):
        runs.parse_seeds(text, 0)


@pytest.mark.parametrize("text", ["", "a", "1,,2", "-1", "0,0", "1.5", str(2**31)])
def test_seeds_that_are_no_numbers_are_refused(text):
    with pytest.raises(runs.SweepError, match="--seeds="):
        runs.parse_seeds(text, 0)


def test_seeds_default_to_the_one_of_base():
    assert runs.parse_seeds(None, 9) == (9,)
    assert runs.parse_seeds("2,0", 9) == (2, 0)
