"""What may not stand in one table: refused, or shown with a mark on request."""

import json

import pytest

from tests.report import written_sweeps as written
from transformer_ablation.report.consistency import TableError
from transformer_ablation.report.render import render
from transformer_ablation.report.table import Options, build_table

MIXED = Options(mixed=True)


def finished(names=("base", "A_h1", "B_dk16")):
    rows = written.paper_rows(names)
    return rows, [written.scored(row, 5.0, 20.0 + i) for i, row in enumerate(rows)]


def change(record, path, value):
    """The record with one key, of a score or of its data, changed."""
    where, _, key = path.rpartition(".")
    if where == "score":
        scores = [
            {**s, key: value} if s["metric"] == "bleu" else s for s in record["scores"]
        ]
        return {**record, "scores": scores}
    return (
        {**record, where: {**record[where], key: value}}
        if where
        else {
            **record,
            key: value,
        }
    )


CHANGES = {
    "version": ("results_version", 2, "results_version"),
    "signature": ("score.signature", "nrefs:1|tok:none", "sacreBLEU signature"),
    "manifest": ("data.manifest_hash", "99", "data manifest hash"),
    "vocabulary": ("data.vocabulary_hash", "98", "vocabulary hash"),
    "sentences": ("score.sentences", 2737, "number of sentences"),
    "averaged": ("score.steps", [99_000, 100_000], "average of 2 checkpoints"),
    "updates": ("step", 90_000, "finished after 90000 of 100000 updates"),
    "tokens": ("tokens.target", 1000, "trained on 1,000 target tokens"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_mixture_is_shown_and_marked_when_the_user_insists(name):
    path, value, said = CHANGES[name]
    rows, records = finished()
    records[1] = change(records[1], path, value)
    with pytest.raises(TableError, match=said):
        build_table(written.sweep(rows), records)
    table = build_table(written.sweep(rows), records, options=MIXED)
    assert [bool(row.marks) for row in table.rows] == [False, True, False]
    for form in ("text", "markdown", "latex"):
        text = render(table, form)
        mark = r"A\_h1 \S{}" if form == "latex" else "A_h1 §"
        assert mark in text
    assert said in " ".join(render(table).split())
    assert "§ MIXED, shown because you insisted" in render(table)
    found = json.loads(render(table, "json"))["rows"]
    assert [len(row["marks"]) for row in found] == [0, 1, 0]
    assert said in found[1]["marks"][0]
    assert found[1]["bleu"] == 21.0


def test_rows_unlike_base_are_marked_also_where_they_are_the_most():
    rows, records = finished()
    records[1:] = [change(r, "score.signature", "other") for r in records[1:]]
    table = build_table(written.sweep(rows), records, options=MIXED)
    assert [bool(row.marks) for row in table.rows] == [False, True, True]


def test_test_sets_of_two_kinds_are_marked():
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row("other", {"data.test_split": "test_2017_flickr"}),
    ]
    table = build_table(written.sweep(rows), [], options=MIXED)
    assert [bool(row.marks) for row in table.rows] == [False, True]


def test_every_fault_is_told_at_once():
    rows, records = finished()
    records[1] = change(records[1], "score.signature", "other")
    records[2] = change(records[2], "step", 5)
    with pytest.raises(TableError) as error:
        build_table(written.sweep(rows), records)
    assert "signature" in str(error.value) and "5 of 100000" in str(error.value)


def test_more_updates_of_the_rows_own_are_no_mixture():
    """big trains three times as long; seeds see nearly the same tokens."""
    rows = written.paper_rows(("base", "big"))
    records = [
        change(written.scored(rows[0], 5.0, 20.0), "tokens.target", 1100),
        change(written.scored(rows[0], 5.0, 20.0, seed=1), "tokens.target", 1070),
        change(written.scored(rows[1], 4.5, 21.0), "tokens.target", 3300),
    ]
    table = build_table(written.sweep(rows, (0, 1)), records)
    assert table.rows[1].cells["steps"] == "300K" and not table.rows[1].marks


def test_nothing_is_marked_without_a_mixture():
    rows, records = finished()
    table = build_table(written.sweep(rows), records, options=MIXED)
    assert "§" not in render(table) and "MIXED" not in render(table)


def test_rows_that_mix_are_not_tested_nor_counted():
    """Holm's factor, the spread behind the power and tau are those of the others."""
    rows = written.paper_rows(("base", "A_h1", "A_h4", "B_dk16"))
    differences = {
        "base": (0.0, 0.0, 0.0),
        "A_h1": (-1.0, -1.1, -0.9),
        "A_h4": (-0.3, -0.1, -0.2),
        "B_dk16": (-9.0, 9.0, 2.0),
    }
    records = [
        written.scored(row, 5.0, 20.0 + d, seed)
        for row in rows
        for seed, d in enumerate(differences[row["name"]])
    ]
    alone = build_table(written.sweep(rows[:3], (0, 1, 2)), records[:9])
    records = [
        change(r, "score.signature", "other") if r["row"] == "B_dk16" else r
        for r in records
    ]
    table = build_table(written.sweep(rows, (0, 1, 2)), records, options=MIXED)
    assert [bool(row.tests.seeds) for row in table.rows] == [False, True, True, False]
    least = min(row.tests.seeds["bleu"].p for row in table.rows[1:3])
    assert min(row.tests.p for row in table.rows[1:3]) == 2 * least  # of two rows
    assert table.power == alone.power and table.agreement == alone.agreement
    text = " ".join(render(table).split())
    assert "§ Such rows are not tested" in text and "over 2 rows" in text


def test_nothing_is_compared_with_a_base_that_mixes():
    rows, records = finished()
    records[0] = change(records[0], "step", 90_000)
    table = build_table(written.sweep(rows), records, options=MIXED)
    assert [bool(row.marks) for row in table.rows] == [True, False, False]
    assert not any(row.tests.seeds for row in table.rows)
    assert table.agreement == {"bleu": None, "ppl": None} and table.power is None
    assert "§ Base is mixed: no row is tested" in " ".join(render(table).split())
