"""Curves of runs, thinned, and sentences at the same places of all rows."""

import json
import math

import pytest

from tests.report import written_sweeps as written
from tests.report import written_workdirs as places
from transformer_ablation.report.curves import MOST_POINTS, read_curves, thinned
from transformer_ablation.report.metrics import MetricsError, read_metrics
from transformer_ablation.report.record import read_records, run_directory
from transformer_ablation.report.samples import places as sample_places
from transformer_ablation.report.samples import read_samples


@pytest.fixture
def folder(tmp_path):
    rows = written.paper_rows(("base", "A_h1"))
    records = [written.scored(row, 5.0, 25.0) for row in rows]
    return places.workdir(tmp_path, rows, records)


def test_thinned_curve_keeps_ends_peaks_and_gaps():
    points = [(s, math.sin(s / 40)) for s in range(1, 5001)]
    points[2500] = (2501, 90.0)
    points[2600] = (2601, -90.0)
    points[2700] = (2701, None)
    kept = thinned(points)
    assert len(kept) <= MOST_POINTS
    assert {points[0], points[-1], points[2500], points[2600], points[2700]} <= set(
        kept
    )
    assert kept == sorted(kept, key=lambda p: p[0]) and set(kept) <= set(points)
    for start in range(0, 5000, 100):  # nowhere a hole
        assert any(start < step <= start + 100 for step, _ in kept)


def test_short_curve_is_whole():
    points = [(s, 1.0) for s in range(MOST_POINTS)]
    assert thinned(points) == points


def test_curves_are_the_runs_values_with_bleu_of_single_checkpoints(folder):
    entries = [(1, "train/loss", 8.1234567), (1, "train/nll", 8.0)]
    entries += [(2, "train/loss", None), (2, "validation/perplexity", 30.5)]
    places.curves(folder, "base", 0, entries)
    base, other = read_curves(folder, read_records(folder)[::-1], "validation")
    assert (base.row, base.seed, base.fault, base.thinned) == ("base", 0, None, False)
    assert base.points == {
        "train/loss": [(1, 8.1235), (2, None)],
        "validation/perplexity": [(2, 30.5)],
        "validation/bleu": [(100_000, 25.0)],
    }
    assert other.points == {"validation/bleu": [(100_000, 25.0)]}


def test_bleu_curve_has_no_score_of_another_search(tmp_path):
    """``evaluate --beam_size=1`` afterwards adds greedy scores of one checkpoint."""
    (row,) = written.paper_rows(("base",))
    scores = [
        written.bleu_score(20.0, (50_000,)),
        written.bleu_score(25.0),
        written.bleu_score(24.0, beam_size=1),
        written.bleu_score(24.5, length_penalty_alpha=1.0),
        written.bleu_score(19.0, (80_000,), beam_size=1),
        written.bleu_score(26.0, (90_000, 100_000)),
        written.bleu_score(30.0, split="test"),
    ]
    record = written.record(row, scores=scores)
    workdir = places.workdir(tmp_path, [row], [record])
    (found,) = read_curves(workdir, [record], "validation")
    assert found.points == {"validation/bleu": [(50_000, 20.0), (100_000, 25.0)]}


def test_broken_metrics_are_told_with_their_line_and_stop_nothing(folder):
    places.curves(folder, "base", 0, [(s, "train/loss", 1.0) for s in (1, 2, 3)])
    path = run_directory(folder, "base", 0) / "metrics.jsonl"
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:30] + ' "train/loss"'
    path.write_text("\n".join(lines) + "\n")
    by_row = {c.row: c for c in read_curves(folder, read_records(folder), "validation")}
    assert f"{path}, line 2: not a metric" in (by_row["base"].fault or "")
    assert by_row["A_h1"].fault is None
    with pytest.raises(MetricsError, match="line 2"):
        read_metrics(path.parent)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            '{"step": "1", "tag": "train/loss", "value": 1, "seconds": 1}',
            "step must be",
        ),
        ('{"step": 1, "tag": "train/loss", "value": "x", "seconds": 1}', "value a num"),
        ('{"step": 1, "tag": "train/loss", "value": 1}', "lacks one of"),
        ('["train/loss"]', "lacks one of"),
    ],
)
def test_line_that_is_no_metric_is_told(folder, line, fault):
    run = run_directory(folder, "base", 0)
    (run / "metrics.jsonl").write_text(line + "\n")
    for tags in (None, ["train/loss"]):
        with pytest.raises(MetricsError, match=f"line 1: .*{fault}"):
            read_metrics(run, tags)


def test_value_that_is_not_finite_is_a_gap(folder):
    run = run_directory(folder, "base", 0)
    line = '{"step": %d, "tag": "train/loss", "value": %s, "seconds": 1}\n'
    values = ("NaN", "Infinity", "2.5")
    (run / "metrics.jsonl").write_text("".join(line % v for v in enumerate(values)))
    found = {c.row: c for c in read_curves(folder, read_records(folder), "validation")}
    assert found["base"].points["train/loss"] == [(0, None), (1, None), (2, 2.5)]


def test_metrics_of_some_tags_are_those_of_all_lines(folder):
    """A tag that stands in another place than its own is no value of it."""
    run = run_directory(folder, "base", 0)
    tags = ["train/loss", "train/loss_of_x", "validation/perplexity"]
    places.curves(folder, "base", 0, [(s, tags[s % 3], s * 1.5) for s in range(30)])
    line = {"step": 1, "tag": "x/y", "value": 1.0, "seconds": 1.0, "z": "train/loss"}
    with open(run / "metrics.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
        file.write('{"step": 99, "tag": "train/loss", "va')  # being written
    some = ["train/loss", "validation/perplexity"]
    whole = [e for e in read_metrics(run) if e["tag"] in some]
    assert read_metrics(run, some) == whole and len(whole) == 20


def test_sample_places_are_spread_over_the_split():
    assert sample_places(3000) == [187, 562, 937, 1312, 1687, 2062, 2437, 2812]
    assert sample_places(3) == [0, 1, 2] and sample_places(0) == []


def test_samples_are_the_same_sentences_of_all_rows(folder):
    hypotheses = ["a", places.ODD, "c" * 1000, ""]
    places.texts(folder, "base", 0, ["w", "x", "y", "z"])
    places.texts(folder, "A_h1", 0, hypotheses)
    records = sorted(read_records(folder), key=lambda r: r["row"] != "base")
    base, other = read_samples(folder, records, "validation")
    assert [s.line for s in base.sentences] == [1, 2, 3, 4]
    assert [s.source for s in base.sentences] == places.SOURCES
    assert [s.reference for s in other.sentences] == places.REFERENCES
    assert other.file == "validation.txt"
    shown = [s.hypothesis for s in other.sentences]
    assert shown[:2] == ["a", places.ODD] and shown[3] == ""
    assert len(shown[2]) == 600 and shown[2].endswith("c…")


def test_samples_of_other_sentences_are_left_out(folder):
    places.texts(folder, "base", 0, ["w", "x", "y", "z"])
    places.texts(folder, "A_h1", 0, ["w", "x", "y", "z"], sources=["other"] * 4)
    records = sorted(read_records(folder), key=lambda r: r["row"] != "base")
    base, other = read_samples(folder, records, "validation")
    assert base.fault is None and other.sentences == []
    assert "not those of the rows before" in other.fault


def test_samples_need_translations_and_do_without_sources(folder):
    places.texts(folder, "base", 0, ["w", "x"])  # of 4 sources: not theirs
    records = sorted(read_records(folder), key=lambda r: r["row"] != "base")
    base, other = read_samples(folder, records, "validation")
    assert base.sentences[0][1:] == (None, None, "w")
    assert other.fault == "no stored translations of validation"
