"""A comparison as JSON: everything, unrounded; the unknown is null."""

import json
from collections.abc import Mapping
from typing import Any

from transformer_ablation.report.comparison.notes import notes
from transformer_ablation.report.comparison.result import (
    Both,
    Comparison,
    LengthGroup,
    PairResult,
    Sentence,
    WordGroup,
)
from transformer_ablation.report.comparison.words import Accuracy
from transformer_ablation.report.seed_tests import SeedTest

OUTCOMES = (0, 1, None)


def as_json(comparison: Comparison, sentences: int | None) -> str:
    """One object; of each outcome the sentences that differ most, None for all."""
    whole = {
        "first": comparison.names[0],
        "second": comparison.names[1],
        "split": comparison.split,
        "sentences": len(comparison.references),
        "signatures": dict(comparison.signatures),
        "differences": _pairs(comparison.differences),
        "facts": _pairs(comparison.facts),
        "sentence_metric": comparison.options.sentence_metric,
        "tests": _settings(comparison),
        "pairs": [_pair(pair) for pair in comparison.pairs],
        "over_seeds": {n: _seed_test(t) for n, t in comparison.over_seeds.items()},
        "length_unit": comparison.options.length_unit,
        "lengths": [_length(group) for group in comparison.lengths],
        "frequencies": {
            "origin": comparison.frequencies.origin,
            "why": comparison.frequencies.why,
        },
        "f1": [
            {"frequency": group.bucket.label, **_both(both)}
            for group, both in zip(
                comparison.pairs[0].words, comparison.f1, strict=True
            )
        ],
        "ngrams": {
            "kind": comparison.options.ngrams,
            "first": [ngram._asdict() for ngram in comparison.ngrams[0]],
            "second": [ngram._asdict() for ngram in comparison.ngrams[1]],
        },
        "examples": [
            sentence_entry(comparison, sentence)
            for side in OUTCOMES
            for sentence in comparison.largest(side, sentences)
        ],
        "notes": notes(comparison),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def sentence_entry(comparison: Comparison, sentence: Sentence) -> dict[str, Any]:
    """One sentence; ``better`` is first, second or null."""
    ahead = comparison.ahead(sentence)
    pair = comparison.pairs[sentence.pair]
    return {
        "line": sentence.number,
        "seeds": list(pair.seeds),
        "better": None if ahead is None else ("first", "second")[ahead],
        "length": sentence.length,
        "bucket": comparison.lengths[sentence.bucket].bucket.label,
        "source": comparison.sources[sentence.number - 1],
        "reference": comparison.references[sentence.number - 1],
        "first": sentence.hypotheses[0],
        "second": sentence.hypotheses[1],
        "scores": {name: _both(both) for name, both in sentence.scores.items()},
    }


def _pairs(values: Mapping[str, tuple[Any, Any]]) -> dict[str, dict[str, Any]]:
    return {n: {"first": a, "second": b} for n, (a, b) in values.items()}


def _both(both: Both) -> dict[str, float | None]:
    return {**both._asdict(), "difference": both.difference}


def _settings(comparison: Comparison) -> dict[str, Any] | None:
    settings = comparison.options.tests
    if settings is None:
        return None
    samples = {kind: settings.samples_of(kind) for kind in settings.kinds}
    return {"samples": samples, "seed": settings.seed}


def _pair(pair: PairResult) -> dict[str, Any]:
    return {
        "name": pair.name,
        "seeds": list(pair.seeds),
        "folders": list(pair.folders),
        "scores": {name: _both(both) for name, both in pair.corpus.items()},
        "tests": {
            metric: {
                kind: {"p": test.p, "signature": test.signature}
                for kind, test in found.items()
            }
            for metric, found in pair.tests.items()
        },
        "wins": pair.wins._asdict(),
        "lengths": [_length(group) for group in pair.lengths],
        "words": [_word(group) for group in pair.words],
        "unfinished": pair.unfinished._asdict(),
        "normal_form_mismatches": pair.mismatches._asdict(),
    }


def _length(group: LengthGroup) -> dict[str, Any]:
    scores = {name: _both(both) for name, both in group.scores.items()}
    return {"length": group.bucket.label, "sentences": group.sentences, **scores}


def _word(group: WordGroup) -> dict[str, Any]:
    return {
        "frequency": group.bucket.label,
        "references": group.first.references,
        "first": _accuracy(group.first),
        "second": _accuracy(group.second),
    }


def _accuracy(found: Accuracy) -> dict[str, Any]:
    return {
        "hypotheses": found.hypotheses,
        "matches": found.matches,
        "precision": found.precision,
        "recall": found.recall,
        "f1": found.f1,
    }


def _seed_test(test: SeedTest) -> dict[str, Any]:
    differences = {str(seed): value for seed, value in test.differences.items()}
    return {"n": test.n, **test._asdict(), "differences": differences}
