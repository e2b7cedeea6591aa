"""A table of heads in each format, from values written here."""

import csv
import io
import json
import re

import pytest

from tests.report import browser
from transformer_ablation.report.head_quantities import HeadRow, HeadTable, known
from transformer_ablation.report.head_table import render

VALUES = [
    {"entropy": 1.23456, "next": 0.5, "ppl_lost": -0.0004},
    {"entropy": 10.0, "next": 0.25, "ppl_lost": 2.0},
    {"entropy": 0.0, "ppl_lost": None},
]
ROWS = [
    HeadRow("a<b>", "encoder", 1, 1, VALUES[0]),
    HeadRow("a<b>", "encoder", 1, 2, VALUES[1]),
    HeadRow("a<b>", "decoder", 1, 1, VALUES[2]),
]
TABLE = HeadTable(
    ["entropy", "next", "ppl_lost"], ROWS, {"a<b>": {"updates": [3, 4], "ppl": 5.25}}
)


def test_text_is_rounded_and_blank_where_there_is_nothing():
    lines = render(TABLE, "text").splitlines()
    rule = "-" * (7 + 5 + 4 + 7 + 4 + 6 + 2 * 5)  # widths of the columns, and gaps
    assert lines[:7] == [
        "                      entropy    on     PPL",
        "kind     layer  head     nats  next    lost",
        rule,
        "encoder      1     1     1.23  0.50  -0.000",
        "encoder      1     2    10.00  0.25  +2.000",
        rule,
        "decoder      1     1     0.00",
    ]
    assert "a<b>: updates 3 4, ppl 5.25" in lines
    assert any(line.startswith("on next: weight on the key after") for line in lines)
    assert max(map(len, lines)) <= 88


def test_two_runs_have_a_column_of_their_names():
    rows = [ROWS[0], ROWS[0]._replace(run="other")]
    text = render(TABLE._replace(rows=rows, runs={"a<b>": {}, "other": {}}), "text")
    assert [line.split()[:2] for line in text.splitlines()[3:6]] == [
        ["a<b>", "encoder"],
        ["-" * (43 + 5 + 2)],
        ["other", "encoder"],
    ]


def test_heads_are_counted_by_the_place_of_half_their_weight():
    """Of a query there may be two such places; a share of exactly half is enough."""
    shares = [
        {"diagonal": 0.5, "first": 0.2, "entropy_share": 0.5, "distance": 3.0},
        {"diagonal": 0.6, "first": 0.7, "entropy_share": 0.25, "distance": 1.0},
        {"diagonal": 0.49, "last": 0.51, "entropy_share": None, "distance": 0.5},
        {"previous": 0.4, "next": 0.4, "entropy_share": 0.0, "distance": 0.5},
    ]
    rows = [HeadRow("r", "cross", 1, i, values) for i, values in enumerate(shares)]
    heads = HeadTable(["entropy_share", "distance", "diagonal"], rows, {"r": {}})
    text = render(heads, "text")
    block = text[text.index("Means, and heads") :].splitlines()[1:3]
    columns = block[0].split()
    assert columns[-6:] == [*"diagonal previous next first last elsewhere".split()]
    # Means of 0.5, 0.25, 0 and of 3, 1, 0.5, 0.5.
    assert block[1].split() == ["cross", "4", "0.25", "1.25", *"100111"]
    (found,) = json.loads(render(heads, "json"))["overview"]
    assert list(found["places"].values()) == [1, 0, 0, 1, 1, 1]
    assert found["heads"] == 4 and found["entropy_share"] == 0.25
    rows = [HeadRow("r", "decoder", 1, 1, {"diagonal": 0.9, "next": None})]
    (found,) = json.loads(render(heads._replace(rows=rows), "json"))["overview"]
    assert found["places"] == {"diagonal": 1, "elsewhere": 0}
    assert "<p>Means, and heads with" in render(heads, "html")
    assert "Means, and heads" not in render(TABLE, "text")


def test_csv_and_json_have_every_digit():
    rows = list(csv.DictReader(io.StringIO(render(TABLE, "csv"))))
    assert [row["entropy"] for row in rows] == ["1.23456", "10.0", "0.0"]
    assert rows[2]["next"] == rows[2]["ppl_lost"] == ""
    made = json.loads(render(TABLE, "json"))
    assert made["rows"][0]["ppl_lost"] == -0.0004 and made["rows"][2]["next"] is None
    assert made["runs"] == {"a<b>": {"updates": [3, 4], "ppl": 5.25}}
    assert known(float("nan")) is None and known(0.5) == 0.5


def test_page_escapes_names_and_keeps_unrounded_values_to_sort_by():
    html = render(TABLE._replace(runs={"a<b>": {}, "other": {}}), "html")
    assert "a&lt;b&gt;" in html and "<b>" not in html
    values = re.findall(r'data-value="([^"]*)">(?:1\.23|0\.50|−0\.000)<', html)
    assert values == ["1.23456", "0.5", "-0.0004"]


@pytest.mark.skipif(
    browser.found() is None, reason=f"none of {', '.join(browser.NAMES)} is installed"
)
def test_page_sorts_by_a_column(tmp_path):
    path = tmp_path / "heads.html"
    path.write_text(render(TABLE, "html"), "utf-8")
    with browser.Browser(tmp_path / "profile") as page:
        page.open(path, 360)
        page.click("thead th:nth-child(4) button")
        column = "[...document.querySelectorAll('tbody td:nth-child(4)')]"
        found = page.value(f"{column}.map(e => e.textContent)")
        assert found == ["0.00", "1.23", "10.00"]
        assert page.value("document.documentElement.scrollWidth") <= 360
        assert page.faults == []
