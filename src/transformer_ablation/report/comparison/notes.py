"""What stands beside the figures of a comparison: how they were made, what differs."""

from transformer_ablation.report.columns import counted, word
from transformer_ablation.report.comparison.result import Comparison
from transformer_ablation.report.comparison.words import KINDS
from transformer_ablation.report.significance_notes import KINDS as TESTS
from transformer_ablation.report.text_metrics import tokeniser_of

METRICS = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "length": "length ratio"}
FIELDS = 8  # differing fields of the configs that a line names
DIGITS = 12  # of a hash


def title(comparison: Comparison) -> str:
    """Which two, on what."""
    first, second = comparison.names
    names = ", ".join(pair.name for pair in comparison.pairs)
    lines = len(comparison.references)
    of = f"split {comparison.split}, {counted(lines, 'sentence')}"
    return f"{second} against {first}: {of}, {names}"


def named(comparison: Comparison) -> list[str]:
    """Both names, behind what stands for them in tables."""
    return [
        name if name == label else f"{label}: {name}"
        for label, name in zip(comparison.labels, comparison.names, strict=True)
    ]


def ngram_heading(kind: str, name: str) -> str:
    """What a list of n-grams is, of which kind and side."""
    return {
        "match": f"N-grams that {name} gets more often",
        "over": f"N-grams that {name} adds more often",
        "under": f"N-grams that {name} misses more often",
    }[kind]


def config_line(comparison: Comparison) -> str:
    """The fields in which the configs differ."""
    fields = [
        f"{path} {word(new)} instead of {word(old)}"
        for path, (old, new) in comparison.differences.items()
    ]
    if not fields:
        return "The configs are equal."
    more = len(fields) - FIELDS
    listed = "; ".join(fields[:FIELDS]) + (f"; and {more} more" if more > 0 else "")
    return f"{comparison.names[1]} has {listed}."


def notes(comparison: Comparison) -> list[str]:
    """Lines below the figures."""
    return [
        *_facts(comparison),
        *(f"Left out: {why}." for why in comparison.left_out),
        *_texts(comparison),
        *_scores(comparison),
        *_tests(comparison),
        *_words(comparison),
    ]


def _facts(comparison: Comparison) -> list[str]:
    def short(value: object) -> str:
        return str(value)[:DIGITS]

    found = [
        f"{name} {short(a)} and {short(b)}" for name, (a, b) in comparison.facts.items()
    ]
    if not found:
        return []
    return [f"The runs differ besides in: {'; '.join(found)} (first, second)."]


def _texts(comparison: Comparison) -> list[str]:
    lines = []
    for pair in comparison.pairs:
        for what, both in (
            ("hypotheses hit the length cap", pair.unfinished),
            (
                "sentences have a word that the reference has in another Unicode "
                "normal form, which counts as wrong",
                pair.mismatches,
            ),
        ):
            if both.first or both.second:
                counts = " and ".join("?" if n is None else f"{n:,}" for n in both)
                lines.append(f"{pair.name}: {counts} {what} (first, second).")
    return lines


def _scores(comparison: Comparison) -> list[str]:
    made = comparison.signatures
    listed = "; ".join(
        f"{METRICS[name]} {made[name]}" for name in METRICS if name in made
    )
    lines = [
        f"Scores by sacreBLEU: {listed}. Lower is better for TER alone. Length ratio: "
        "words of the hypotheses for one of the references.",
        "Words are those of the BLEU signature's tokeniser, "
        f"{tokeniser_of(made['bleu'])}, in all that follows.",
    ]
    if len(comparison.pairs) > 1:
        lines.append(
            "Several seeds: runs of equal seeds are paired. Means are over the "
            f"{len(comparison.pairs)} pairs; n-grams are counted, and sentences "
            "chosen, over all of them. p over seeds: paired t-test, two-sided."
        )
    return lines


def _tests(comparison: Comparison) -> list[str]:
    metric = METRICS[comparison.options.sentence_metric]
    lines = [
        f"Wins: sentences with the higher sentence {metric} of sacreBLEU. p of the "
        "sign test: two-sided, exact binomial, ties left out."
    ]
    settings = comparison.options.tests
    if settings is not None:
        how = " and ".join(
            f"{TESTS[kind][0]} ({settings.samples_of(kind):,} {TESTS[kind][1]})"
            for kind in settings.kinds
        )
        lines.append(
            f"Paired tests: {how}, by sacreBLEU with seed {settings.seed}, two-sided, "
            "not corrected for other comparisons (tables does that over rows)."
        )
    lines.append(
        "Tests of sentences speak of these trained models, not of the change between "
        "them: another seed gives other models."
    )
    return lines


def _words(comparison: Comparison) -> list[str]:
    found = comparison.frequencies
    why = "" if found.why is None else f" ({found.why})"
    return [
        f"Frequencies of words are those in {found.origin}{why}. F1 is the harmonic "
        "mean of the part of the hypotheses' words that are in their reference and of "
        "the part of the references' words that are in the hypothesis, each used once.",
        f"N-grams of 1 to 4 words {KINDS[comparison.options.ngrams]}, ranked by "
        "(a + 1) / (a + b + 2), a and b their counts on the two sides.",
    ]
