"""Four sentences and two rows' translations, small enough to count by hand."""

from sacrebleu.metrics import BLEU

from tests.report import written_sweeps as written
from transformer_ablation.report.comparison.compare import compare
from transformer_ablation.report.comparison.result import Options
from transformer_ablation.report.comparison.runs import find_rows
from transformer_ablation.report.record import run_directory, write_record, write_sweep
from transformer_ablation.report.sentence_tests import Settings
from transformer_ablation.report.translations import write_texts

SOURCES = ["le chat dort ici", "un chien", "fin", "le chien a vu le chat noir"]
REFERENCES = [
    "the cat sat on the mat",
    "a dog barks",
    "the end",
    "the dog saw the cat",
]
BASE = ["the cat sat on the mat", "a cat barks", "the end", "the dog saw a cat"]
OTHER = ["the the the mat", "a dog barks", "the end", "the dog saw a cat"]
NAMES = ("base", "A_h1")
OPTIONS = Options(
    length_starts=(3, 5, 90),
    frequency_starts=(1, 2, 5),
    tests=Settings(samples=50, seed=7),
)


def write_run(workdir, row, hypotheses, seed=0, split="validation", **changes):
    """A finished run with its texts; ``changes`` are of its record.

    ``references``, ``sources`` and ``metric`` among them are not: the last is what its
    BLEU is scored by.
    """
    references = changes.pop("references", REFERENCES)
    sources = changes.pop("sources", SOURCES)
    metric = changes.pop("metric", None) or BLEU()
    value = metric.corpus_score(hypotheses, [references]).score
    steps = (row["config"]["train"]["steps"],)
    score = written.bleu_score(value, steps, split=split)
    score |= {
        "sentences": len(references),
        "signature": str(metric.get_signature()),
    }
    record = written.record(row, seed, scores=[score], **changes)
    folder = run_directory(workdir, row["name"], seed)
    write_record(folder, record)
    pairs = list(zip(sources, references, strict=True))
    write_texts(folder / "translations" / f"{split}.txt", split, hypotheses, pairs)
    return folder


def write_workdir(workdir, seeds=(0,)):
    """Both rows, and C_N2, which no run has begun."""
    rows = written.paper_rows((*NAMES, "C_N2"))
    write_sweep(workdir, written.sweep(rows, seeds))
    for seed in seeds:
        write_run(workdir, rows[0], BASE, seed)
        write_run(workdir, rows[1], OTHER, seed)
    return workdir


def compared(workdir, options=OPTIONS, seeds=None, frequencies="not looked for"):
    found = find_rows(workdir, NAMES, seeds, "validation")
    return compare(found, options, lambda tokens, signature: frequencies)
