"""The page of a comparison in a real browser: filters, order, narrow screens."""

import pathlib

import pytest

from tests.report import browser
from tests.report.comparison.written_runs import compared, write_workdir
from transformer_ablation.report.comparison.page import as_html

if browser.found() is None:
    pytest.skip(
        f"no browser: none of {', '.join(browser.NAMES)} is installed",
        allow_module_level=True,
    )

LINES = "[...document.querySelectorAll('.sentence h3')].map(e => e.textContent)"
CHOOSE = """(() => {
  const field = document.querySelectorAll('#sentence-controls select, input')[%d];
  field.value = %r;
  field.dispatchEvent(new Event(%r));
})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    made = compared(write_workdir(tmp_path_factory.mktemp("work")))
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    path.write_text(as_html(made, None), "utf-8")
    with browser.Browser(tmp_path_factory.mktemp("profile")) as started:
        started.open(path, 360)
        yield started
        started.value("1")
        assert started.faults == []


def chosen(page, field, value, event="change"):
    page.value(CHOOSE % (field, value, event))
    return page.value(LINES)


def test_sentences_are_filtered_and_sorted(page):
    lengths = ("4 words", "2 words", "1 word", "7 words")
    lines = [f"Line {n}, {length}" for n, length in enumerate(lengths, 1)]
    assert page.value(LINES)[0] == lines[0]  # the largest difference
    assert chosen(page, 2, "4") == lines  # by line
    assert chosen(page, 0, "1") == lines[:1]  # base better
    assert chosen(page, 0, "2") == lines[1:2]
    assert chosen(page, 0, "3") == lines[2:]
    assert chosen(page, 1, "1") == lines[2:3]  # and of 0-2 words
    assert chosen(page, 0, "0") == lines[1:3]
    assert chosen(page, 1, "0") == lines
    assert chosen(page, 3, "SAW", "input") == lines[3:]
    assert page.value("document.getElementById('sentence-count').textContent") == (
        "1 sentence, 1 shown"
    )
    assert chosen(page, 3, "", "input") == lines


def test_words_of_one_side_alone_are_marked_not_by_colour_alone(page):
    chosen(page, 0, "2")
    marks = "[...document.querySelectorAll('.sentence %s')].map(e => e.textContent)"
    assert page.value(marks % "del") == ["⟦cat⟧"]
    assert page.value(marks % "ins") == ["⟦dog⟧"]
    chosen(page, 0, "0")


@pytest.mark.parametrize(("width", "dark"), [(360, False), (360, True), (1400, False)])
def test_page_is_never_wider_than_the_screen(page, width, dark):
    page.open(pathlib.Path(page.value("location.pathname")), width, dark)
    wide = "document.documentElement.scrollWidth"
    assert page.value(wide) <= width


def test_ngrams_sort_by_key(page):
    heading = "#ngrams table thead th:nth-child(1) button"
    page.value(f"document.querySelector('{heading}').focus()")
    page.press("Enter")
    first = "document.querySelector('#ngrams table tbody th').textContent"
    assert page.value(first) == "cat sat"
