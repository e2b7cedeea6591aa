"""The page of attention: what it holds, and what Chromium makes of it."""

import base64
import json
import re

import numpy as np
import pytest

from tests.report import browser
from transformer_ablation.report import attention_page
from transformer_ablation.report.piece_labels import labels

SOURCE = labels(["▁the", "▁do", "gs", "▁<b>&", "▁שלום", "</s>"])
TARGET = ["▁die", "▁hun", "de", "</s>"]
READ, WRITTEN = labels(["<s>", *TARGET[:-1]]), labels(TARGET)
LAYERS, HEADS = 2, 7


def weights():
    """Random, but head 2 of layer 1 of the encoder, which looks at the next word."""
    random = np.random.default_rng(4)
    found = {}
    for kind, (rows, columns) in {
        "encoder": (6, 6), "decoder": (4, 4), "cross": (4, 6)
    }.items():  # fmt: skip
        x = random.random((LAYERS, HEADS, rows, columns))
        x = np.tril(x) if kind == "decoder" else x
        found[kind] = np.float32(x / x.sum(axis=-1, keepdims=True))
    found["encoder"][0, 1] = np.roll(np.eye(6), 1, axis=1)
    return found


def pair(heading="sentence 1"):
    note = "the target is the run's own"
    return attention_page.Pair(heading, note, SOURCE, READ, WRITTEN, weights())


def page_of(*pairs):
    return attention_page.as_html("Attention", ["runs/<base>, update 5."], pairs)


def test_page_holds_the_weights_to_a_65535th_and_zero_only_where_it_is_zero():
    html = page_of(pair())
    (text,) = re.findall(r'id="attention-data">(.*?)</script>', html)
    (data,) = json.loads(text)
    given = weights()
    for kind, packed in data["weights"].items():
        found = np.frombuffer(base64.b64decode(packed), "<u2") / 65535
        expected = given[kind].ravel()
        np.testing.assert_allclose(found, expected, atol=1 / 65535)
        assert ((found == 0) == (expected == 0)).all()
    assert data["layers"] == dict.fromkeys(("encoder", "decoder", "cross"), LAYERS)
    assert data["heads"] == HEADS
    assert data["source"]["words"] == ["the", "dogs", "<b>&", "שלום", "</s>"]
    # No markup of the data is markup of the page, and nothing is fetched.
    assert "<b>" not in html and "runs/&lt;base&gt;" in html
    assert "default-src 'none'" in html and "http" not in re.sub(
        r"http://www\.w3\.org/2000/svg|http-equiv", "", html
    )


def test_tiny_weight_is_not_hidden():
    tiny = np.full((1, 1, 1, 2), 1e-9, np.float32)
    tiny[..., 1] = 1
    found = attention_page._packed(tiny)
    assert np.frombuffer(base64.b64decode(found), "<u2").tolist() == [1, 65535]


needs_browser = pytest.mark.skipif(
    browser.found() is None, reason=f"none of {', '.join(browser.NAMES)} is installed"
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "attention.html"
    path.write_text(page_of(pair(), pair("sentence 2")), "utf-8")
    return path


@pytest.fixture
def page(chromium, file):
    with chromium.without_faults(file, 1000) as shown:
        yield shown


def choose(page, name, value):
    page.value(
        f"(() => {{ const e = document.getElementById('attention-{name}');"
        f"e.value = '{value}'; e.dispatchEvent(new Event('change')); }})()"
    )


def only_head(page, number):
    page.value(
        "[...document.querySelectorAll('.head-buttons button')]"
        ".find(b => b.textContent === 'None').click()"
    )
    page.click(f"input[data-head='{number - 1}']")


def lines(page):
    """Query and key of each line, from where it begins and ends."""
    found = page.value(
        "[...document.querySelectorAll('.joins line')].map("
        "e => ['y1', 'y2'].map(n => Math.floor(Number(e.getAttribute(n)) / 28)))"
    )
    return sorted(map(tuple, found))


def table(page):
    return page.value(
        "[...document.querySelectorAll('.attention-numbers tbody tr')]"
        ".map(r => [...r.cells].map(c => c.textContent))"
    )


NEXT = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]


@needs_browser
def test_lines_join_each_word_with_what_it_attends_to(page):
    only_head(page, 2)
    assert lines(page) == NEXT
    widths = "[...document.querySelectorAll('.joins line')].map(e => e.style.length)"
    assert page.value(widths) == [0] * 6
    choose(page, "kind", "decoder")
    assert all(key <= query for query, key in lines(page))


@needs_browser
def test_chosen_word_shows_its_lines_alone_and_its_weights(page):
    only_head(page, 2)
    page.click(".queries li:nth-child(3) button")
    assert lines(page) == [(2, 3)]
    words = [*"the do ·gs <b>& שלום </s>".split()]
    assert table(page) == [
        [word, "1.000" if i == 3 else "0"] for i, word in enumerate(words)
    ]
    # It stays while the layer changes, until it is pressed again.
    choose(page, "layer", 1)
    assert {query for query, _ in lines(page)} == {2} and len(table(page)) == 6
    numbers = [float(cell) for _, cell in table(page)]
    expected = weights()["encoder"][1, 1, 2]
    np.testing.assert_allclose(numbers, expected, atol=6e-4)
    choose(page, "layer", 0)
    page.click(".queries li:nth-child(3) button")
    page.value("document.activeElement.blur()")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert lines(page) == NEXT and table(page) == []


@needs_browser
def test_keys_move_from_word_to_word(page):
    only_head(page, 2)
    page.value("document.querySelector('.queries button').focus()")
    assert lines(page) == [(0, 1)]
    here = "document.activeElement.textContent"
    for key, text, shown in (
        ("ArrowDown", "do", [(1, 2)]),
        ("End", "</s>", [(5, 0)]),
        ("ArrowRight", "</s>", [(4, 5)]),
        ("Home", "the", [(5, 0)]),
    ):
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        assert page.value(here) == text and lines(page) == shown
    page.press(" ")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    assert lines(page) == NEXT


@needs_browser
def test_words_have_the_sums_and_means_of_their_pieces(page):
    choose(page, "kind", "cross")
    choose(page, "unit", "words")
    only_head(page, 3)
    page.click(".queries li:nth-child(3) button")  # "hunde" as read: pieces 2 and 3
    of_pieces = weights()["cross"][0, 2, 2:4]
    expected = np.add.reduceat(of_pieces, [0, 1, 3, 4, 5], axis=1).mean(axis=0)
    assert [word for word, _ in table(page)] == SOURCE.words
    numbers = [float(cell) for _, cell in table(page)]
    np.testing.assert_allclose(numbers, expected, atol=6e-4)


@needs_browser
def test_maps_have_a_figure_a_head_and_name_what_is_pointed_at(page):
    choose(page, "view", "maps")
    assert page.value("document.querySelectorAll('.map').length") == HEADS
    only_head(page, 2)
    x, y = page.value(
        "(() => { const frame = document.querySelector('.map .frame');"
        "const b = frame.getBoundingClientRect();"
        "return [b.x + b.width * 1.5 / 6, b.y + b.height * 0.5 / 6]; })()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    told = page.value("document.querySelector('.attention-numbers').textContent")
    assert told == "Head 2: “the” to “do”: 1.000"


@needs_browser
@pytest.mark.parametrize("width", [360, 1600])
def test_page_never_scrolls_sideways(chromium, file, width):
    chromium.faults.clear()
    for view in ("lines", "maps"):
        chromium.open(file, width)
        choose(chromium, "view", view)
        assert chromium.value("document.documentElement.scrollWidth") <= width
    assert chromium.faults == []


@needs_browser
def test_printed_page_has_its_words(page):
    page.call("Emulation.setEmulatedMedia", media="print")
    style = "getComputedStyle(document.querySelector('{}')).display"
    shown = [page.value(style.format(e)) for e in (".word", ".head-buttons button")]
    page.call("Emulation.setEmulatedMedia", media="")
    assert shown == ["flex", "none"]
