"""Which words of two hypotheses differ."""

import difflib
import re
from collections.abc import Sequence

# Marks stand alone: a word before a full stop is the word before a comma.
MARK = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u2027\u3001-\u3003"
WORD = re.compile(rf"[{MARK}]\s*|[^\s{MARK}]+\s*|\s+")


def segments(first: str, second: str, spaceless: bool) -> tuple[list[str], list[str]]:
    """Each text in parts that are in turn the same in both, and only in this one.

    The parts of a text join to it; the first, the same, may be empty. Parts end between
    words, or between letters of a language without spaces.
    """
    if first == second:
        return [first], [second]
    ours, theirs = _units(first, spaceless), _units(second, spaceless)
    matcher = difflib.SequenceMatcher(None, _plain(ours), _plain(theirs), False)
    left, right = [""], [""]
    for tag, i, j, k, m in matcher.get_opcodes():
        for parts, units in ((left, ours[i:j]), (right, theirs[k:m])):
            same = len(parts) % 2 == 1
            text = "".join(units)
            if (tag == "equal") == same:
                parts[-1] += text
            elif text:
                parts.append(text)
    return left, right


def _units(text: str, spaceless: bool) -> list[str]:
    return list(text) if spaceless else WORD.findall(text)


def _plain(units: Sequence[str]) -> list[str]:
    """Words without the spaces behind them, which the last word lacks."""
    return [unit.rstrip() for unit in units]
