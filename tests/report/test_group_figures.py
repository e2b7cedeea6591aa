"""Points of the figures: what lies along the axis, means, intervals, the paper's."""

import math

import pytest

from tests.report import written_sweeps as written
from transformer_ablation.report.figure_panels import aligned
from transformer_ablation.report.group_figures import group_figures
from transformer_ablation.report.overall_figures import agreement_figures, cost_points
from transformer_ablation.report.table import build_table

# Student's t at 0.975 with two degrees of freedom, from a printed table.
T2 = 4.302653


def table_of(rows, values, seeds=(0,), **keys):
    """``values[row]`` are (PPL, BLEU) of each seed; rows without any are pending."""
    records = [
        written.scored(row, ppl, bleu, seed, **keys)
        for row in rows
        for seed, (ppl, bleu) in zip(seeds, values.get(row["name"], ()), strict=False)
    ]
    return build_table(written.sweep(rows, seeds), records)


def along(rows):
    """What lies along each figure of a sweep, and the labels of its points."""
    values = {row["name"]: [(5.0, 20.0 + i)] for i, row in enumerate(rows)}
    return [
        (f.group, f.along, f.beside, [p.label for p in f.points])
        for f in group_figures(table_of(rows, values))
    ]


def test_groups_of_table_3_lie_along_what_they_vary():
    rows = written.paper_rows()
    sizes = {row["name"]: row["paper"]["parameters_millions"] or 65 for row in rows}
    records = [
        written.scored(row, 5.0, 25.0, parameters={"total": sizes[row["name"]] * 10**6})
        for row in rows
    ]
    found = group_figures(build_table(written.sweep(rows), records))
    assert [(f.group, f.along, list(f.beside)) for f in found] == [
        ("A", "h", ["d_k", "d_v"]),
        ("B", "d_k", []),
        ("C", "parameters (millions)", []),
        ("D", "P_drop", []),
        ("D", "ε_ls", []),
        ("E", "model.positions", []),
        ("big", "row", []),
    ]
    heads, size = found[0], found[2]
    assert [(p.row, p.x) for p in heads.points] == [
        *(("A_h1", 1), ("A_h4", 4), ("base", 8), ("A_h16", 16), ("A_h32", 32))
    ]
    assert [f.logarithmic for f in found[:4]] == [True, False, False, False]
    assert [(p.x, p.series) for p in size.points if not p.is_base] == [
        *((28, "d_model"), (36, "N"), (50, "N"), (53, "d_ff")),
        *((80, "N"), (90, "d_ff"), (168, "d_model")),
    ]
    assert [f.numeric for f in found] == [True] * 5 + [False] * 2
    assert [p.label for p in found[5].points] == ["sinusoidal", "learned"]


def test_sweep_of_ones_own_fields_has_fitting_axes():
    row = written.sweep_row
    base = row("base", {})
    assert along([base, row("x", {"model.attention_window": 3})]) == [
        ("", "model.attention_window", [], ["none", "3"])
    ]
    on = {"model.scale_embeddings": False}
    assert along([base, row("x", on)]) == [
        ("", "model.scale_embeddings", [], ["on", "off"])
    ]
    two = {"model.norm": "pre", "model.num_layers": 3}
    assert along([base, row("x", two)]) == [("", "row", [], ["base", "x"])]
    # The same value twice: the rows' names tell them apart.
    twins = [row("x", {"model.norm": "pre"}), row("y", {**two})]
    assert [(f[1], f[3]) for f in along([base, *twins])] == [
        ("model.norm", ["post", "pre"]),
        ("N", ["3", "6"]),
    ]


def test_sweep_without_base_shows_values_and_no_differences():
    rows = [written.sweep_row(f"N{n}", {"model.num_layers": n}) for n in (2, 3)]
    table = table_of(rows, {"N2": [(6.0, 20.0)], "N3": [(5.0, 21.0)]})
    (figure,) = group_figures(table)
    assert figure.along == "N" and [p.x for p in figure.points] == [2, 3]
    assert [p.values["bleu"].mean for p in figure.points] == [20.0, 21.0]
    assert {p.deltas["bleu"].mean for p in figure.points} == {None}


def test_means_and_intervals_are_those_of_the_seeds():
    rows = written.paper_rows(("base", "A_h1"))
    bleus = {"base": [25.0, 26.0, 25.5], "A_h1": [24.0, 26.0, 24.5]}
    values = {name: [(5.0, b) for b in some] for name, some in bleus.items()}
    ((base, row),) = [
        sorted(f.points, key=lambda p: not p.is_base)
        for f in group_figures(table_of(rows, values, (0, 1, 2)))
    ]
    # Differences -1, 0, -1: mean -2/3, deviation sqrt(1/3).
    half = T2 * math.sqrt(1 / 3) / math.sqrt(3)
    delta = row.deltas["bleu"]
    assert delta.values == {0: -1.0, 1: 0.0, 2: -1.0}
    assert delta.mean == pytest.approx(-2 / 3)
    assert delta.interval == pytest.approx((-2 / 3 - half, -2 / 3 + half), rel=1e-6)
    assert base.deltas["bleu"].values == {0: 0.0, 1: 0.0, 2: 0.0}
    assert base.deltas["bleu"].interval is None
    # Values 25, 26, 25.5: mean 25.5, deviation 1/2.
    half = T2 * 0.5 / math.sqrt(3)
    ours = base.values["bleu"]
    assert (ours.mean, ours.interval) == (
        25.5,
        pytest.approx((25.5 - half, 25.5 + half), rel=1e-6),
    )
    assert row.paper == pytest.approx({"bleu": 24.9 - 25.8, "ppl": 5.29 - 4.92})


def test_one_seed_has_no_interval():
    rows = written.paper_rows(("base", "A_h1"))
    table = table_of(rows, {"base": [(5.0, 25.0)], "A_h1": [(5.5, 24.0)]})
    (figure,) = group_figures(table)
    measured = [
        m for p in figure.points for m in (*p.values.values(), *p.deltas.values())
    ]
    assert {m.interval for m in measured} == {None}


def test_rows_without_scores_are_named_and_not_shown():
    rows = written.paper_rows(("base", "A_h1", "A_h4", "E_learned_pos"))
    table = table_of(rows, {"base": [(5.0, 25.0)], "A_h4": [(5.0, 24.0)]})
    (figure,) = group_figures(table)  # E has nothing but base to show
    assert [p.row for p in figure.points] == ["A_h4", "base"]
    assert figure.missing == ["A_h1"]
    found = agreement_figures(table)["bleu"]
    assert [p.row for p in found.points] == ["A_h4"]


def test_cost_needs_a_score_and_a_time():
    rows = written.paper_rows(("base", "A_h1", "C_N2"))
    records = [
        written.scored(rows[0], 5.0, 25.0, device={"seconds": 70.0}),
        written.scored(rows[1], 5.0, 24.0, device={"seconds": None}),
        written.record(rows[2], status="failed", device={"seconds": 9.0}),
    ]
    (point,) = cost_points(build_table(written.sweep(rows), records))
    assert (point.row, point.device_seconds, point.is_base) == ("base", 70.0, True)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([-20.0, 6.0], [-2.0, 0.5]),
        ([-3.0], [0.5]),
        ([1.0, 2.0], [3.0]),
        ([-1.0, -2.0], [-3.0]),
        ([0.0], [0.0]),
    ],
)
def test_axes_of_ours_and_the_papers_have_nought_at_one_height(ours, theirs):
    left, right = aligned(ours, theirs)
    for (low, high), values in ((left, ours), (right, theirs)):
        assert low <= min(0, *values) and high >= max(0, *values) and low < high
    shares = [-low / (high - low) for low, high in (left, right)]
    assert shares[0] == pytest.approx(shares[1])


def test_perplexity_beyond_all_others_is_named_and_not_drawn():
    rows = written.paper_rows(("base", "A_h1", "A_h4"))
    values = {"base": [(5.0, 25.0)], "A_h1": [(5e299, 0.1)], "A_h4": [(499.0, 24.0)]}
    table = table_of(rows, values)
    (figure,) = group_figures(table)
    assert figure.beyond == ["A_h1"]
    ppl = {p.row: (p.values["ppl"].mean, p.deltas["ppl"].mean) for p in figure.points}
    assert ppl == {"base": (5.0, 0.0), "A_h1": (None, None), "A_h4": (499.0, 494.0)}
    assert {p.row: p.values["bleu"].mean for p in figure.points}["A_h1"] == 0.1
    agreement = agreement_figures(table)
    assert [p.row for p in agreement["ppl"].points] == ["A_h4"]
    assert agreement["ppl"].beyond == ["A_h1"] and agreement["bleu"].beyond == []
    assert [p.row for p in agreement["bleu"].points] == ["A_h1", "A_h4"]
    # Tau is of the row that is not drawn too: the paper's +0.37 and +0.08, one order.
    assert agreement["ppl"].title == "ΔPPL, 2 rows: Kendall's tau-b +1.00"
