"""The report of a corpus: every kind counted by hand, its first line and excerpt."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ablation.data import checks, lines
from transformer_ablation.data.checks import Examination, overlaps
from transformer_ablation.data.languages import Typical, learn
from transformer_ablation.data.parallel_text import read_pairs

CLEAN = "A dog runs."
# A line, and all kinds that it is of.
LINES = [
    ("tab\there is text", set()),
    ("", {"empty"}),
    ("\t", {"blank"}),
    (" ", {"blank", "leading_space", "trailing_space"}),
    ("\u2028", {"blank", "line_separator"}),
    (" ".join(["w"] * 100), set()),
    (" ".join(["w"] * 101), {"long"}),
    ("nul \0", {"control"}),
    ("\x1b[1m", {"control"}),
    ("a\x7fb", {"control"}),
    ("a\x9fb", {"control"}),
    ("form\x0cfeed", {"control"}),
    ("lo\ufffdst", {"replacement"}),
    ("A dog.\r", {"carriage_return"}),
    ("a\x85b", {"next_line"}),
    ("a\u2028b", {"line_separator"}),
    ("a\u2029b", {"paragraph_separator"}),
    ("caf\u00e9", set()),
    ("cafe\u0301", {"not_nfc"}),
    ("\ufeffa", {"byte_order_mark"}),
    ("a\ufeff b", {"byte_order_mark"}),
    ("\u0301 has nothing before it", set()),
    ("5 \u212b", {"not_nfc"}),  # the Angstrom sign; NFC has the letter
    ("\u0915\u093c", set()),  # composition of these two is excluded
    ("\u0958", {"not_nfc"}),  # and this is what it would be
    ("R &amp; D", {"character_reference"}),
    ("it&#39;s", {"character_reference"}),
    ("it&#x27;s", {"character_reference"}),
    ("&quot;a&quot;", {"character_reference"}),
    ("R&D; and Q&A", set()),
    ("f(a&bcd;e) &nosuchname;", set()),
    ("<b>bold", {"tag"}),
    ("end</seg>", {"tag"}),
    ("line<br/>", {"tag"}),
    ('<a href="x">', {"tag"}),
    ("1 < 2 and 4 > 3, <3, x <- y, <>", set()),
    (" lead", {"leading_space"}),
    ("trail ", {"trailing_space"}),
    ("two  spaces", {"double_space"}),
    ("\u00a0no-break\u00a0\u00a0spaces\u00a0", set()),
]


ANY = st.characters(codec="utf-8", exclude_characters="\n")
ODD = st.sampled_from(" e\u0301\u0300\r\x85\u2028\0\ufffd<b>&lt;")


def examine(pairs, typical=None, chunk=2, languages=("de", "en")):
    """Facts and hashes of pairs that arrive in small chunks."""
    examination = Examination(languages, typical)
    for start in range(0, len(pairs), chunk):
        examination.add(pairs[start : start + chunk])
    return examination.facts(lambda indices: [pairs[i] for i in indices])


def found(count, line=None, excerpt=None):
    return {"count": count, "line": line, "excerpt": excerpt}


@pytest.mark.parametrize(("line", "kinds"), LINES)
@pytest.mark.parametrize("language", ["de", "en"])
def test_line_is_counted_under_its_kinds_and_no_other(line, kinds, language):
    texts = [CLEAN, f"{CLEAN} 2", f"{CLEAN} 3", line, f"{CLEAN} 5", line]
    others = [f"Satz {i}" for i in range(6)]
    sides = (texts, others) if language == "de" else (others, texts)
    facts, _ = examine(list(zip(*sides, strict=True)))
    findings = facts["checks"][language]
    assert set(findings) == set(checks.LINE_KINDS)
    # Line 6 has line 4's text beside another: of an empty line that says nothing.
    counted = {kind for kind, finding in findings.items() if finding["count"]}
    assert counted - {"other_translation"} == kinds
    for kind in kinds:
        assert (findings[kind]["count"], findings[kind]["line"]) == (2, 4)
        assert findings[kind]["excerpt"] == lines.excerpt(line)
    other = facts["checks"]["en" if language == "de" else "de"]
    assert not any(finding["count"] for finding in other.values())


def test_nothing_found_is_zero_and_not_judged_is_none():
    facts, _ = examine([("Ein Hund.", "A dog.")])
    for language in ("de", "en"):
        findings = dict(facts["checks"][language])
        assert findings.pop("other_language") == found(None)
        assert all(finding == found(0) for finding in findings.values())
    assert set(facts["checks"]["pair"]) == set(checks.PAIR_KINDS)
    assert all(finding == found(0) for finding in facts["checks"]["pair"].values())


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [
        ("short", 0, "short"),
        ("x" * 60, 20, "x" * 60),
        ("x" * 61, 0, "x" * 60 + "…"),
        # From 20 characters before the place: 80 of them, 60 shown, 1 more.
        ("a" * 80 + "b" + "c" * 40, 80, "…" + "a" * 20 + "b" + "c" * 39 + "…"),
        ("a" * 100 + "b", 100, "…" + "a" * 20 + "b"),
    ],
)
def test_excerpt_shows_the_place(line, place, expected):
    assert lines.excerpt(line, place) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("control", "\x07"),
        ("replacement", "\ufffd"),
        ("line_separator", "\u2028"),
        ("not_nfc", "e\u0301"),
        ("character_reference", "&lt;"),
        ("tag", "<i>"),
        ("trailing_space", " "),
        ("double_space", "  "),
    ],
)
def test_excerpt_of_a_long_line_holds_what_was_found(kind, text):
    line = "v" * 200 + text
    facts, _ = examine([("x", "y"), ("z", line)])
    expected = "…" + "v" * 20 + text
    assert facts["checks"]["en"][kind] == found(1, 2, expected)


PAIRS = [
    ("Hund", "dog"),  # 1
    ("Köter", "dog"),  # 2: dog stood in 1
    ("Hund", "dog"),  # 3: equals 1
    ("Hund", "hound"),  # 4: Hund stood in 1
    ("", ""),  # 5
    ("", ""),  # 6: empty sides are not compared
    ("Hund", ""),  # 7
    ("Radio", "Radio"),  # 8: a copy
    ("Hund", "hound"),  # 9: equals 4
    ("Köter", "hound"),  # 10: Köter stood in 2, hound in 4
]


@pytest.mark.parametrize("chunk", [1, 3, 10])
def test_repeated_pairs_and_lines_by_hand(chunk):
    facts, _ = examine(PAIRS, chunk=chunk)
    pair = facts["checks"]["pair"]
    assert pair["duplicate"] == found(2, 3, {"de": "Hund", "en": "dog"})
    assert pair["copy"] == found(1, 8, {"de": "Radio", "en": "Radio"})
    by_language = {x: facts["checks"][x]["other_translation"] for x in ("de", "en")}
    assert by_language["de"] == found(2, 4, "Hund")
    assert by_language["en"] == found(2, 2, "dog")
    assert facts["pairs"] == 10
    assert facts["checks"]["en"]["empty"] == found(3, 5, "")


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        (30, 10, 0),  # three times is not more
        (31, 10, 1),
        (10, 31, 1),
        (9, 1, 0),  # of fewer than ten words nothing is said
        (10, 3, 1),
        (10, 0, 0),  # empty, and counted as that
    ],
)
def test_pairs_out_of_proportion_by_hand(first, second, counts):
    facts, _ = examine([(" ".join("w" * first), " ".join("v" * second))])
    assert facts["checks"]["pair"]["length_ratio"]["count"] == counts


def test_white_space_beside_a_long_line_is_out_of_proportion():
    facts, _ = examine([("w " * 10, "\t")])
    assert facts["checks"]["pair"]["length_ratio"]["count"] == 1


def test_language_mix_ups_are_judged_by_what_is_typical():
    typical = Typical(
        "words", (frozenset("der die und".split()), frozenset("the of".split()))
    )
    pairs = [
        ("Der Hund und die Katze", "The cat of the dog"),
        ("The dog", "Der die und"),
        ("der", "x"),
    ]
    facts, _ = examine(pairs, typical)
    # Three typical words of the other side are needed; English has but two.
    assert facts["checks"]["de"]["other_language"] == found(0)
    assert facts["checks"]["en"]["other_language"] == found(1, 2, "Der die und")


def test_overlap_of_splits_by_hand():
    splits = {
        "train": [
            ("Katze", "cat"),
            ("Hund", "dog"),
            ("Hund", "hound"),
            ("Wolf", "wolf"),
            ("", "dog"),
            ("Wolf", "dog"),
        ],
        "validation": [("Hund", "dog"), ("", ""), ("wolf", "Wolf")],
        "test": [("Wolf", "a wolf")],
    }
    prints = {name: examine(pairs)[1] for name, pairs in splits.items()}
    reads = {
        name: lambda indices, pairs=pairs: [pairs[i] for i in indices]
        for name, pairs in splits.items()
    }
    overlap = overlaps(prints, ("de", "en"), reads)
    assert overlap["train"] == {
        "validation": {
            "pair": found(1, 2, {"de": "Hund", "en": "dog"}),
            "de": found(2, 2, "Hund"),
            "en": found(2, 2, "dog"),  # lines 2 and 6: line 5 has an empty side
        },
        "test": {"pair": found(0), "de": found(2, 4, "Wolf"), "en": found(0)},
    }
    assert overlap["validation"]["train"]["pair"]["line"] == 1
    assert set(overlap["test"]) == {"train", "validation"}


@given(st.lists(st.text(ODD | ANY, max_size=6), min_size=1))
def test_kinds_of_joined_lines_are_those_of_its_lines(texts):
    for find in lines.KINDS.values():
        places = [find(line, 0) for line in texts]
        assert all(-1 <= p < len(x) for p, x in zip(places, texts, strict=True))
        expected = [i for i, place in enumerate(places) if place >= 0]
        assert lines.Joined(texts).of_kind(find) == expected


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_repeats_and_members_as_plain_python_finds_them(values, others):
    prints, known = np.array(values, np.uint64), np.array(others, np.uint64)
    expected = [value in values[:i] for i, value in enumerate(values)]
    assert lines.repeats(prints).tolist() == expected
    assert lines.among(prints, known).tolist() == [x in others for x in values]


def test_hashes_are_those_of_blake2b():
    """b2sum -l 64 of "abc" and of nothing, read as little-endian numbers."""
    by_hand = [bytes.fromhex("d8bb14d833d59559"), bytes.fromhex("e4a6a0577479b2b4")]
    expected = [int.from_bytes(digest, "little") for digest in by_hand]
    assert lines.fingerprints(["abc", ""]).tolist() == expected
    assert lines.empty(lines.fingerprints(["abc", ""])).tolist() == [False, True]


def test_findings_of_multi30k_are_those_of_sort_uniq_and_grep(multi30k_directory):
    """For example: paste train.de train.en | sort | uniq -d, and grep -c '  '."""
    paths = [multi30k_directory / f"train.{x}.gz" for x in ("de", "en")]
    pairs = list(read_pairs(*paths))
    facts, _ = examine(pairs, learn(pairs[:16_384]), chunk=2048)
    counts = {
        (side, kind): finding["count"]
        for side, kinds in facts["checks"].items()
        for kind, finding in kinds.items()
        if finding["count"]
    }
    assert counts == {
        ("pair", "duplicate"): 3,
        ("de", "other_translation"): 22,
        ("en", "other_translation"): 6,
        ("de", "character_reference"): 1,
        ("en", "character_reference"): 16,
        ("de", "trailing_space"): 40,
        ("de", "double_space"): 44,
        ("en", "double_space"): 1,
    }
    assert facts["checks"]["de"]["other_language"]["count"] == 0
    # Of 1,000 lines set on the wrong side nearly all are seen.
    turned = [(b, a) for a, b in pairs[-1000:]]
    facts, _ = examine(pairs[:-1000] + turned, learn(pairs[:16_384]), chunk=2048)
    for language in ("de", "en"):
        finding = facts["checks"][language]["other_language"]
        assert 950 < finding["count"] <= 1000 and finding["line"] > 28_000
