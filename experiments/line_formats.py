"""Translations as lines: for people, for spreadsheets, for programs.

``text``: the translation alone; with --n_best=n always n lines for a line, of which
those without a translation are blank.

``tsv``: the same lines, with tabs between number of the line, place, score, log_prob,
finished (yes or no) and the text; a tab in the text is written as a space.

``json``: one object for a line: ``line``, its number from 1; ``source``; and
``translations``, whose fields are those of ``runs.lines.Hypothesis``.
"""

import json
from collections.abc import Callable
from itertools import zip_longest

from transformer_ablation.report.json_file import finite
from transformer_ablation.runs.lines import Hypothesis, Translated

# ``(number of the line, it, how many translations) -> lines``
Format = Callable[[int, Translated, int], list[str]]


def as_text(number: int, line: Translated, n_best: int) -> list[str]:
    """The texts alone."""
    return [found.text if found else "" for found in _places(line, n_best)]


def as_tsv(number: int, line: Translated, n_best: int) -> list[str]:
    """Six columns without a heading, so that lines can be sorted and joined."""
    return [
        "\t".join([str(number), str(place), *_cells(found)])
        for place, found in enumerate(_places(line, n_best), start=1)
    ]


def _cells(found: Hypothesis | None) -> list[str]:
    if found is None:
        return [""] * 4
    finished = "yes" if found.finished else "no"
    text = found.text.replace("\t", " ")
    return [f"{found.score:.6g}", f"{found.log_prob:.6g}", finished, text]


def as_json(number: int, line: Translated, n_best: int) -> list[str]:
    """One object; a number that is not finite is null."""
    translations = [found._asdict() for found in line.translations]
    whole = {"line": number, "source": line.source, "translations": translations}
    return [json.dumps(finite(whole, "", []), ensure_ascii=False, allow_nan=False)]


FORMATS: dict[str, Format] = {"text": as_text, "tsv": as_tsv, "json": as_json}


def _places(line: Translated, n_best: int) -> list[Hypothesis | None]:
    found = zip_longest(range(n_best), line.translations)
    return [hypothesis for _, hypothesis in found]
