"""Findings about the text of a corpus, and what filters left out, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

# What a finding says of its lines or pairs; docs/data.md has the rules.
MEANINGS = {
    "duplicate": "equal an earlier pair",
    "copy": "source and target are equal",
    "length_ratio": "more than {length_ratio:g} times the words of the other side",
    "empty": "empty",
    "blank": "white space only",
    "long": "more than {long_words} words",
    "control": "control characters",
    "replacement": "U+FFFD, the mark of characters lost before",
    "carriage_return": "carriage return, U+000D",
    "next_line": "next line, U+0085",
    "line_separator": "line separator, U+2028",
    "paragraph_separator": "paragraph separator, U+2029",
    "byte_order_mark": "U+FEFF, a byte order mark inside the text",
    "not_nfc": "not in Unicode's form NFC",
    "character_reference": "SGML or HTML character references",
    "tag": "SGML or HTML tags",
    "leading_space": "space at the start",
    "trailing_space": "space at the end",
    "double_space": "two spaces running",
    "other_language": "look like the other language",
    "other_translation": "stood before, with another translation",
}


def findings(manifest: Mapping[str, Any]) -> Iterator[str]:
    """A line for each kind that occurs: where, how many, the first of them."""
    languages = manifest["source_language"], manifest["target_language"]
    if manifest["checks"]["typical"] is None:
        yield "language mix-ups: not judged, too few words are of one side only"
    rows = list(_occurring(manifest, languages))
    if not rows:
        yield "findings: none"
        return
    yield f"{'findings in':<18}{'side':<8}{'lines':>10}{'first':>10}"
    for split, side, found, meaning in rows:
        shown = found["excerpt"]
        texts = [shown[x] for x in languages] if side == "pair" else [shown]
        quoted = " and ".join(f'"{visible(text)}"' for text in texts)
        where = f"{split:<18}{side:<8}{found['count']:>10,}{found['line']:>10,}"
        yield f"{where}  {meaning}: {quoted}"


def _occurring(
    manifest: Mapping[str, Any], languages: tuple[str, str]
) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    for split, facts in manifest["splits"].items():
        for side in ("pair", *languages):
            findings = facts["checks"][side]
            for kind, meaning in MEANINGS.items():
                if kind in findings and findings[kind]["count"]:
                    text = meaning.format(**manifest["checks"])
                    yield split, side, findings[kind], text
    train = next(iter(manifest["splits"]))
    for other, sides in manifest["overlaps"].items():
        for side in ("pair", *languages):
            if sides[side]["count"]:
                yield train, side, sides[side], f"also in {other}"


def visible(text: str) -> str:
    """The text with escapes for what a terminal would not show, or obey."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
