"""What a report tells of one row: config, runs, scores, tests, translations."""

import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformer_ablation.report.cells import measured, state_cell
from transformer_ablation.report.columns import row_differences, word
from transformer_ablation.report.page.document import escape, isolated
from transformer_ablation.report.record import sessions
from transformer_ablation.report.samples import Sample, Samples
from transformer_ablation.report.selection import DECODE_FIELDS
from transformer_ablation.report.table_row import RunState, TableRow

Record = Mapping[str, Any]


def row_details(
    row: TableRow,
    id: str,
    base: TableRow | None,
    records: Sequence[Record],
    samples: Samples | None,
    names: Mapping[str, str],
) -> str:
    """Everything known of a row, folded below its name.

    Args:
      records: those of this row, by seed.
      names: the table's, of ``bleu`` and ``ppl``.
    """
    by_seed = {record["seed"]: record for record in records}
    parts = [
        ("Differences to base", _differences(row, base)),
        ("Runs", _runs(row.runs, by_seed)),
        ("Scores", _scores(records)),
        ("Tests against base", _tests(row, names)),
        ("Made with", _made_with(records)),
        ("Sample translations", _samples(samples)),
    ]
    marks = "".join(f"<p>§ {isolated(mark)}</p>" for mark in row.marks)
    body = "".join(f"<h3>{head}</h3>\n{text}\n" for head, text in parts if text)
    return (
        f'<details id="{escape(id)}" class="row"><summary><strong>'
        f"{isolated(row.name)}</strong> {isolated(_summary(row, names))}</summary>\n"
        f"<p>{isolated(row.label)}</p>{marks}\n{body}</details>"
    )


def _summary(row: TableRow, names: Mapping[str, str]) -> str:
    cells = {} if row.is_base else row.cells
    changes = [*(f"{head} {cell}" for head, cell in cells.items()), row.other]
    facts = [
        ", ".join(change for change in changes if change),
        f"{names['bleu']} {measured(row.bleu, 1)}" if row.bleu.values else "",
        f"{names['ppl']} {measured(row.ppl, 2)}" if row.ppl.values else "",
        state_cell(row),
    ]
    return " · ".join(fact for fact in facts if fact)


def html_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A small table of data; None is a blank cell, and a blank column is left out."""
    rows = list(rows)
    known = [i for i in range(len(heads)) if any(r[i] is not None for r in rows)]
    lines = "\n".join(
        "<tr>"
        + "".join(f"<td>{'' if r[i] is None else isolated(r[i])}</td>" for i in known)
        + "</tr>"
        for r in rows
    )
    head = "".join(f'<th scope="col">{escape(heads[i])}</th>' for i in known)
    return (
        '<div class="wide"><table class="facts">\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody></table></div>"
    )


def _differences(row: TableRow, base: TableRow | None) -> str:
    if row.is_base:
        return "<p>None: this row is base.</p>"
    if base is None:
        return "<p>The sweep has no row that is base.</p>"
    found = row_differences(base.config, row.config)
    rows = [(path, word(old), word(new)) for path, (old, new) in found.items()]
    return html_table(("field", "base", "this row"), rows)


def _runs(runs: Sequence[RunState], by_seed: Mapping[int, Record]) -> str:
    phases = ("compile", "train", "evaluate")
    rows = []
    for run in runs:
        record = by_seed.get(run.seed) or {}
        seconds = record.get("seconds") or {}
        made = sessions(record) if record else []
        rows.append(
            (
                run.seed,
                run.state,
                run.reason,
                run.step,
                *(_seconds(seconds.get(phase)) for phase in phases),
                _in_turn(_machine(each["device"]) for each in made),
                _in_turn(_commit(each["commit"]) for each in made),
            )
        )
    heads = [f"{phase}, s" for phase in phases]
    return html_table(
        ("seed", "state", "reason", "update", *heads, "device", "commit"), rows
    )


def _in_turn(values: Iterable[str | None]) -> str | None:
    """Of the processes that made a run, one after the other."""
    known = [value for value in values if value is not None]
    return ", then ".join(each for each, _ in itertools.groupby(known)) or None


def _machine(device: Record | None) -> str | None:
    if not device:
        return None
    return f"{word(device.get('count'))} x {word(device.get('kind'))}"


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}"


def _commit(commit: Record | None) -> str | None:
    if not commit or not commit.get("hash"):
        return None
    changed = " with uncommitted changes" if commit.get("dirty") else ""
    return f"{commit['hash']}{changed}"


def _scores(records: Sequence[Record]) -> str:
    """Every score of the records, those too that the table does not show."""
    rows = [
        (
            record["seed"],
            score["split"],
            score["metric"],
            score["value"],
            score["sentences"],
            _updates(score["steps"]),
            score["unfinished"],
            _decoding(score["decode"]),
            score["signature"],
        )
        for record in records
        for score in record["scores"]
    ]
    heads = (
        "seed, split, metric, value, sentences, update, unfinished, decoding, signature"
    )
    return html_table(heads.split(", "), rows) if rows else "<p>None yet.</p>"


def _updates(steps: Sequence[int]) -> str:
    listed = ", ".join(map(str, steps))
    return listed if len(steps) == 1 else f"average of {listed}"


def _decoding(decode: Record | None) -> str | None:
    if not decode:
        return None
    return ", ".join(f"{f} {word(decode[f])}" for f in DECODE_FIELDS if f in decode)


def _tests(row: TableRow, names: Mapping[str, str]) -> str:
    tests = row.tests
    rows: list[tuple[Any, ...]] = []
    for quantity, test in tests.seeds.items():
        interval = None
        if test.interval is not None:
            interval = " to ".join(f"{end:+.4g}" for end in test.interval)
        rows.append(
            (
                f"{names[quantity]} over {test.n} seed{'s' * (test.n != 1)}",
                f"{test.mean:+.4g}",
                interval,
                _p(test.p),
                _p(test.adjusted),
                None,
            )
        )
    for seed, found in tests.sentences.items():
        for kind, one in found.items():
            name = f"{names['bleu']} over sentences, seed {seed}, {kind}"
            p = (_p(one.p), _p(one.adjusted))
            rows.append((name, None, None, *p, one.signature))
    if not rows:
        return ""
    heads = "test, difference, 95% t interval, p, p by Holm, signature"
    return html_table(heads.split(", "), rows)


def _p(p: float | None) -> str | None:
    return None if p is None else f"{p:.3g}"


def _made_with(records: Sequence[Record]) -> str:
    """Command and versions, once for all seeds that share them."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for made in sessions(record):
            command, packages = made["command"] or "unknown", made["packages"] or {}
            line = command if isinstance(command, str) else shlex.join(command)
            versions = ", ".join(f"{k} {word(v)}" for k, v in packages.items())
            step = made["from_step"]
            seed = f"{record['seed']}{f' from update {step + 1:,}' if step else ''}"
            found.setdefault((line, versions), []).append(seed)
    rows = [(", ".join(seeds), *key) for key, seeds in found.items()]
    return html_table(("seed", "command", "versions"), rows) if rows else ""


def _samples(samples: Samples | None) -> str:
    if samples is None or not samples.sentences:
        fault = samples and samples.fault
        return f"<p>None: {isolated(fault)}.</p>" if fault else ""
    lines = "\n".join(_sentence(sentence) for sentence in samples.sentences)
    return (
        f'<p class="faint">Seed {samples.seed}, {isolated(samples.file)}</p>\n'
        f'<dl class="sentences">\n{lines}\n</dl>'
    )


def _sentence(sentence: Sample) -> str:
    parts = (
        ("source", sentence.source),
        ("reference", sentence.reference),
        ("hypothesis", sentence.hypothesis),
    )
    lines = "".join(
        f'<dd class="{name}"><span class="faint">{name}</span> '
        f'<span dir="auto">{escape(text)}</span></dd>'
        for name, text in parts
        if text is not None
    )
    return f"<div><dt>line {sentence.line}</dt>{lines}</div>"
