"""What TensorBoard shows of a sweep, asked over its own HTTP interface."""

import re

import pytest

from tests.report import written_sweeps as written
from tests.report.tensorboard_http import Board
from transformer_ablation.report import board, board_layout, hparams
from transformer_ablation.report.metrics import MetricWriter, Session
from transformer_ablation.report.record import run_directory

# A word, a number, and None beside a number, each in a column of its own.
ROWS = [
    written.sweep_row("base", {}, "base"),
    written.sweep_row("A_h16", {"model.num_heads": 16}, "A"),
    written.sweep_row("A_h2", {"model.num_heads": 2}, "A"),
    written.sweep_row("E_learned", {"model.positions": "learned"}, "E (odd/name)"),
    written.sweep_row("w9", {"model.attention_window": 9, "model.num_heads": 4}, "w"),
    written.sweep_row("w11", {"model.attention_window": 11}, "w"),
]
BY_NAME = {row["name"]: row for row in ROWS}
WINDOW, HEADS = "model.attention_window", "model.num_heads"


def session(name, seed=0):
    row = BY_NAME[name]
    return Session(name, row["group"], seed, row["config"])


def run(workdir, name, steps, resume=None, end=None, bleu=None, bend=0.0):
    """Perplexities of some updates, as a run of the sweep writes them."""
    place = run_directory(workdir, name, 0)
    with MetricWriter(place, resume, session(name)) as writer:
        for step in steps:
            value = {"validation/perplexity": 40.0 / step + bend, "train/loss": 1.5}
            writer.write(step, value, seconds=1.0 * step)
        if bleu is not None:
            final = {"validation/final_perplexity": 4.5, "validation/final_bleu": bleu}
            writer.write(steps[-1], final, seconds=9.0)
        if end is not None:
            writer.end(end)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """Finished, failed before and after it began, resumed, diverged, and running."""
    folder = tmp_path_factory.mktemp("sweep")
    board.write_sweep(folder, written.sweep(ROWS[:4]))
    board.write_sweep(folder, written.sweep(ROWS))
    run(folder, "base", [5, 10], end="finished", bleu=25.5)
    run(folder, "A_h16", [5, 8, 10])
    run(folder, "A_h16", [8, 10], resume=5, end="finished", bleu=26.0, bend=0.5)
    run(folder, "A_h2", [5], end="diverged")
    run(folder, "E_learned", [5])
    board.write_failure(run_directory(folder, "E_learned", 0), session("E_learned"))
    board.write_failure(run_directory(folder, "w9", 0), session("w9"))
    run(folder, "w9", [5], end="finished", bleu=24.0)  # it was run again
    board.write_failure(run_directory(folder, "w11", 0), session("w11"))
    return folder


@pytest.fixture(scope="module")
def shown(workdir):
    return Board(workdir)


def name_of(found):
    return re.fullmatch(r"runs/(.*)/seed0", found[0])[1]


def test_every_run_is_listed_with_its_status_fields_and_metrics(shown):
    found = {name_of(each): each[1:] for each in shown.sessions()}
    assert {name: status for name, (status, _, _) in found.items()} == {
        "base": "SUCCESS",
        "A_h16": "SUCCESS",
        "A_h2": "FAILURE",
        "E_learned": "FAILURE",
        "w9": "SUCCESS",
        "w11": "FAILURE",
    }
    for name, (_, fields, _) in found.items():
        config = BY_NAME[name]["config"]["model"]
        assert fields["row"] == name and fields["group"] == BY_NAME[name]["group"]
        assert fields["seed"] == 0
        assert fields[HEADS] == config["num_heads"]
        assert fields["model.positions"] == config["positions"]
        window = config["attention_window"]
        assert fields[WINDOW] == ("none" if window is None else str(window))
    metrics = {name: values for name, (_, _, values) in found.items()}
    assert metrics["base"]["validation/final_bleu"] == 25.5
    assert metrics["base"]["validation/final_perplexity"] == 4.5
    assert metrics["A_h16"]["validation/perplexity"] == 4.5  # of the second attempt
    assert metrics["E_learned"] == {"validation/perplexity": 8.0, "train/loss": 1.5}
    assert metrics["w11"] == {}


def test_columns_are_what_rows_vary_numbers_where_all_are_numbers(shown):
    columns, metrics = shown.columns()
    kinds = {name: c["type"].removeprefix("DATA_TYPE_") for name, c in columns.items()}
    assert kinds == {
        "row": "STRING",
        "group": "STRING",
        "seed": "FLOAT64",
        HEADS: "FLOAT64",
        "model.positions": "STRING",
        WINDOW: "STRING",
    }
    assert columns[WINDOW]["domainDiscrete"] == ["11", "9", "none"]
    assert columns[HEADS]["domainInterval"] == {"minValue": 2.0, "maxValue": 16.0}
    assert "validation/final_bleu" in metrics and "train/loss" in metrics


@pytest.mark.parametrize("column", ["row", "group", "seed", HEADS, WINDOW])
def test_runs_sort_by_every_kind_of_column(shown, column):
    found = shown.sessions(sorted_by=column)
    values = [fields[column] for _, _, fields, _ in found]
    assert len(values) == len(ROWS) and values == sorted(values)


def test_runs_sort_by_a_metric_those_without_it_last(shown):
    found = shown.sessions("validation/final_bleu", "ORDER_DESC")
    assert [name_of(each) for each in found][:3] == ["A_h16", "base", "w9"]


def test_resumed_run_shows_one_value_a_step(shown):
    place = "runs/A_h16/seed0"
    expected = [(5, 8.0), (8, 5.5), (10, 4.5)]
    assert shown.scalars(place, "validation/perplexity") == expected
    tag = board_layout.group_tag("A", "validation/perplexity")
    assert shown.scalars(place, tag) == expected


def test_chart_of_a_group_shows_base_and_its_rows_alone(shown):
    categories = shown.get("custom_scalars", "layout")["category"]
    charts = {c["title"]: c["multiline"]["tag"] for k in categories for c in k["chart"]}
    perplexity = next(k for k in categories if "perplexity" in k["title"])
    expected = ["A", "E (odd/name)", "w"]
    titles = [chart["title"] for chart in perplexity["chart"]]
    assert titles == [f"base and group {name}" for name in expected]

    def runs(chart):
        found = set()
        for tag in chart["multiline"]["tag"]:
            for name in BY_NAME:
                answer = shown.get(
                    "custom_scalars", "scalars", tag=tag, run=f"runs/{name}/seed0"
                )
                assert answer["regex_valid"]
                found |= {name for points in answer["tag_to_events"].values() if points}
        return found

    assert [runs(chart) for chart in perplexity["chart"]] == [
        {"base", "A_h16", "A_h2"},
        {"base", "E_learned"},
        {"base", "w9"},
    ]
    assert {"gradient norm", "update to parameter ratio"} <= set(charts)


def test_workdir_has_one_file_of_the_sweep(workdir):
    assert [path.name for path in workdir.glob("*tfevents*")] == [board.SWEEP_EVENTS]


def test_optional_field_is_a_number_where_every_row_has_one():
    base = written.config_with({"optimizer.clip_norm": None})  # none of the rows'
    first = written.config_with({"optimizer.clip_norm": 1.0})
    other = written.config_with({"optimizer.clip_norm": 2.5})
    rows = [
        {"name": name, "group": "F", "config": config}
        for name, config in (("clip", other), ("first", first))
    ]
    sweep = {"title": "x", "config": base, "rows": rows, "seeds": [0]}
    content = hparams.experiment(sweep).value[0].metadata.plugin_data.content
    column = hparams.HParamsPluginData.FromString(content).experiment.hparam_infos[3]
    assert column.display_name == "optimizer.clip_norm"
    assert column.type == hparams.DATA_TYPE_FLOAT64
    assert (column.domain_interval.min_value, column.domain_interval.max_value) == (
        1.0,
        2.5,
    )
    values = hparams.session_values(Session("clip", "F", 0, other))
    assert values[column.name] == 2.5 and values["optimizer.clip_norm"] == "2.5"
    unset = hparams.session_values(session("base"))
    assert unset[WINDOW] == "none" and hparams.NUMBER.format(WINDOW) not in unset
