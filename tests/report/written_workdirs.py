"""Workdirs written by hand: records, curves and texts, for reports and figures."""

import json

from tests.report import written_sweeps as written
from transformer_ablation.report.record import (
    run_directory,
    write_record,
    write_sweep,
)

ODD = "<b>&\"' | _ % </script> \u2028 \u05e9\u05dc\u05d5\u05dd \x1b"
ARABIC = "\u0645\u0631\u062d\u0628\u0627 123"
SOURCES = ["one", ODD, "three", ARABIC]
REFERENCES = ["eins", "zwei", ODD, "vier"]


def workdir(folder, rows, records, title="a sweep", seeds=(0,)):
    """``sweep.json`` and every record in its place."""
    write_sweep(folder, written.sweep(rows, seeds, title))
    for record in records:
        write_record(run_directory(folder, record["row"], record["seed"]), record)
    return folder


def curves(folder, row, seed, entries):
    """``metrics.jsonl`` of a run from (step, tag, value)."""
    lines = [
        json.dumps({"step": s, "tag": t, "value": v, "seconds": float(s)})
        for s, t, v in entries
    ]
    path = run_directory(folder, row, seed) / "metrics.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def texts(folder, row, seed, hypotheses, sources=SOURCES, references=REFERENCES):
    """Translations of a run with their sources and references."""
    place = run_directory(folder, row, seed) / "translations"
    place.mkdir(exist_ok=True)
    for name, lines in (
        ("", hypotheses),
        (".source", sources),
        (".reference", references),
    ):
        text = "".join(f"{line}\n" for line in lines)
        (place / f"validation{name}.txt").write_bytes(text.encode())


def table3(folder, seeds=(0, 1)):
    """Five rows of Table 3 and every state of a run; curves and texts of some.

    ``C_N2`` diverged, ``D_drop0.0`` runs, ``E_learned_pos`` has not begun.
    """
    names = ("base", "A_h1", "A_h4", "C_N2", "D_drop0.0", "E_learned_pos")
    rows = written.paper_rows(names)
    records = []
    for i, row in enumerate(rows[:3]):
        for seed in seeds:
            bleu = 25.0 - i / 3 + (seed - 0.5) * (i + 1) / 7
            device = {"kind": "cpu", "count": 1, "platform": "cpu"}
            device["seconds"] = 3600.0 * (i + 1)
            record = written.scored(row, 5.0 + i / 7 + seed / 9, bleu, seed)
            records.append(record | {"device": device})
    for seed in seeds:
        why = {"status": "diverged", "reason": f"the loss is {ODD}", "step": 4000}
        records.append(written.record(rows[3], seed, **why))
        records.append(written.record(rows[4], seed, status="running", step=500))
    workdir(folder, rows, records, f"Table 3 {ODD}", seeds)
    for i, row in enumerate(rows[:5]):
        for seed in seeds:
            entries = [(s, "train/loss", 9 - s / 20 + i) for s in range(1, 101)]
            entries += [(s, "validation/perplexity", 200 / s) for s in (50, 100)]
            curves(folder, row["name"], seed, sorted(entries))
    for row in rows[:3]:
        texts(folder, row["name"], seeds[0], [row["name"], ODD, ARABIC, "vier"])
    return folder
