"""The lines below a table on its tests, their power, and agreement with the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from transformer_ablation.report import agreement as agreements
from transformer_ablation.report.columns import (
    PAPER_COLUMNS,
    cell,
    flatten,
    setting_differences,
)
from transformer_ablation.report.consistency import some
from transformer_ablation.report.seed_tests import EFFECT, LEVEL, Power
from transformer_ablation.report.sentence_tests import Sentences, Settings

if TYPE_CHECKING:
    from transformer_ablation.report.table import Table

HOLM = "corrected by Holm's method over"
KINDS = {
    "bootstrap": ("paired bootstrap resampling", "resamples"),
    "randomization": ("paired approximate randomisation", "trials"),
}


def significance_notes(
    sweep: Mapping[str, Any], table: Table, sentences: Sentences
) -> list[str]:
    """Every such note that applies."""
    notes = _seeds(table) + _sentences(table) + _verdict(table)
    notes += _power(table)
    notes += _agreement(sweep, table)
    return notes + _texts(sentences)


def _seeds(table: Table) -> list[str]:
    tests = [r.tests.seeds["bleu"] for r in table.rows if r.tests.basis == "seeds"]
    if not tests:
        return []
    rows, seeds = len(tests), _span(test.n for test in tests)
    if table.options.seed_test == "sign-flip":
        least = 2.0 ** (1 - max(test.n for test in tests))
        test = (
            "exact sign-flip test of the row's differences to base by seed (all 2^n "
            f"choices of their signs; its p is never below 2^(1-n) = {least:.2g}"
        )
        test += f", and {min(1.0, rows * least):.2g} once corrected)"
    else:
        test = (
            "paired t-test of the row's differences to base by seed (n - 1 degrees of "
            "freedom)"
        )
    of = f"of Δ{table.names['bleu']}"
    return [f"p seeds: {of}, {test}, two-sided, {seeds}, {HOLM} {_rows(rows)}."]


def _sentences(table: Table) -> list[str]:
    tested = [row for row in table.rows if row.tests.sentences]
    settings = table.options.sentences
    if table.metric != "bleu" and settings is not None:
        return ["Sentences are tested for sacreBLEU alone, not for paper-BLEU."]
    if not tested or settings is None:
        return []
    how = " and ".join(_kind(kind, settings) for kind in settings.kinds)
    family = max(
        sum(seed in row.tests.sentences for row in tested)
        for seed in {seed for row in tested for seed in row.tests.sentences}
    )
    whole = (
        f"{how}, by sacreBLEU with seed {settings.seed}, two-sided, {HOLM} "
        f"{_rows(family)}"
    )
    both = len(settings.kinds) > 1
    if any(row.tests.basis == "seeds" for row in tested):
        note = (
            "p sent.: in how many seeds the two models differ on the sentences, p below"
            f" {LEVEL:.0%} in {'both tests' if both else 'the test'}: {whole}."
        )
    else:
        note = (
            f"p sent.: {'the larger p of ' if both else ''}{whole}. It speaks of these "
            "two trained models, not of the change: another seed gives other models."
        )
    least = family / (min(map(settings.samples_of, settings.kinds)) + 1)
    if least >= LEVEL:
        note += (
            f" No p can come out below {least:.2g} with so few samples: raise "
            "--samples."
        )
    return [note]


def _kind(kind: str, settings: Settings) -> str:
    name, samples = KINDS[kind]
    return f"{name} ({settings.samples_of(kind):,} {samples})"


def _verdict(table: Table) -> list[str]:
    """The rows that a reader should take for base."""
    same = [row.name for row in table.rows if row.tests.distinguishable is False]
    if not same:
        return []
    return [
        f"ns: {table.names['bleu']} not distinguishable from base at {LEVEL:.0%}: "
        f"{', '.join(same)}."
    ]


def _power(table: Table) -> list[str]:
    power, bleu = table.power, table.names["bleu"]
    if power is not None:
        return [power_line(power, bleu)]
    tests = [row.tests.seeds.get("bleu") for row in table.rows]
    if not any(tests):
        return []
    why = "the spread between seeds takes two seeds a row, base's among them, to see"
    if any(test is not None and test.n > 1 for test in tests):
        why = "the differences do not vary between seeds"
    return [f"Power: how many seeds would show {EFFECT} {bleu} is not known: {why}."]


def power_line(power: Power, bleu: str) -> str:
    """How many seeds show the effect, with the formula; ``bleu`` as the table's."""
    return (
        f"Power: {power.seeds:,} seeds a row would show a difference of {power.effect} "
        f"{bleu} (paired t-test, two-sided {LEVEL:.0%}, one row, power 80%). The "
        "differences have a standard deviation s = "
        f"{power.deviation:.2g} between seeds, pooled over rows ({power.degrees} "
        "degrees of freedom); n is the least with P(T > t(n - 1; 0.975)) at least 0.8, "
        "T noncentral t with n - 1 degrees of freedom and noncentrality "
        f"{power.effect} sqrt(n) / s."
    )


def _agreement(sweep: Mapping[str, Any], table: Table) -> list[str]:
    said = [
        _agreement_of(f"Δ{name}", found)
        for quantity, name in table.names.items()
        if (found := table.agreement[quantity]) is not None
    ]
    if not said:
        return []
    base = flatten(sweep["config"])
    scale = "at the paper's own setting"
    if setting_differences(sweep["config"]):
        sizes = [
            f"{name} {cell(path, base[path])}"
            for name, path in PAPER_COLUMNS.items()
            if name in ("N", "d_model", "steps")
        ]
        scale = (
            "as a trend at this scale, no reproduction ("
            f"{', '.join([base['data.corpus'], *sizes])})"
        )
    told = [row for row in table.rows if row.tests.distinguishable]
    signs = [
        agreements.same_sign(row.deltas["bleu"], row.deltas["paper_bleu"])
        for row in told
    ]
    known = [sign for sign in signs if sign is not None]
    if known:
        said.append(
            f"of the {_rows(len(known))} distinguishable from base, {sum(known)} "
            f"{'has' if sum(known) == 1 else 'have'} the paper's sign of "
            f"Δ{table.names['bleu']}"
        )
    resampled = any(found and found.interval for found in table.agreement.values())
    how = (
        " Intervals: 95%, percentile bootstrap over rows "
        f"({agreements.RESAMPLES:,} resamples, seed {agreements.SEED})."
    )
    return [
        f"Agreement with the paper {scale}: {'; '.join(said)}."
        f"{how if resampled else ''} ≠: the sign is not the paper's."
    ]


def _agreement_of(quantity: str, found: agreements.Agreement) -> str:
    text = (
        f"{quantity} has the paper's sign in {found.same} of the {_rows(found.signed)} "
        "where the paper has a difference"
    )
    if found.tau is not None and found.rows > 1:
        text += f", Kendall's tau-b {found.tau:+.2f}"
        if found.interval is not None:
            low, high = found.interval
            text += f" [{low:+.2f}, {high:+.2f}]"
        text += f" over {_rows(found.rows)}"
    return text


def _texts(sentences: Sentences) -> list[str]:
    """What stands against testing or believing the texts."""
    notes = []
    if sentences.untested:
        runs: dict[str, list[str]] = {}
        for run, why in sentences.untested.items():
            runs.setdefault(why, []).append(run)
        listed = "; ".join(f"{some(names)}: {why}" for why, names in runs.items())
        notes.append(
            f"Sentences not tested: {listed}. python -m experiments.evaluate "
            "--run=WORKDIR/runs/ROW/seedK scores a run again and stores its texts."
        )
    if sentences.mismatches:
        listed = ", ".join(f"{run} {n}" for run, n in sentences.mismatches.items())
        notes.append(
            "Sentences with a word that the reference has in another Unicode normal "
            f"form (NFC, NFD), which BLEU counts as wrong: {listed}."
        )
    return notes


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _span(counts: Any) -> str:
    """``n = 5``, or ``n = 2 to 5``."""
    low, high = min(found := list(counts)), max(found)
    return f"n = {low}" if low == high else f"n = {low} to {high}"
