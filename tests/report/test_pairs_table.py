"""Table 2: sweeps of two language pairs side by side, beside the paper's numbers."""

import csv
import io
import json
import shutil

import pytest

from experiments import command, table2
from tests.report import written_sweeps as written
from transformer_ablation.report.consistency import TableError
from transformer_ablation.report.pairs_table import read_pairs
from transformer_ablation.report.record import (
    read_sweep,
    run_directory,
    write_record,
    write_sweep,
)
from transformer_ablation.report.render_pairs import render
from transformer_ablation.report.table import Options

# Row, changes, then per language test BLEU and FLOPs as Table 2 prints them.
ROWS = (
    ("base", {}, {"de": (27.3, 3.3e18), "fr": (38.1, 3.3e18)}),
    ("deep", {"model.num_layers": 8}, {"de": (24.6, 2.3e19), "fr": (39.92, 1.4e20)}),
    ("own", {"model.d_ff": 1024}, {}),
)
OURS = {"de": {"base": (20.0, 22.0), "deep": (25.5,)}, "fr": {"base": (31.25, 31.35)}}


def write(folder, language, rows=ROWS, **data):
    """A sweep of a language; BLEU of ``OURS`` by seed."""
    entries = []
    for name, changes, printed in rows:
        bleu, flops = printed.get(language, (None, None))
        paper = {"bleu_test": bleu, "training_flops": flops} if bleu else None
        changes = {"data.target_language": language, **changes}
        entries.append(written.sweep_row(name, changes, paper=paper))
    sweep = written.sweep(entries, (0, 1))
    sweep["config"]["data"] |= {"target_language": language, **data}
    for entry in entries:
        entry["config"]["data"] |= data
    write_sweep(folder, sweep)
    for entry in entries:
        for seed, bleu in enumerate(OURS[language].get(entry["name"], ())):
            score = written.bleu_score(bleu, split="test")
            flops = {"per_step": 10, "training": 2 * 10**15}
            device = {"kind": "cpu", "count": 2, "platform": "cpu", "seconds": 50.0}
            record = written.record(
                entry, seed, scores=[score], flops=flops, device=device
            )
            write_record(run_directory(folder, entry["name"], seed), record)
    return folder


@pytest.fixture
def both(tmp_path):
    return write(tmp_path / "de", "de"), write(tmp_path / "fr", "fr")


def markdown_rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[c.strip() for c in line.strip("|").split(" | ")] for line in lines]
    return {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[2:]}


def test_rows_meet_across_pairs_beside_the_papers_numbers(both):
    options = Options(rate=2e12)
    rows = markdown_rows(render(read_pairs(both, options), "markdown"))
    assert list(rows) == ["base", "deep", "own"]
    base, deep, own = rows.values()
    # 20 and 22: mean 21, deviation sqrt(2).
    assert base["BLEU en-de"] == "21.0 ± 1.4" and base["BLEU en-fr"] == "31.3 ± 0.1"
    assert (base["paper en-de"], base["paper en-fr"]) == ("27.3", "38.1")
    assert (deep["paper en-de"], deep["paper en-fr"]) == ("24.6", "39.92")
    assert deep["BLEU en-de"] == "25.5 (1 of 2)" and deep["BLEU en-fr"] == "pending"
    assert (own["BLEU en-de"], own["paper en-de"]) == ("pending", "")
    assert base["en-de updates"] == "100,000"
    assert base["en-de counted FLOPs"] == "2.0e+15"
    assert base["en-de paper FLOPs"] == "3.3e+18"
    assert deep["en-fr paper FLOPs"] == "1.4e+20"
    notes = "\n".join(read_pairs(both, options).notes)
    for absent in ("blank is equal", "PPL:", "BLEU dev", "train:", "p seeds", "Power"):
        assert absent not in notes  # of columns that this table has not
    assert "BLEU test:" in notes and "cost: " in notes
    # 50 device seconds at 2e12 FLOP/s.
    assert base["en-de time x rate FLOPs"] == "1.0e+14"
    assert "en-de time x rate FLOPs" not in render(read_pairs(both), "markdown")


def test_formats_hold_the_same(both):
    found = read_pairs(both)
    text = render(found)
    assert "21.0 ± 1.4" in text and "39.92" in text and "sacreBLEU signature" in text
    value = json.loads(render(found, "json"))
    assert [pair["pair"] for pair in value["pairs"]] == ["en-de", "en-fr"]
    base = value["pairs"][1]["rows"][0]
    assert base["bleu_test"] == pytest.approx(31.3) and base["paper_bleu_test"] == 38.1
    assert base["bleu_test_by_seed"] == {"0": 31.25, "1": 31.35}
    lines = list(csv.DictReader(io.StringIO(render(found, "csv"))))
    assert len(lines) == 6 and lines[1]["paper_training_flops"] == "2.3e+19"
    assert lines[0]["n"] == "2" and lines[5]["bleu_test"] == ""
    latex = render(found, "latex")
    assert r"21.0 \ensuremath{\pm} 1.4" in latex and r"\toprule" in latex


def test_one_sweep_is_a_table_too(both):
    rows = markdown_rows(render(read_pairs(both[:1]), "markdown"))
    assert rows["base"]["counted FLOPs"] == "2.0e+15"


def test_what_cannot_stand_together_is_refused(tmp_path, both):
    again = write(tmp_path / "again", "de")
    with pytest.raises(TableError, match="is of en-de, as .*de is; name one sweep"):
        read_pairs([both[0], again])
    wider = (*ROWS[:1], ("deep", {"model.num_layers": 9}, {}))
    other = write(tmp_path / "other", "fr", wider)
    with pytest.raises(TableError, match=r"row deep: model.num_layers is 8 .* but 9 "):
        read_pairs([both[0], other])
    blind = write(tmp_path / "blind", "fr", test_split=None)
    with pytest.raises(TableError, match="has no test split"):
        read_pairs([blind])
    with pytest.raises(TableError, match="no such folder"):
        read_pairs([tmp_path / "nowhere"])


def test_what_is_missing_is_said(tmp_path):
    """A failed seed, with its reason; a run without a test score; FLOPs of neither."""
    folder = write(tmp_path / "de", "de")
    entry = read_sweep(folder)["rows"][1]
    failed = written.record(
        entry, 1, status="failed", reason="killed", flops={"per_step": 1, "training": 9}
    )
    write_record(run_directory(folder, "deep", 1), failed)
    own = read_sweep(folder)["rows"][2]
    for seed, changed in enumerate(({"status": "failed"}, {"status": "diverged"})):
        record = written.record(own, seed, reason="no memory", **changed)
        write_record(run_directory(folder, "own", seed), record)
    found = read_pairs([folder], Options(rate=1e9))
    rows = markdown_rows(render(found, "markdown"))
    assert rows["deep"]["BLEU en-de"] == "25.5 (1 of 2)"
    assert rows["own"]["BLEU en-de"] in ("failed", "diverged")
    assert rows["own"]["counted FLOPs"] == ""
    notes = "\n".join(found.notes)
    assert "deep/seed1 failed" in notes and ": killed" in notes
    assert "own/seed0 failed" in notes and ": no memory" in notes
    assert "compiling included, times devices times 1e+09 FLOP/s" in notes
    record = written.record(own, 0, scores=[written.bleu_score(3.0)])
    write_record(run_directory(folder, "own", 0), record)
    record = written.record(own, 1, scores=[written.bleu_score(3.0)])
    write_record(run_directory(folder, "own", 1), record)
    rows = markdown_rows(render(read_pairs([folder]), "markdown"))
    assert rows["own"]["BLEU en-de"] == "no test score"


@pytest.mark.parametrize(("averaged", "told"), [(5, False), (4, True)])
def test_five_checkpoints_are_what_the_paper_averages(tmp_path, averaged, told):
    """Section 6.1, for this table; Table 3's default is one."""
    folder = write(tmp_path / "de", "de")
    shutil.rmtree(folder / "runs")  # they are of another config
    sweep = read_sweep(folder)
    for config in (sweep["config"], *(entry["config"] for entry in sweep["rows"])):
        config["decode"]["average_checkpoints"] = averaged
        config["model"]["num_layers"] -= 1
    write_sweep(folder, sweep)
    (note,) = (n for n in read_pairs([folder]).notes if "Base here is not" in n)
    assert "model.num_layers 5 (paper: 6)" in note
    assert ("decode.average_checkpoints" in note) == told


def test_another_training_of_one_model_is_said(tmp_path, both):
    slower = ("base", {"regularization.dropout_rate": 0.3}, {})
    other = write(tmp_path / "other", "fr", (slower, *ROWS[1:]))
    notes = "\n".join(read_pairs([both[0], other]).notes)
    assert (
        "Not the same in all pairs: base: regularization.dropout_rate 0.1 in en-de, "
        "0.3 in en-fr." in notes
    )
    assert "Not the same" not in "\n".join(read_pairs(both).notes)


def test_command_line(both, capsys, tmp_path):
    run = lambda *given: command.run(table2.COMMAND, list(given))  # noqa: E731
    workdirs = f"--workdirs={both[0]},{both[1]}"
    assert run(workdirs) == 0
    assert "en-fr" in capsys.readouterr().out
    out = tmp_path / "table.tex"
    assert run(workdirs, "--format=latex", f"--out={out}") == 0
    assert "tabular" in out.read_text()
    for given, said in (
        ((), "--workdirs is missing"),
        ((workdirs, "--format=html"), "must be one of text, markdown, latex, csv"),
        ((f"--workdirs={both[0]},{both[0]}",), "name one sweep a language pair"),
    ):
        capsys.readouterr()
        assert run(*given) == 2
        assert said in capsys.readouterr().err
