"""A table as JSON and CSV: every field, unrounded; the unknown is null or blank."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from transformer_ablation.report import agreement
from transformer_ablation.report.agreement import same_sign
from transformer_ablation.report.seed_tests import LEVEL, SeedTest
from transformer_ablation.report.table import Table
from transformer_ablation.report.table_row import Measure, TableRow


def as_json(table: Table) -> str:
    """One object: everything the other formats show; unknown is null."""
    whole = table_object(table)
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def table_object(table: Table) -> dict[str, Any]:
    """The table as plain data, for JSON."""
    return {
        "title": table.title,
        "results_version": table.results_version,
        "metric": table.metric,
        "sustained_flops": table.rate,
        "columns": dict(table.columns),
        "rows": [json_row(row, table) for row in table.rows],
        "tests": _tests(table),
        "power": None if table.power is None else table.power._asdict(),
        "agreement": _agreement(table),
        "notes": list(table.notes),
    }


def _tests(table: Table) -> dict[str, Any]:
    """How the tests of the rows were made."""
    asked = table.options.sentences
    return {
        "level": LEVEL,
        "correction": "holm",
        "seeds": table.options.seed_test,
        "sentences": None
        if asked is None
        else {
            "samples": {k: asked.samples_of(k) for k in asked.kinds},
            "seed": asked.seed,
        },
    }


def _agreement(table: Table) -> dict[str, Any]:
    found = {
        _name(quantity, table): None if value is None else value._asdict()
        for quantity, value in table.agreement.items()
    }
    resampling = {"resamples": agreement.RESAMPLES, "seed": agreement.SEED}
    return {**found, "interval": {"method": "percentile bootstrap", **resampling}}


def json_row(row: TableRow, table: Table) -> dict[str, Any]:
    """``metric``, and that with _test behind it, are the names of BLEU in it."""
    metric, rate = table.metric, table.rate
    measures = {"ppl": row.ppl, metric: row.bleu, f"{metric}_test": row.bleu_test}
    deltas = {_name(k, table): value for k, value in row.deltas.items()}
    signs = {
        _name(q, table): same_sign(row.deltas[q], row.deltas[f"paper_{q}"])
        for q in ("ppl", "bleu")
    }
    return {
        "row": row.name,
        "group": row.group,
        "label": row.label,
        "is_base": row.is_base,
        "seeds": [run.seed for run in row.runs],
        "state": row.state,
        "reason": row.reason,
        "marks": list(row.marks),
        "cells": dict(row.cells),
        "config": row.config,
        "changes": row.changes,
        "other": row.other,
        "parameters": row.parameters,
        "paper_counts": row.paper_counts,
        **{name: m.mean for name, m in measures.items()},
        f"{metric}_averaged": row.averaged.mean,
        "averaged_steps": {str(seed): s for seed, s in row.averaged_steps.items()},
        "n": {name: len(m.values) for name, m in measures.items()},
        "deviations": {name: m.deviation for name, m in measures.items()},
        "deltas": deltas,
        "same_sign_as_paper": signs,
        "ppl_comparable": row.ppl_comparable,
        "tests": _row_tests(row, table),
        "steps": row.steps,
        "seconds": row.seconds,
        "device_seconds": row.device_seconds,
        "flops": {
            "training": row.training_flops,
            "papers_rule": None
            if rate is None or row.device_seconds is None
            else rate * row.device_seconds,
        },
        "paper": row.paper,
        "runs": [
            {**dataclasses.asdict(run), **_values(run.seed, measures)}
            for run in row.runs
        ],
    }


def _name(quantity: str, table: Table) -> str:
    return table.metric if quantity == "bleu" else quantity


def _values(seed: int, measures: Mapping[str, Measure]) -> dict[str, float | None]:
    return {name: measure.values.get(seed) for name, measure in measures.items()}


def _row_tests(row: TableRow, table: Table) -> dict[str, Any]:
    tests = row.tests
    return {
        "basis": tests.basis,
        "p": tests.p,
        "distinguishable": tests.distinguishable,
        "seeds": {_name(q, table): _seed_test(t) for q, t in tests.seeds.items()},
        "sentences": {
            str(seed): {kind: test._asdict() for kind, test in found.items()}
            for seed, found in tests.sentences.items()
        },
    }


def _seed_test(test: SeedTest) -> dict[str, Any]:
    differences = {str(seed): d for seed, d in test.differences.items()}
    return {"n": test.n, **test._asdict(), "differences": differences}


def as_csv(table: Table) -> str:
    """A line a row, under the dotted paths of its fields in the JSON table.

    A list of one thing a seed has the seed in its path. Notes have no place here.
    """
    rows = [dict(_flat(json_row(row, table))) for row in table.rows]
    heads = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, heads, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        name = f"{path}{key}"
        if name == "runs":
            for run in item:
                yield from _flat(run, f"runs.seed{run['seed']}.")
        elif isinstance(item, Mapping):
            yield from _flat(item, f"{name}.")
        elif isinstance(item, list | tuple):
            yield name, json.dumps(item, ensure_ascii=False)
        elif isinstance(item, bool):
            yield name, "true" if item else "false"
        else:
            # csv writes floats by repr: every digit that they have.
            yield name, "" if item is None else item
