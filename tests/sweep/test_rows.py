"""Rows: pure functions of base, refused all at once where they cannot be run."""

import dataclasses
import math
from pathlib import Path

import pytest

from transformer_ablation.config import ConfigError, replace
from transformer_ablation.sweep.rows import (
    BASE,
    PaperResult,
    Row,
    expand,
    fraction,
    select,
)


def row(name, changes):
    return Row(name, "G", name, lambda base: changes)


def problems_of(base, rows):
    with pytest.raises(ConfigError) as caught:
        expand(base, rows)
    return caught.value.problems


def test_expanded_row_follows_its_base(base_config):
    twice = Row("twice", "G", "", lambda b: {"model.d_ff": 2 * b.model.d_ff})
    small = replace(base_config, {"model.d_ff": 100})
    assert expand(base_config, [twice])[0].config.model.d_ff == 4096
    item = expand(small, [BASE, twice])[1]
    assert item.config == replace(small, {"model.d_ff": 200})
    assert item.changed == {"model.d_ff": 200}


def test_changed_leaves_out_what_equals_base(base_config):
    (item,) = expand(
        base_config, [row("x", {"model.d_model": 512, "model.num_layers": 1})]
    )
    assert item.changed == {"model.num_layers": 1}


def test_equal_rows_are_refused_with_the_field_they_share(base_config):
    base = replace(base_config, {"regularization.dropout_rate": 0.2})
    (problem,) = problems_of(
        base, [BASE, row("D_drop0.2", {"regularization.dropout_rate": 0.2})]
    )
    assert problem.startswith(
        "rows base and D_drop0.2 are equal: both have "
        "regularization.dropout_rate = 0.2; "
    )


def test_equal_rows_are_found_where_neither_is_base(base_config):
    problems = problems_of(
        base_config,
        [BASE, row("a", {"model.num_layers": 2}), row("b", {"model.num_layers": 2})],
    )
    assert [p.partition(":")[0] for p in problems] == ["rows a and b are equal"]


def test_every_fault_is_named_with_its_row(base_config):
    problems = problems_of(
        base_config,
        [
            BASE,
            row("typo", {"model.num_head": 4}),
            row("odd", {"model.d_model": 511}),
            row("twice", {"model.num_layers": 1}),
            row("twice", {"model.num_layers": 2}),
            row("a/b", {"model.num_layers": 3}),
        ],
    )
    expected = [
        "row typo: model.num_head: unknown field; did you mean model.num_heads?",
        "row odd: model.d_model: 511 is odd",
        "row twice: 2 rows have this name",
        "row 'a/b': a row names a folder",
    ]
    for start in expected:
        assert sum(p.startswith(start) for p in problems) == 1, (start, problems)
    assert len(problems) == len(expected)


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "a b", "a/b", "ä", "x" * 65])
def test_name_unfit_for_a_folder_is_refused(base_config, name):
    (problem,) = problems_of(base_config, [row(name, {})])
    assert repr(name) in problem and "1 to 64 letters" in problem


@pytest.mark.parametrize("name", ["x", "D_drop0.2", "9-a+b", "x" * 64])
def test_name_fit_for_a_folder_is_taken(base_config, name):
    assert expand(base_config, [row(name, {})])[0].row.name == name


def test_names_that_differ_only_in_case_are_refused(base_config):
    problems = problems_of(base_config, [BASE, row("Base", {"model.num_layers": 1})])
    assert problems == ("rows base and Base differ only in case; rename one",)


def test_function_that_raises_is_a_fault_of_its_row(base_config):
    broken = Row("broken", "G", "", lambda base: {"model.d_ff": 1 // 0})
    (problem,) = problems_of(base_config, [broken])
    assert problem.startswith("row broken: its changes(base) raised ZeroDivisionError")


def test_functions_that_fail_name_the_line(base_config):
    broken = Row("broken", "G", "", lambda base: {"model.d_ff": 1 // 0})
    line = broken.changes.__code__.co_firstlineno
    (problem,) = problems_of(base_config, [broken])
    assert problem.endswith(f"{Path(__file__).name}, line {line})")


@pytest.mark.parametrize(
    ("paper", "fault"),
    [
        (lambda base: base.nothing, "its paper(base) raised AttributeError: "),
        (lambda: None, "its paper(base) raised TypeError: "),
        (lambda base: PaperResult(base.nothing), "its paper(base) raised AttributeE"),
        (lambda base: {"ppl": 4.9}, "its paper(base) is {'ppl': 4.9}; it must be a "),
        ({"ppl": 4.9}, "its paper is {'ppl': 4.9}; it must be a PaperResult or None"),
        (25.8, "its paper is 25.8; it must be a PaperResult or None"),
        (PaperResult(bleu="25.8"), "its paper has bleu '25.8'; it must be a number"),
        (PaperResult(math.nan), "its paper has ppl nan; it must be a number"),
    ],
)
def test_paper_that_is_none_is_a_fault_of_its_row(base_config, paper, fault):
    """With the file: that of the function, else the one that the row changes by."""
    wrong = Row("wrong", "G", "", lambda base: {"model.d_ff": 9}, paper)
    (problem,) = problems_of(base_config, [BASE, wrong])
    assert problem.startswith(f"row wrong: {fault}")
    assert f"{Path(__file__).name}, line " in problem


def test_all_papers_are_checked_at_once(base_config):
    wrong = [
        Row(f"wrong{n}", "G", "", lambda base, n=n: {"model.d_ff": n}, 4.9)
        for n in (7, 9)
    ]
    assert [p[:10] for p in problems_of(base_config, wrong)] == [
        "row wrong7", "row wrong9",
    ]  # fmt: skip


def test_base_row_may_not_differ_from_base(base_config):
    (problem,) = problems_of(base_config, [row("base", {"model.num_layers": 2})])
    assert problem.startswith("row base: changes model.num_layers")


def test_seed_is_not_a_rows_to_change(base_config):
    (problem,) = problems_of(base_config, [row("s", {"train.seed": 3})])
    assert problem.startswith("row s: train.seed: is not a row's to change")


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [(1, 3, 2), (2, 3, 4), (4, 3, 8), (2, 1, 12)],
)
def test_fraction_of_six_layers(base_config, numerator, denominator, expected):
    value = fraction(base_config, "model.num_layers", numerator, denominator)
    assert value == expected and type(value) is int


def test_fraction_that_is_not_whole_is_refused_with_the_remedy(base_config):
    base = replace(base_config, {"model.num_layers": 4})
    two_thirds = Row(
        "C_N4",
        "C",
        "",
        lambda b: {"model.num_layers": fraction(b, "model.num_layers", 2, 3)},
    )
    assert problems_of(base, [two_thirds]) == (
        "row C_N4: two thirds of model.num_layers = 4 is not a whole number; "
        "make it a multiple of 3, or leave the row out with --rows",
    )


def test_fraction_without_a_word_is_written_in_digits(base_config):
    with pytest.raises(ConfigError, match=r"^2/7 of model.d_ff = 2048 .* of 7, or"):
        fraction(base_config, "model.d_ff", 4, 14)


def test_select_keeps_the_order_of_the_rows():
    rows = [row(name, {}) for name in ("a", "b", "c")]
    assert [r.name for r in select(rows, ["c", "a"])] == ["a", "c"]
    assert [r.name for r in select(rows, None)] == ["a", "b", "c"]


def test_select_suggests_near_names():
    rows = [row(name, {}) for name in ("base", "A_h1", "A_h4", "big")]
    with pytest.raises(ConfigError) as caught:
        select(rows, ["A_h3", "zzz"])
    near, far = caught.value.problems
    assert near.startswith("unknown row 'A_h3'; did you mean A_h")
    assert far == "unknown row 'zzz'; the rows are: base, A_h1, A_h4, big"


def test_another_budget_needs_a_reason(tiny_config):
    """Base has 6 updates of 512 positions; half of them, each twice as large, is it."""
    equal = {"train.steps": 3, "data.tokens_per_batch": 1024}
    equal |= {"train.evaluate_every_steps": 3, "train.checkpoint_every_steps": 3}
    expand(tiny_config, [Row("same", "x", "x", lambda b: equal)])
    longer = Row("longer", "x", "x", lambda b: {"train.steps": 12})
    with pytest.raises(ConfigError) as error:
        expand(tiny_config, [longer])
    assert "row longer: trains on 6,144 target positions" in str(error.value)
    assert "base on 3,072; give all rows one budget" in str(error.value)
    expand(tiny_config, [dataclasses.replace(longer, budget_reason="as in the paper")])
