"""The report in a real browser: no error, sorting, rows switched, narrow screens."""

import pytest

from tests.report import browser
from tests.report import written_workdirs as places
from transformer_ablation.report.render import render
from transformer_ablation.report.render_html import read_details
from transformer_ablation.report.table import Options, read_table

if browser.found() is None:
    pytest.skip(
        f"no browser: none of {', '.join(browser.NAMES)} is installed",
        allow_module_level=True,
    )

NAMES = "[...document.querySelectorAll('#results tbody th')].map(e => e.textContent)"
ROWS = ["base", "A_h1", "A_h4", "C_N2", "D_drop0.0", "E_learned_pos"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = places.table3(tmp_path_factory.mktemp("work"))
    table = read_table(folder, Options(sentences=None))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(table, "html", read_details(folder, table)), "utf-8")
    return path


@pytest.fixture
def page(chromium, report):
    with chromium.without_faults(report, 1200) as shown:
        yield shown


def heading(page, text):
    """A selector of the button of the heading with this text."""
    place = page.value(
        "[...document.querySelectorAll('#results thead th')]"
        f".findIndex(e => e.innerText.replace(/\\s+/g, ' ').trim() === '{text}')"
    )
    assert place >= 0, text
    return f"#results thead th:nth-child({place + 1}) button"


def test_table_sorts_by_click_and_by_key(page):
    assert page.value(NAMES) == ROWS
    page.click(heading(page, "BLEU dev"))
    # 25 - i/3 of the i-th row; rows without a score stay last, in their order.
    assert page.value(NAMES) == ["A_h4", "A_h1", "base", *ROWS[3:]]
    sort = "document.activeElement.closest('th').getAttribute('aria-sort')"
    assert page.value(sort) == "ascending"
    page.press("Enter")
    assert page.value(NAMES) == ROWS and page.value(sort) == "descending"
    page.press(" ")
    assert page.value(sort) is None
    page.click(heading(page, "h"))
    # 1, 4, then base's 8, of every row where the cell is blank.
    assert page.value(NAMES) == ["A_h1", "A_h4", "base", *ROWS[3:]]


def test_rows_of_the_curves_are_switched_by_click_and_by_key(page):
    lines = "document.querySelectorAll('#curves-figure g[data-row=\"A_h1\"]').length"
    assert page.value(lines) == 6  # two seeds in each of three figures
    page.click('#curves-figure input[data-row="A_h1"]')
    assert page.value(lines) == 0
    page.press(" ")
    assert page.value(lines) == 6
    paths = "document.querySelector('#curves-figure g[data-row=\"A_h1\"] path')"
    straight = page.value(f"{paths}.getAttribute('d')")
    page.click("#curves-figure .controls input")
    assert page.value(f"{paths}.getAttribute('d')") != straight


def test_row_opens_by_its_link(page):
    opened = "document.getElementById('row-A_h1').open"
    assert page.value(opened) is False
    page.click('#results a[href="#row-A_h1"]')
    assert page.value(f"new Promise(r => setTimeout(() => r({opened}), 100))") is True


def test_theme_follows_the_system_and_the_switch(chromium, report):
    shade = "getComputedStyle(document.body).backgroundColor"
    chromium.faults.clear()
    chromium.open(report, 800)
    light = chromium.value(shade)
    chromium.open(report, 800, dark=True)
    dark = chromium.value(shade)
    assert light != dark
    chromium.click("#theme")
    assert (
        chromium.value("document.getElementById('theme').textContent") == "Theme: light"
    )
    assert chromium.value(shade) == light
    chromium.value("localStorage.clear()")
    assert chromium.faults == []


@pytest.mark.parametrize("width", [360, 768, 1600])
def test_page_never_scrolls_sideways(chromium, report, width):
    chromium.faults.clear()
    chromium.open(report, width)
    wide = "document.documentElement.scrollWidth"
    assert chromium.value(wide) <= width
    chromium.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert chromium.value(wide) <= width
    figures = chromium.value("document.querySelectorAll('svg.chart').length")
    # Curves of three quantities; group A, the only one with scores, and agreement of
    # two; cost.
    assert figures == 3 + 2 + 2 + 1
    assert chromium.faults == []


def test_agreement_is_titled_as_in_the_figures_for_papers(page):
    titles = (
        "[...document.querySelectorAll('#agreement-figure h3')].map(e => e.textContent)"
    )
    # 25 - i/3 of two rows, the paper's -0.9 and -0.3: in the other order. The PPL grows
    # by i/7, the paper's by 0.37 and 0.08.
    tau = "2 rows: Kendall's tau-b -1.00"
    assert page.value(titles) == [f"ΔBLEU, {tau}", f"ΔPPL, {tau}"]


def test_data_is_text_in_every_part(page):
    assert page.value("document.querySelectorAll('main b').length") == 0
    page.value("document.getElementById('sentence').selectedIndex = 1")
    page.value("document.getElementById('sentence').dispatchEvent(new Event('change'))")
    source = "document.querySelector('#samples-figure td').textContent"
    assert page.value(source) == places.ODD
