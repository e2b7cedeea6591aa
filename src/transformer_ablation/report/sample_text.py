"""Sentences with their translations as a table in Markdown, for TensorBoard."""

import re
from collections.abc import Sequence

from transformer_ablation.report.samples import Sample

HEADING = ("line", "source", "reference", "translation")
# Whatever Markdown or HTML could take for its own, a bar between cells included.
_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")


def sample_table(samples: Sequence[Sample]) -> str:
    """A row a sentence; every letter is shown as it is."""
    rows = [HEADING, ("---",) * len(HEADING)]
    rows += [
        (str(s.line), *map(_cell, (s.source, s.reference, s.hypothesis)))
        for s in samples
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(text: str | None) -> str:
    """The text in a cell: one line, special letters by number."""
    line = " ".join((text or "").split())
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", line)
