"""A comparison as text for a terminal."""

import textwrap
from collections.abc import Sequence

from transformer_ablation.report.cells import Column, number, plain
from transformer_ablation.report.comparison.lines import (
    DECIMALS,
    corpus_lines,
    metrics,
)
from transformer_ablation.report.comparison.notes import (
    METRICS,
    config_line,
    named,
    ngram_heading,
    notes,
    title,
)
from transformer_ablation.report.comparison.result import (
    Both,
    Comparison,
    Sentence,
)
from transformer_ablation.report.comparison.words import NGram
from transformer_ablation.report.render import text_line, width_of

WIDTH = 100
UNKNOWN = "-"


def as_text(comparison: Comparison, sentences: int) -> str:
    """The whole, with so many sentences each way; it ends in a newline."""
    first, second = (plain(name) for name in comparison.labels)
    blocks = [
        _head(comparison),
        ["Corpus scores", *_corpus(comparison)],
        [_wins_heading(comparison), *_wins(comparison)],
        [f"By length of the source, in {comparison.options.length_unit}"]
        + _lengths(comparison),
        [f"F1 of words by frequency in {comparison.frequencies.origin}"]
        + _words(comparison),
    ]
    for name, found in zip((first, second), comparison.ngrams, strict=True):
        heading = ngram_heading(comparison.options.ngrams, name)
        blocks.append([heading, *_ngrams(comparison, found)])
    for side, name in enumerate((first, second)):
        chosen = _distinct(comparison, comparison.largest(side, None))[:sentences]
        if sentences:
            heading = f"Sentences that {name} has better, by the difference"
            blocks.append([heading, *_sentences(comparison, chosen)])
    blocks.append([line for note in notes(comparison) for line in _wrapped(note)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _head(comparison: Comparison) -> list[str]:
    lines = [title(comparison), config_line(comparison)]
    if comparison.labels != comparison.names:
        lines += named(comparison)
    return [part for line in lines for part in _wrapped(line)]


def _corpus(comparison: Comparison) -> list[str]:
    names, rows, last = metrics(comparison), [], ""
    for line in corpus_lines(comparison):
        group = "" if line.group == last else line.group
        last = line.group
        rows.append([group, plain(line.label), *(line.cell(n) for n in names)])
    return _table(["", "", *(METRICS[n] for n in names)], rows, left=2)


def _wins_heading(comparison: Comparison) -> str:
    metric = METRICS[comparison.options.sentence_metric]
    return f"Sentences with the higher {metric}"


def _wins(comparison: Comparison) -> list[str]:
    first, second = (plain(name) for name in comparison.labels)
    rows = []
    for pair in comparison.pairs:
        wins = pair.wins
        n = wins.first + wins.second + wins.ties
        same = f"{wins.identical:,} ({wins.identical / n:.1%})"
        p = UNKNOWN if wins.p is None else f"{wins.p:.3g}"
        counts = [f"{c:,}" for c in (wins.first, wins.second, wins.ties)]
        rows.append([pair.name, *counts, same, p])
    return _table(["", first, second, "ties", "identical", "p sign test"], rows)


def _lengths(comparison: Comparison) -> list[str]:
    first, second = (plain(name) for name in comparison.labels)
    rows = []
    for group in comparison.lengths:
        cells = [group.bucket.label, f"{group.sentences:,}"]
        if not group.sentences:
            rows.append([*cells, "no sentence"])
            continue
        for name, both in group.scores.items():
            cells += _three(both, name)
        rows.append(cells)
    heads = [
        f"{METRICS[n]} {x}" for n in ("bleu", "chrf") for x in (first, second, "Δ")
    ]
    return _table(["length", "sentences", *heads], rows)


def _words(comparison: Comparison) -> list[str]:
    first, second = (plain(name) for name in comparison.labels)
    rows = []
    groups = comparison.pairs[0].words
    for group, both in zip(groups, comparison.f1, strict=True):
        cells = [group.bucket.label, f"{group.first.references:,}"]
        if both.first is None and both.second is None:
            rows.append([*cells, "no word"])
            continue
        rows.append([*cells, *_three(both.percent, "bleu")])
    return _table(["frequency", "in references", first, second, "Δ"], rows)


def _three(both: Both, name: str) -> list[str]:
    cells = [_cell(both.first, name), _cell(both.second, name)]
    return [*cells, _cell(both.difference, name, "+")]


def _cell(value: float | None, name: str, sign: str = "") -> str:
    return UNKNOWN if value is None else number(value, DECIMALS[name], sign)


def _ngrams(comparison: Comparison, found: Sequence[NGram]) -> list[str]:
    if not found:
        return ["  none"]
    first, second = (plain(name) for name in comparison.labels)
    rows = [
        [plain(x.words), f"{x.score:.3f}", *(f"{n:,}" for n in x[1:4])] for x in found
    ]
    return _table(["n-gram", "score", first, second, "in references"], rows)


def _distinct(comparison: Comparison, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Without lines that stand in the split again, translated alike."""
    seen: dict[tuple[str, ...], Sentence] = {}
    for sentence in sentences:
        line = sentence.number - 1
        texts = comparison.sources[line], comparison.references[line]
        seen.setdefault((*texts, *sentence.hypotheses), sentence)
    return list(seen.values())


def _sentences(comparison: Comparison, chosen: Sequence[Sentence]) -> list[str]:
    if not chosen:
        return ["  none"]
    lines = []
    for sentence in chosen:
        lines += [*_sentence(comparison, sentence), ""]
    return lines[:-1]


def _sentence(comparison: Comparison, sentence: Sentence) -> list[str]:
    several = len(comparison.pairs) > 1
    seed = f", {comparison.pairs[sentence.pair].name}" if several else ""
    told = []
    order = sorted(METRICS, key=lambda n: n != comparison.options.sentence_metric)
    for name in order:
        if name in sentence.scores:
            both = sentence.scores[name]
            first, second, delta = _three(both, name)
            told.append(f"{METRICS[name]} {first}, {second} ({delta})")
    texts = {
        "source": comparison.sources[sentence.number - 1],
        "reference": comparison.references[sentence.number - 1],
    }
    parts = [*texts.items(), *zip(comparison.labels, sentence.hypotheses, strict=True)]
    width = max(len(plain(name)) for name, _ in parts)
    lines = [f"  line {sentence.number:,}{seed}: {'; '.join(told)}"]
    for name, text in parts:
        start = f"    {plain(name):<{width}}  "
        shown = plain(text) or "(empty)"
        lines += _wrapped(shown, start, " " * len(start))
    return lines


def _wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    return textwrap.wrap(
        plain(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1
) -> list[str]:
    """Aligned columns under a rule; the first ``left`` ones begin at the left."""
    full = [[*row, *[""] * (len(heads) - len(row))] for row in rows]
    columns = [
        Column("", head, cells, left=i < left)
        for i, (head, *cells) in enumerate(zip(heads, *full, strict=True))
    ]
    lines = [text_line(cells, columns) for cells in (heads, *full)]
    rule = "-" * width_of(columns)
    return [f"  {line}" for line in (lines[0], rule, *lines[1:])]
