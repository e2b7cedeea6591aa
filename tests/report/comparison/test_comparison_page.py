"""The page of a comparison: all of its text escaped, its data whole, nothing loaded."""

import json
import re

import pytest

from tests.report import written_sweeps as written
from tests.report.comparison.written_runs import (
    BASE,
    OPTIONS,
    OTHER,
    REFERENCES,
    SOURCES,
    compared,
    write_run,
    write_workdir,
)
from tests.report.test_page import ODD, Parsed
from transformer_ablation.report.comparison.compare import compare
from transformer_ablation.report.comparison.page import as_html
from transformer_ablation.report.comparison.runs import find_runs
from transformer_ablation.report.record import run_directory

# No file can hold the two halves of a surrogate, nor a folder a slash or a zero.
TEXT = ODD.replace("\ud800", "")
NAME = "<i>&\"'|_% \u0645\u062a\u0646"


def rows_of(page, section):
    """Cells of the tables' bodies below a heading, as text."""
    body = re.search(rf'<section id="{section}".*?</section>', page, re.DOTALL)[0]
    return [
        [Parsed(cell).elements[0][2] for cell in re.findall("<t[hd].*?</t[hd]>", row)]
        for row in re.findall("<tr>(.*?)</tr>", body, re.DOTALL)
    ]


@pytest.fixture
def workdir(tmp_path):
    return write_workdir(tmp_path / "w")


def test_tables_have_the_counts_made_by_hand(workdir):
    page = as_html(compared(workdir), None)
    assert rows_of(page, "wins")[1][:6] == ["seed 0", "1", "2", "1", "2", "1"]
    words = [row[:5] for row in rows_of(page, "words")[1:]]
    assert words == [
        ["0", "0", "–", "–", "–"],
        ["1", "7", "93.33", "76.92", "−16.41"],
        ["2-4", "4", "75.00", "85.71", "+10.71"],
        ["5+", "5", "88.89", "80.00", "−8.89"],
    ]
    assert rows_of(page, "lengths")[4][:2] == ["90+", "0"]
    assert ["a dog barks", "0.667", "0", "1", "1"] in rows_of(page, "ngrams")
    assert f'data-value="{100 * 8 / 9!r}"' in page


def test_data_is_every_sentence_with_its_parts(workdir):
    (found,) = Parsed(as_html(compared(workdir), None)).of("script", id="sentence-data")
    data = json.loads(found[1])
    lines = sorted(data["sentences"], key=lambda s: s["line"])
    assert [s["source"] for s in lines] == SOURCES
    assert [s["reference"] for s in lines] == REFERENCES
    for side, expected in enumerate((BASE, OTHER)):
        assert ["".join(s["hypotheses"][side]) for s in lines] == expected
    assert lines[1]["hypotheses"] == [["a ", "cat ", "barks"], ["a ", "dog ", "barks"]]
    assert [s["better"] for s in lines] == [0, 1, 2, 2]
    assert [s["bucket"] for s in lines] == [1, 0, 0, 2]
    assert data["buckets"] == ["0-2", "3-4", "5-89", "90+"]


def test_fewer_sentences_are_said_to_be(workdir):
    page = as_html(compared(workdir), 1)
    (found,) = Parsed(page).of("script", id="sentence-data")
    assert [s["line"] for s in json.loads(found[1])["sentences"]] == [1, 2, 3]
    assert "3 of 4: up to 1 of each outcome" in page


def test_all_text_is_escaped_and_nothing_is_loaded(tmp_path):
    row = written.sweep_row(NAME, {}, "A")
    lines = [TEXT, "</script><script>alert(1)</script>", "‮right", "x"]
    plain = [line.replace("\n", " ") for line in lines]
    folders = []
    for name, hypotheses in (("a", plain), ("b", ["y", *plain[1:]])):
        workdir = tmp_path / name
        write_run(workdir, row, hypotheses, references=plain, sources=plain)
        folders.append(run_directory(workdir, NAME, 0))
    made = compare(
        find_runs(folders, "validation"), OPTIONS, lambda tokens, signature: TEXT
    )
    page = as_html(made, None)
    parsed = Parsed(page)
    assert parsed.wrong == [] and parsed.open == []
    assert parsed.of("i") == [] and parsed.of("b") == []
    scripts = [a for a, _ in parsed.of("script") if a.get("type") != "application/json"]
    assert scripts == [{}, {}, {}]  # page, sort, comparison
    assert "alert(1)</script>" not in page
    attributes = [attributes for _, attributes, _ in parsed.elements]
    assert all(a.get("href", "#").startswith("#") for a in attributes)
    assert not any("src" in a for a in attributes)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)
    (found,) = parsed.of("script", id="sentence-data")
    sources = {s["source"] for s in json.loads(found[1])["sentences"]}
    assert sources == set(plain)
