"""The plan: exact sums of what the counting functions say."""

import dataclasses
import types

import pytest

from transformer_ablation.config import replace
from transformer_ablation.sweep.plan import as_json, as_text, duration, make_plan, size
from transformer_ablation.sweep.rows import BASE, PaperResult, Row, expand

LONG = Row(
    "long",
    "T",
    "longer",
    lambda b: {"train.steps": 7},
    PaperResult(4.33, 26.4, None),
    "as was asked",
)


@pytest.fixture
def plan(tiny_config):
    """6 and 7 steps of 512 target tokens; 1,000 parameters; 50 FLOPs a step."""
    states = {("base", 0): "finished", ("long", 0): "failed"}
    return make_plan(
        "A study",
        expand(tiny_config, [BASE, LONG]),
        [0, 1],
        parameter_counts=lambda model, size: {"embedding": size, "total": 1000},
        paper_counts=lambda model: {"first_code": model.d_model, "text": 7},
        step_flops=lambda config: 50,
        update_memory=lambda config: 3_000_000,
        flops_per_second=10,
        state_of=lambda item, seed: states.get((item.row.name, seed), "pending"),
    )


def test_row_figures(plan):
    base, long = plan.rows
    assert (base.steps, long.steps) == (6, 7)
    assert (base.target_tokens, long.target_tokens) == (6 * 512, 7 * 512)
    assert (base.flops, long.flops) == (300, 350)
    assert (base.seconds, long.seconds) == (30, 35)
    # Three numbers of 4 bytes for each of 1,000 parameters, 5 checkpoints kept.
    assert base.disk_bytes == 3 * 4 * 1000 * 5


def words(plan):
    """Its text, however it is wrapped."""
    return " ".join(as_text(plan).split())


def test_memory_and_the_reason_of_another_budget_are_told(plan):
    text, found = as_text(plan), as_json(plan)["rows"]
    assert "Another budget than base's: long (as was asked)." in text
    assert [row["budget_reason"] for row in found] == [None, "as was asked"]
    assert {row["memory_bytes"] for row in found} == {3_000_000} and "  3 MB  " in text


def test_measured_times_take_the_place_of_the_rate(tiny_config):
    """2 seconds and 1/10 s a FLOP: 7 for 50 FLOPs, so 42 for the 6 updates."""
    measured = types.SimpleNamespace(
        text="measured on a toy", seconds=lambda flops: 2 + flops / 10
    )
    found = make_plan(
        "A study",
        expand(tiny_config, [BASE]),
        [0],
        parameter_counts=lambda model, size: {"total": 1},
        paper_counts=lambda model: {"first_code": 1, "text": 1},
        step_flops=lambda config: 50,
        update_memory=lambda config: 1,
        measured=measured,
    )
    assert found.rows[0].seconds == 42 and as_json(found)["flops_per_second"] is None
    assert as_json(found)["times"] == "measured on a toy"
    assert "Times are measured on a toy, one run after" in as_text(found)


def test_only_unfinished_runs_are_left(plan):
    assert [row.runs_left for row in plan.rows] == [1, 2]
    assert plan.left("seconds") == 30 + 2 * 35


def test_json_has_an_entry_a_row_with_a_complete_config(plan, tiny_config):
    found = as_json(plan)
    base, long = found["rows"]
    assert (base["row"], long["row"], long["group"]) == ("base", "long", "T")
    assert long["config"]["train"]["steps"] == 7
    assert set(long["config"]) == {
        "model", "regularization", "optimizer", "data", "train", "decode"
    }  # fmt: skip
    assert long["parameters"] == {"embedding": 600, "total": 1000}
    assert {k: v for k, v in long["paper"].items() if v is not None} == {
        "ppl": 4.33,
        "bleu": 26.4,
    }
    assert base["paper"] is None
    assert base["states"] == {"0": "finished", "1": "pending"}
    assert (found["runs"], found["runs_left"], found["seconds_left"]) == (4, 3, 100)


def test_text_states_the_assumed_rate_and_what_is_left(plan):
    text = as_text(plan)
    assert "assume 10 FLOP/s" in text and "--flops_per_second" in text
    assert "4 runs (2 rows), 3 to do" in text
    (line,) = [line for line in text.splitlines() if line.startswith("long")]
    assert line.split()[1] == "steps=7" and line.endswith("0/2")


def test_one_is_told_in_the_singular(plan):
    row = dataclasses.replace(plan.rows[0], states={0: "pending"})
    text = as_text(dataclasses.replace(plan, rows=(row,)))
    assert "\n1 run (1 row), 1 to do: " in text


def test_notes_are_wrapped_as_those_of_a_table_are(plan):
    place = "/".join(["a-long-name"] * 14)
    text = as_text(plan, [f"{place}: nothing is there yet."])
    notes = text.split("\n\n")[-1].splitlines()
    assert max(len(line) for line in notes if place not in line) <= 120
    assert f"{place}:" in notes  # so that it can be copied
    starts = [line for line in notes if not line.startswith("  ")]
    assert starts[0].startswith("4 runs") and len(notes) > len(starts)


def test_text_has_the_parameters_of_the_first_row_by_group(plan):
    row = dataclasses.replace(
        plan.rows[0],
        parameters={"embedding": 18_944, "positions": 0, "layer_norm": 7, "total": 9},
        paper_counts={"first_code": 65_126_400, "text": 63_082_496},
    )
    text = words(dataclasses.replace(plan, rows=(row,)))
    assert "Parameters of base: embedding 18,944, layer norm 7. With" in text
    assert "first code 65.1 million, with the text's 37,000 rows 63.1 million" in text


def test_text_says_what_rows_of_batches_its_flops_are_of(plan):
    assert words(plan).endswith("full batches of sentences of 30 pieces.")
    base, long = plan.rows
    changes = {"data.packed_length": 64, "data.length_buckets": 1}
    config = replace(long.item.config, changes)
    item = dataclasses.replace(long.item, config=config)
    packed = dataclasses.replace(long, item=item)
    both = dataclasses.replace(plan, rows=(base, packed))
    assert words(both).endswith(
        "full batches of sentences of 30 pieces or packed rows of 64 positions."
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (720, "12 min"), (5400, "1.5 h"), (864000, "10.0 days")],
)
def test_duration_words(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(999, "999 B"), (780e6, "780 MB"), (2.5e12, "2.5 TB")]
)
def test_size_words(count, text):
    assert size(count) == text


def test_training_that_rows_share_is_counted_once(tiny_config):
    """Per seed: 300 FLOPs of base, with which beam and greedy go, and 350 of long."""
    rows = [
        BASE,
        *(
            Row(f"beam{n}", "T", "beam", lambda b, n=n: {"decode.beam_size": n})
            for n in (1, 7)
        ),
        LONG,
    ]

    def left(**states):
        found = make_plan(
            "A study",
            expand(tiny_config, rows),
            [0, 1],
            parameter_counts=lambda model, size: {"embedding": size, "total": 1000},
            paper_counts=lambda model: {"first_code": 1, "text": 1},
            step_flops=lambda config: 50,
            update_memory=lambda config: 1,
            state_of=lambda item, seed: states.get(f"{item.row.name}{seed}", "pending"),
        )
        assert "Trained once: base, beam1, beam7." in as_text(found)
        return found.left("flops"), found.left("disk_bytes") / (3 * 4 * 1000 * 5)

    assert left() == (2 * (300 + 350), 8)
    assert left(base0="finished") == (350 + 300 + 350, 7)
    assert left(beam70="failed") == (2 * (300 + 350), 8)
