"""A comparison as one HTML file: tables, and every sentence to filter and sort."""

from collections.abc import Iterable
from typing import Any

from transformer_ablation.report.cells import number
from transformer_ablation.report.comparison.data import OUTCOMES
from transformer_ablation.report.comparison.differing import segments
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
from transformer_ablation.report.comparison.result import Both, Comparison, Sentence
from transformer_ablation.report.page.document import (
    Section,
    document,
    escape,
    isolated,
)
from transformer_ablation.report.page.tables import Cell, table
from transformer_ablation.report.text_metrics import SPACELESS, tokeniser_of

MINUS = "\N{MINUS SIGN}"


def as_html(comparison: Comparison, sentences: int | None) -> str:
    """The document, with so many sentences of each outcome, None for all."""
    unit = comparison.options.length_unit
    sections = [
        Section("scores", "Corpus scores", _corpus(comparison)),
        Section("wins", "Wins", _wins(comparison)),
        Section("lengths", f"By length of the source, in {unit}", _lengths(comparison)),
        Section("words", "Words by frequency", _words(comparison)),
        Section("ngrams", "N-grams", _ngrams(comparison)),
        Section("sentences", "Sentences", _sentences(comparison, sentences)),
        Section("notes", "Notes", _notes(comparison)),
    ]
    return document(
        title(comparison),
        sections,
        {"sentence-data": _sentence_data(comparison, sentences)},
        styles=("comparison.css",),
        scripts=("sort.js", "comparison.js"),
        lead=f"<p>{escape(config_line(comparison))}</p>\n{_legend(comparison)}",
    )


def _legend(comparison: Comparison) -> str:
    first, second = (isolated(name) for name in named(comparison))
    return (
        f'<p class="legend"><span class="bar first"></span> {first} '
        f'<span class="bar second"></span> {second}</p>'
    )


def _corpus(comparison: Comparison) -> str:
    names = metrics(comparison)
    rows = [
        [_left(escape(line.group)), _left(isolated(line.label))]
        + [Cell(line.cell(n).replace("-", MINUS), line.values.get(n)) for n in names]
        for line in corpus_lines(comparison)
    ]
    heads = [_left(""), _left(""), *(Cell(METRICS[n]) for n in names)]
    return table("Corpus scores", heads, rows)


def _wins(comparison: Comparison) -> str:
    first, second = (isolated(name) for name in comparison.labels)
    metric = METRICS[comparison.options.sentence_metric]
    rows = []
    for pair in comparison.pairs:
        wins = pair.wins
        counts = [wins.first, wins.ties, wins.second, wins.identical]
        widths = ((wins.first, "first"), (wins.ties, "tie"), (wins.second, "second"))
        total = sum(count for count, _ in widths)
        bars = "".join(
            f'<span class="bar {name}" style="width:{100 * n / total:.2f}%"></span>'
            for n, name in widths
        )
        rows.append(
            [
                _left(pair.name, head=True),
                *(Cell(f"{count:,}", count) for count in counts),
                _p(wins.p),
                Cell(f'<div class="stack" aria-hidden="true">{bars}</div>', left=True),
            ]
        )
    names = ("", f"{first} better", "ties", f"{second} better", "identical")
    heads = [*map(Cell, names), Cell("p sign test"), Cell("")]
    return f"<p>Sentences with the higher {metric}.</p>\n" + table("Wins", heads, rows)


def _lengths(comparison: Comparison) -> str:
    rows = []
    most = _most(both for g in comparison.lengths for both in g.scores.values())
    for group in comparison.lengths:
        cells = [
            _left(group.bucket.label, head=True),
            Cell(f"{group.sentences:,}", group.sentences),
        ]
        for name in ("bleu", "chrf"):
            cells += _three(group.scores[name], name)
            cells.append(_bars(group.scores[name], most))
        rows.append(cells)
    heads = [_left("length"), Cell("sentences")]
    for name in ("bleu", "chrf"):
        heads += _three_heads(comparison, METRICS[name])
    return table("Scores by length", heads, rows)


def _words(comparison: Comparison) -> str:
    rows = []
    groups = comparison.pairs[0].words
    for group, found in zip(groups, comparison.f1, strict=True):
        both = found.percent
        count = group.first.references
        rows.append(
            [
                _left(group.bucket.label, head=True),
                Cell(f"{count:,}", count),
                *_three(both, "bleu"),
                _bars(both, 100.0),
            ]
        )
    heads = [_left("frequency"), Cell("in references")]
    heads += _three_heads(comparison, "F1")
    origin = escape(comparison.frequencies.origin)
    return f"<p>Frequency in {origin}; F1 in percent.</p>\n" + table(
        "F1 by frequency", heads, rows
    )


def _ngrams(comparison: Comparison) -> str:
    first, second = (isolated(name) for name in comparison.labels)
    parts = []
    for name, found in zip(comparison.labels, comparison.ngrams, strict=True):
        heading = ngram_heading(comparison.options.ngrams, isolated(name))
        rows = [
            [
                Cell(isolated(ngram.words), left=True, head=True),
                Cell(f"{ngram.score:.3f}", ngram.score),
                *(Cell(f"{count:,}", count) for count in ngram[1:4]),
            ]
            for ngram in found
        ]
        names = ("score", first, second, "in references")
        label = ngram_heading(comparison.options.ngrams, name)
        shown = table(label, [_left("n-gram"), *map(Cell, names)], rows, sortable=True)
        parts.append(f"<h3>{heading}</h3>\n{shown if rows else '<p>None.</p>'}")
    return "\n".join(parts)


def _sentences(comparison: Comparison, most: int | None) -> str:
    shown = sum(len(comparison.largest(side, most)) for side in OUTCOMES)
    total = len(comparison.sentences)
    which = f"All {total:,}." if shown == total else f"{shown:,} of {total:,}: "
    if shown < total:
        which += f"up to {most:,} of each outcome, those that differ most."
    first, second = (isolated(name) for name in comparison.labels)
    which += f" Scores are those of {first}, of {second}, and the difference."
    return (
        f'<p>{which} In a hypothesis <del class="only first">⟦such⟧</del> or '
        '<ins class="only second">⟦such⟧</ins> words are not in the other one.</p>\n'
        '<form class="controls" id="sentence-controls"></form>\n'
        '<p id="sentence-count" role="status"></p>\n<div id="sentence-list"></div>\n'
        '<p><button type="button" id="sentence-more" hidden>Show more</button></p>'
    )


def _sentence_data(comparison: Comparison, most: int | None) -> dict[str, Any]:
    spaceless = tokeniser_of(comparison.signatures["bleu"]) in SPACELESS
    chosen = [s for side in OUTCOMES for s in comparison.largest(side, most)]
    return {
        "names": list(comparison.labels),
        "unit": comparison.options.length_unit,
        "pairs": [pair.name for pair in comparison.pairs],
        "buckets": [group.bucket.label for group in comparison.lengths],
        "metric": comparison.options.sentence_metric,
        "labels": METRICS,
        "sentences": [_sentence(comparison, s, spaceless) for s in chosen],
    }


def _sentence(
    comparison: Comparison, sentence: Sentence, spaceless: bool
) -> dict[str, Any]:
    """Scores have four decimals here; JSON has all."""
    ahead = comparison.ahead(sentence)
    return {
        "pair": sentence.pair,
        "line": sentence.number,
        "length": sentence.length,
        "bucket": sentence.bucket,
        "better": 2 if ahead is None else ahead,
        "scores": {
            name: [round(score or 0.0, 4) for score in both]
            for name, both in sentence.scores.items()
        },
        "source": comparison.sources[sentence.number - 1],
        "reference": comparison.references[sentence.number - 1],
        "hypotheses": segments(*sentence.hypotheses, spaceless),
    }


def _notes(comparison: Comparison) -> str:
    lines = "\n".join(f"<li>{escape(note)}</li>" for note in notes(comparison))
    return f"<ul>\n{lines}\n</ul>"


def _left(text: str, head: bool = False) -> Cell:
    return Cell(text, left=True, head=head)


def _number(value: float | None, name: str, sign: str = "") -> Cell:
    text = number(value, DECIMALS[name], sign) or "–"
    return Cell(text.replace("-", MINUS), value)


def _p(value: float | None) -> Cell:
    return Cell("" if value is None else f"{value:.3g}", value)


def _three(both: Both, name: str) -> list[Cell]:
    delta = _number(both.difference, name, "+")
    return [_number(both.first, name), _number(both.second, name), delta]


def _three_heads(comparison: Comparison, name: str) -> list[Cell]:
    sides = (f"{name} {isolated(side)}" for side in comparison.labels)
    return [*map(Cell, sides), Cell("Δ"), Cell("")]


def _most(values: Iterable[Both]) -> float:
    known = [v for both in values for v in both if v is not None]
    return max(known, default=0.0) or 1.0


def _bars(both: Both, most: float) -> Cell:
    """A bar a side, for the eye alone: the numbers stand beside it."""
    bars = "".join(
        f'<div class="bar {name}" style="width:{100 * value / most:.1f}%"></div>'
        for name, value in zip(("first", "second"), both, strict=True)
        if value is not None
    )
    return Cell(f'<div class="bars" aria-hidden="true">{bars}</div>', left=True)
