"""What a record keeps of a run that is stopped and goes on elsewhere."""

import pytest

from experiments.run_record import carried
from transformer_ablation.report import record

SESSION = {
    "command": ["python", "-m", "experiments.sweep"],
    "packages": {"jax": "0.10.2"},
}
FIRST = {**SESSION, "commit": {"hash": "a" * 40, "dirty": True}, "device": {"count": 8}}
SECOND = {
    **SESSION,
    "commit": {"hash": "b" * 40, "dirty": False},
    "device": {"count": 1},
}


def of(session, step, **changes):
    """The record of a process, from a checkpoint of this update on."""
    return {**session, "step": step, "scores": [], **changes}


def stored(session, step, old=None, twin=None):
    made = of(session, step)
    return {**made, **carried(made, old, twin)}


def score(step):
    return record.new_score("validation", "ppl", 5.0, sentences=9, steps=[step])


def test_processes_of_a_run_are_kept_in_order():
    """Numbers of 1,500 updates by dirty code on 8 devices are not of the last one's."""
    first = stored(FIRST, 0)
    second = stored(SECOND, 1500, first)
    assert record.sessions(first) == [{"from_step": 0, **FIRST}]
    assert record.sessions(second) == [
        {"from_step": 0, **FIRST},
        {"from_step": 1500, **SECOND},
    ]


def test_process_whose_updates_were_lost_is_no_part_of_the_run():
    first = stored(FIRST, 0)
    second = stored(SECOND, 1500, first)  # it saved nothing
    third = stored(FIRST, 1500, second)
    assert record.sessions(third) == [{"from_step": 0, **FIRST}]
    assert record.sessions(stored(SECOND, 0, third)) == [{"from_step": 0, **SECOND}]


def test_process_of_the_same_kind_is_not_told_again():
    first = stored(FIRST, 0)
    assert record.sessions(stored(FIRST, 700, first)) == [{"from_step": 0, **FIRST}]


def test_record_of_an_earlier_version_is_one_process():
    old = of(FIRST, 900)
    assert "sessions" not in old
    assert record.sessions(old) == [{"from_step": 0, **FIRST}]
    assert len(record.sessions(stored(SECOND, 900, old))) == 2


def test_processes_are_the_twins_whose_training_it_is():
    twin = stored(FIRST, 0)
    mine = stored(SECOND, 900, None, twin)
    assert [each["from_step"] for each in record.sessions(mine)] == [0, 900]
    assert record.sessions(mine)[0]["commit"] == FIRST["commit"]


@pytest.mark.parametrize(("step", "kept"), [(1000, [500, 1000]), (700, [500]), (0, [])])
def test_scores_of_checkpoints_that_the_run_goes_on_from_stay(step, kept):
    """``evaluate`` adds some to a run that was stopped."""
    old = of(FIRST, 1000, scores=[score(500), score(1000)])
    assert [s["steps"] for s in stored(SECOND, step, old)["scores"]] == [
        [each] for each in kept
    ]
