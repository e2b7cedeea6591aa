"""Two rows or runs compared, from their texts to everything that is shown of them."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_ablation.report.columns import counted, row_differences
from transformer_ablation.report.comparison import scores, words
from transformer_ablation.report.comparison.intervals import buckets, place
from transformer_ablation.report.comparison.over_pairs import (
    mean,
    mean_lengths,
    over_seeds,
)
from transformer_ablation.report.comparison.result import (
    Both,
    Comparison,
    Frequencies,
    LengthGroup,
    Options,
    PairResult,
    Sentence,
    WordGroup,
)
from transformer_ablation.report.comparison.runs import Found, Pair, Side
from transformer_ablation.report.record import sessions
from transformer_ablation.report.sentence_tests import (
    FEW,
    Progress,
    SentenceTest,
    Task,
    run_tests,
)

MANY = 20_000  # translations whose scoring takes so long that it is told

# Given how a line becomes words, and the signature of the BLEU that they are of.
FrequenciesOf = Callable[[Callable[[str], list[str]], str], Frequencies | str]

Counts = Mapping[str, np.ndarray]  # of a text by metric, one row a sentence


class _Shared(NamedTuple):
    """What all pairs are compared with."""

    options: Options
    scorer: scores.Scorer
    references: list[list[str]]  # words
    lengths: list[int]  # of the sources, in the unit of the options
    frequencies: Frequencies


class _Measured(NamedTuple):
    result: PairResult
    sentences: list[Sentence]
    ngrams: tuple[Counter[str], Counter[str]]


def compare(
    found: Found,
    options: Options,
    frequencies_of: FrequenciesOf,
    progress: Progress = lambda text: None,
) -> Comparison:
    """Compares what was found.

    Args:
      frequencies_of: how often words occur in the training text, or why that is not
        known: then the references' are taken.
      progress: hears a line before what takes long.
    """
    shared = _shared(found, options, frequencies_of)
    sides = [side for pair in found.pairs for side in pair.sides]
    if len(sides) * len(found.references) >= MANY:
        sentences = counted(len(found.references), "sentence")
        progress(f"scoring {sentences} of {len(sides)} texts")
    counts = shared.scorer.counts([x.hypotheses for x in sides], found.references)
    measured = [
        _measured(i, pair, counts[2 * i : 2 * i + 2], shared)
        for i, pair in enumerate(found.pairs)
    ]
    pairs = [each.result for each in measured]
    signatures = shared.scorer.signatures()
    if options.ter:
        pairs, signatures["ter"] = _with_ter(pairs, found, progress)
    pairs = _with_tests(pairs, found, options, progress)
    ngrams: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for each in measured:
        ngrams[0].update(each.ngrams[0])
        ngrams[1].update(each.ngrams[1])
    first, second = (side.record for side in found.pairs[0].sides)
    return Comparison(
        found.names,
        found.split,
        options,
        signatures,
        row_differences(first["config"], second["config"]),
        _facts(first, second),
        found.sources,
        found.references,
        pairs,
        over_seeds(pairs),
        mean_lengths(pairs),
        [
            mean([pair.words[i].f1 for pair in pairs])
            for i in range(len(options.frequency_starts) + 1)
        ],
        shared.frequencies,
        words.distinctive(*ngrams, shared.references, options.most_ngrams, len(pairs)),
        [sentence for each in measured for sentence in each.sentences],
        found.left_out,
    )


def _shared(
    found: Found,
    options: Options,
    frequencies_of: FrequenciesOf,
) -> _Shared:
    signature = found.pairs[0].sides[0].score["signature"]
    scorer = scores.Scorer(signature)
    references = [scorer.tokens(line) for line in found.references]
    frequencies = frequencies_of(scorer.tokens, scorer.signatures()["bleu"])
    if isinstance(frequencies, str):
        counts = words.frequencies(references)
        frequencies = Frequencies(counts, "the references", frequencies)
    in_words = options.length_unit == "words"
    lengths = [
        len(scorer.tokens(line) if in_words else line.strip()) for line in found.sources
    ]
    return _Shared(options, scorer, references, lengths, frequencies)


def _measured(
    index: int, pair: Pair, counts: Sequence[Counts], shared: _Shared
) -> _Measured:
    """One pair, from the counts of both sides: everything but TER and the tests."""
    scorer, options = shared.scorer, shared.options
    texts = [side.hypotheses for side in pair.sides]
    tokens = [[scorer.tokens(line) for line in text] for text in texts]
    own = {
        name: [scorer.sentences(name, c[name]) for c in counts]
        for name in scores.SUMMED
    }
    chosen = own[options.sentence_metric]
    identical = sum(a == b for a, b in zip(*texts, strict=True))
    words_of_references = sum(map(len, shared.references))
    corpus = {
        name: Both(*(scorer.corpus(name, c[name]) for c in counts))
        for name in scores.SUMMED
    }
    corpus["length"] = Both(
        *(sum(map(len, t)) / max(1, words_of_references) for t in tokens)
    )
    result = PairResult(
        pair.name,
        pair.seeds,
        (str(pair.sides[0].folder), str(pair.sides[1].folder)),
        corpus,
        {},
        scores.wins(chosen[0], chosen[1], identical),
        _length_groups(counts, shared),
        _word_groups(tokens, shared),
        _of_sides(pair.sides, lambda side: side.score["unfinished"]),
        _of_sides(pair.sides, lambda side: side.text.mismatches),
    )
    first, second = (
        words.ngram_counts(t, shared.references, options.ngrams) for t in tokens
    )
    sentences = _sentences(index, texts, own, shared)
    return _Measured(result, sentences, (first, second))


def _of_sides(sides: Sequence[Side], value: Callable[[Side], Any]) -> Both:
    return Both(value(sides[0]), value(sides[1]))


def _length_groups(counts: Sequence[Counts], shared: _Shared) -> list[LengthGroup]:
    """Scores of the sentences of each bucket of source lengths together."""
    starts = shared.options.lengths
    places = np.array([place(starts, length) for length in shared.lengths])
    groups = []
    for i, bucket in enumerate(buckets(starts)):
        chosen = np.flatnonzero(places == i)
        found = {
            name: Both(*(shared.scorer.corpus(name, c[name][chosen]) for c in counts))
            for name in scores.SUMMED
        }
        groups.append(LengthGroup(bucket, len(chosen), found))
    return groups


def _word_groups(
    tokens: Sequence[Sequence[Sequence[str]]], shared: _Shared
) -> list[WordGroup]:
    starts = shared.options.frequency_starts
    both = [
        words.accuracies(t, shared.references, shared.frequencies.counts, starts)
        for t in tokens
    ]
    return [WordGroup(*each) for each in zip(buckets(starts), *both, strict=True)]


def _sentences(
    index: int,
    texts: Sequence[Sequence[str]],
    own: Mapping[str, Sequence[Sequence[float]]],
    shared: _Shared,
) -> list[Sentence]:
    starts = shared.options.lengths
    return [
        Sentence(
            index,
            i + 1,
            length,
            place(starts, length),
            (texts[0][i], texts[1][i]),
            {name: Both(both[0][i], both[1][i]) for name, both in own.items()},
        )
        for i, length in enumerate(shared.lengths)
    ]


def _with_ter(
    pairs: Sequence[PairResult], found: Found, progress: Progress
) -> tuple[list[PairResult], str]:
    """The pairs with TER, and its signature."""
    sides = [side for pair in found.pairs for side in pair.sides]
    rates, signature = scores.edit_rates(
        [side.text for side in sides],
        [side.hypotheses for side in sides],
        found.references,
        found.cache,
        progress,
    )
    both = [Both(*rates[i : i + 2]) for i in range(0, len(rates), 2)]
    return [
        dataclasses.replace(pair, corpus={**pair.corpus, "ter": rate})
        for pair, rate in zip(pairs, both, strict=True)
    ], signature


def _with_tests(
    pairs: Sequence[PairResult], found: Found, options: Options, progress: Progress
) -> list[PairResult]:
    """The pairs with sacreBLEU's paired tests, from the cache where they are there."""
    settings = options.tests
    if settings is None:
        return list(pairs)
    tasks: dict[tuple[int, str, str], Task] = {}
    for i, pair in enumerate(found.pairs):
        first, second = (side.text for side in pair.sides)
        for metric in options.test_metrics:
            for kind in settings.kinds:
                tasks[i, metric, kind] = (kind, settings, first, second, metric)
    few = 0 if len(found.references) >= scores.MANY else FEW
    tests: list[dict[str, dict[str, SentenceTest]]] = [{} for _ in pairs]
    for (i, metric, kind), test in run_tests(tasks, found.cache, progress, few).items():
        tests[i].setdefault(metric, {})[kind] = test
    return [
        dataclasses.replace(pair, tests=test)
        for pair, test in zip(pairs, tests, strict=True)
    ]


def _facts(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """What a reader should know that differs beside the config."""

    def facts(record: Mapping[str, Any]) -> dict[str, Any]:
        data = record["data"] or {}
        commits = (each["commit"] or {} for each in sessions(record))
        hashes = (commit.get("hash", "unknown") for commit in commits)
        return {
            "results_version": record["results_version"],
            "training and test data": data.get("manifest_hash"),
            "vocabulary": data.get("vocabulary_hash"),
            "commit": ", then ".join(dict.fromkeys(hashes)),
        }

    ours, theirs = facts(first), facts(second)
    return {
        name: (value, theirs[name])
        for name, value in ours.items()
        if value != theirs[name]
    }
