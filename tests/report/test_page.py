"""The document of a page: what is escaped, that it loads nothing, that it is whole."""

import base64
import fnmatch
import hashlib
import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from transformer_ablation.report.page.document import (
    Section,
    document,
    escape,
    script_json,
)

ODD = "<b>&\"'|_% </script><!-- \u2028\u2029 \u0645\u062a\u0646 \x00\x1b\x85\x7f \ud800"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Parsed(HTMLParser):
    """Elements with their attributes and text, and whether all are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.wrong = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])
        if tag not in VOID:
            self.open.append(len(self.elements) - 1)

    def handle_endtag(self, tag):
        if not self.open or self.elements[self.open.pop()][0] != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        for index in self.open:
            self.elements[index][2] += data

    def of(self, tag, **attributes):
        wanted = attributes.items()
        return [
            (a, text)
            for t, a, text in self.elements
            if t == tag and all(a.get(k) == v for k, v in wanted)
        ]


def test_data_comes_back_from_markup_as_it_was():
    page = Parsed(document(ODD, [Section("a", ODD, f'<p title="{escape(ODD)}"></p>')]))
    shown = ODD.replace("\x00", "\u2400").replace("\x1b", "\u241b")
    shown = re.sub("[\x7f-\x9f\ud800]", "\ufffd", shown)
    assert page.of("h1")[0][1] == page.of("title")[0][1] == shown
    assert [a for a, _ in page.of("p") if "title" in a] == [{"title": shown}]
    assert page.wrong == [] and page.open == [] and page.of("b") == []


def test_data_comes_back_from_a_script_as_it_was():
    value = {ODD: [1 / 3, None, ODD]}
    text = document("t", [], {"rows": value})
    ((_, held),) = Parsed(text).of("script", id="rows")
    assert json.loads(held) == value
    assert not re.search("[<>&\u2028\u2029\ud800]", script_json(value))
    text.encode("utf-8")
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))


def test_policy_allows_its_own_scripts_and_nothing_from_elsewhere():
    text = document("t", [], {}, scripts=["sort.js"])
    page = Parsed(text)
    (policy,) = [a["content"] for a, _ in page.of("meta") if "http-equiv" in a]
    codes = [code for a, code in page.of("script") if "type" not in a]
    assert len(codes) == 2
    hashes = [hashlib.sha256(code.encode()).digest() for code in codes]
    named = " ".join(f"'sha256-{base64.b64encode(h).decode()}'" for h in hashes)
    assert policy.split("; ") == [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        f"script-src {named}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert not {"src", "href"} & {
        k for t in ("script", "img") for a, _ in page.of(t) for k in a
    }
    assert page.of("link") == [] and "@import" not in text and "url(" not in text


def test_sections_are_linked_and_named():
    page = Parsed(document("t", [Section("cost", "Cost", "x")], scripts=["sort.js"]))
    assert page.of("a", href="#cost") == [({"href": "#cost"}, "Cost")]
    ((attributes, _),) = page.of("section")
    assert page.of("h2", id=attributes["aria-labelledby"])[0][1] == "Cost"


def test_installed_package_has_every_file_of_the_page():
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    package = "transformer_ablation.report.page"
    patterns = settings["tool"]["setuptools"]["package-data"][package]
    files = [p.name for p in (root / "src" / Path(*package.split("."))).glob("*.?*s")]
    assert {"page.css", "page.js"} <= set(files)
    assert [f for f in files if not any(fnmatch.fnmatch(f, p) for p in patterns)] == []


def test_marks_of_direction_turn_nothing_behind_the_data():
    assert escape("a\u202eb\u2067c") == "abc"
