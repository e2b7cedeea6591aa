"""The table: the paper's columns and numbers, differences, and what it refuses."""

import json
import math
import re

import pytest

from tests.report import written_sweeps as written
from transformer_ablation.config import of_architecture
from transformer_ablation.report.cells import millions, number
from transformer_ablation.report.consistency import TableError
from transformer_ablation.report.render import render
from transformer_ablation.report.table import Options, build_table

THREE = ("base", "A_h1", "B_dk16")


def three_rows(paper=True):
    rows = written.paper_rows(THREE)
    return rows if paper else [{**row, "paper": None} for row in rows]


def as_rows(sweep, records):
    """The JSON rows by name."""
    whole = json.loads(render(build_table(sweep, records), "json"))
    return {row["row"]: row for row in whole["rows"]}


def text_line(text, name):
    """The one line of a text table that holds the row."""
    table = text.split("\n\n")[1].splitlines()
    lines = [line for line in table if name in line.split()]
    assert len(lines) == 1
    return lines[0]


def headings(markdown):
    line = next(line for line in markdown.splitlines() if line.startswith("|"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def markdown_row(markdown, name):
    """The row's cells by heading."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    cells = [[c.strip() for c in line[1:-1].split("|")] for line in lines]
    (row,) = [c for c in cells if c[cells[0].index("row")] == name]
    return dict(zip(cells[0], row, strict=True))


def test_finished_rows_show_scores_and_differences_to_base():
    rows = three_rows()
    records = [
        written.scored(rows[0], 5.25, 24.5),
        written.scored(rows[1], 5.5, 23.75),
        written.scored(rows[2], 5.125, 24.75),
    ]
    found = as_rows(written.sweep(rows), records)
    assert found["A_h1"]["ppl"] == 5.5
    assert found["A_h1"]["deltas"]["ppl"] == 0.25  # 5.5 - 5.25
    assert found["A_h1"]["deltas"]["bleu"] == -0.75  # 23.75 - 24.5
    assert found["B_dk16"]["deltas"]["ppl"] == -0.125
    # The paper: 5.29 against 4.92, 24.9 against 25.8.
    assert found["A_h1"]["deltas"]["paper_ppl"] == pytest.approx(0.37)
    assert found["A_h1"]["deltas"]["paper_bleu"] == pytest.approx(-0.9)
    assert found["A_h1"]["paper"] == {
        "ppl": 5.29,
        "bleu": 24.9,
        "parameters_millions": None,
        "bleu_test": None,  # of Table 2
        "training_flops": None,
    }
    cells = markdown_row(
        render(build_table(written.sweep(rows), records), "markdown"), "A_h1"
    )
    assert cells["PPL dev"] == "5.50" and cells["BLEU dev"] == "23.8"
    assert cells["ΔPPL"] == "+0.25" and cells["paper ΔPPL"] == "+0.37"
    assert cells["ΔBLEU"] == "-0.8" and cells["paper ΔBLEU"] == "-0.9"


def test_base_row_shows_no_difference_to_itself():
    rows = three_rows()
    table = build_table(written.sweep(rows), [written.scored(rows[0], 5.0, 20.0)])
    cells = markdown_row(render(table, "markdown"), "base")
    assert cells.get("ΔPPL", "") == "" and cells["paper ΔPPL"] == ""


def test_twenty_rows_print_the_cells_of_the_papers_table():
    rows = written.paper_rows()
    markdown = render(build_table(written.sweep(rows), []), "markdown")
    symbols = {"p_drop": "P_drop", "eps_ls": "ε_ls"}
    base = {"N": 6, "d_model": 512, "d_ff": 2048, "h": 8, "d_k": 64, "d_v": 64}
    base |= {"p_drop": 0.1, "eps_ls": 0.1, "steps": 100_000}
    for name, _, printed, ppl, bleu, _ in written.PAPER:
        row = markdown_row(markdown, name)
        printed = base if name == "base" else printed
        for symbol in base:
            value = printed.get(symbol)
            expected = "" if value is None else str(value)
            if symbol == "steps" and value:
                expected = f"{value // 1000}K"
            assert row[symbols.get(symbol, symbol)] == expected, (name, symbol)
        assert float(row["paper PPL"]) == ppl and float(row["paper BLEU"]) == bleu
        assert row["state"] == "pending"


def test_groups_are_headed_once_and_separated():
    text = render(build_table(written.sweep(written.paper_rows()), []))
    starts = [line.split()[0] for line in text.splitlines() if line.startswith("(")]
    assert starts == ["(A)", "(B)", "(C)", "(D)", "(E)"]
    # base, A, B, C, D, E and big: a rule above each and one below the last.
    assert len(re.findall(r"^-{60,}$", text, re.MULTILINE)) == 8


def test_learned_positions_are_said_in_words_across_the_blank_cells():
    rows = written.paper_rows()
    text = render(build_table(written.sweep(rows), []))
    words = "learned positions instead of sinusoidal"
    line = text_line(text, "E_learned_pos")
    assert words in line
    # The words hide no column: the paper's PPL still ends where base's does.
    end = line.index("4.92") + 4
    assert text_line(text, "base")[end - 4 : end] == "4.92"
    assert as_rows(written.sweep(rows), [])["E_learned_pos"]["changes"] == words


def test_full_table_fits_160_letters_and_is_never_cut():
    rows = written.paper_rows()
    records = []
    for i, row in enumerate(rows):
        for seed in (0, 1, 2):
            score = written.scored(row, 10.5 + i + seed, 30.5 - i + seed, seed)
            steps = (row["config"]["train"]["steps"],)
            score["scores"].append(written.bleu_score(20.5 + seed, steps, "test"))
            records.append(score)
    text = render(build_table(written.sweep(rows, (0, 1, 2)), records))
    assert max(map(len, text.splitlines())) <= 160
    assert "…" not in text and "learned positions instead of sinusoidal" in text


def test_seeds_give_mean_and_sample_standard_deviation():
    rows = three_rows()
    values = {"base": [20.0, 21.0, 25.0], "A_h1": [18.0, 19.0], "B_dk16": [17.0]}
    records = [
        written.scored(row, 5.0, bleu, seed)
        for row in rows
        for seed, bleu in enumerate(values[row["name"]])
    ]
    table = build_table(written.sweep(rows, (0, 1, 2)), records)
    found = {row.name: row for row in table.rows}
    assert found["base"].bleu.mean == 22.0
    # Squared distances 4 + 1 + 9 over n - 1 = 2.
    assert found["base"].bleu.deviation == pytest.approx(math.sqrt(7))
    # Over the two seeds that both have: 18 - 20 and 19 - 21, not 18.5 - 22.
    assert found["A_h1"].deltas["bleu"] == -2.0
    assert found["B_dk16"].bleu.deviation is None
    markdown = render(table, "markdown")
    assert markdown_row(markdown, "base")["BLEU dev"] == "22.0 ± 2.6"
    assert markdown_row(markdown, "B_dk16")["BLEU dev"] == "17.0"
    assert markdown_row(markdown, "B_dk16")["state"] == "1 of 3, 2 pending"


def test_only_finished_seeds_are_averaged():
    rows = three_rows()
    half = written.scored(rows[0], 9.0, 1.0, 1)
    records = [written.scored(rows[0], 5.0, 20.0), {**half, "status": "preempted"}]
    found = as_rows(written.sweep(rows, (0, 1)), records)
    assert found["base"]["bleu"] == 20.0 and found["base"]["ppl"] == 5.0
    assert found["base"]["state"] == "preempted"
    assert [run["bleu"] for run in found["base"]["runs"]] == [20.0, None]


def test_unfinished_rows_show_state_and_full_reason_below():
    rows = written.paper_rows(("base", "A_h1", "A_h4", "A_h16", "C_N2"))
    reason = "RuntimeError: the worker ran out of memory while compiling the step"
    records = [
        written.record(rows[0], status="running", step=300),
        written.record(rows[1], status="failed", reason=reason, step=None),
        written.record(rows[2], status="diverged", reason="loss is NaN", step=40),
        written.record(rows[3], status="preempted", step=500),
    ]
    table = build_table(written.sweep(rows), records)
    text, markdown = render(table), render(table, "markdown")
    assert text_line(text, "base").endswith("running 300/100000")
    assert "failed: RuntimeError: the worker" in text_line(text, "A_h1")
    assert "compiling" not in text_line(text, "A_h1")
    assert f"A_h1/seed0 failed: {reason}" in " ".join(text.split())
    assert "diverged: loss is NaN" in text_line(text, "A_h4")
    assert "A_h4/seed0 diverged at update 40: loss is NaN" in text
    assert markdown_row(markdown, "A_h16")["state"] == "preempted 500/100000"
    assert markdown_row(markdown, "C_N2")["state"] == "pending"
    assert "Not started: 1 run." in text
    found = as_rows(written.sweep(rows), records)
    assert found["A_h1"]["reason"] == reason and found["A_h1"]["ppl"] is None
    assert found["C_N2"]["parameters"] is None
    assert found["C_N2"]["state"] == "pending"


def test_own_sweep_shows_only_varied_columns_and_other_changes_in_words():
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row("shallow", {"model.num_layers": 3}),
        written.sweep_row("window", {"model.attention_window": 5}),
        written.sweep_row("warm", {"optimizer.warmup_steps": 300}),
    ]
    table = build_table(
        written.sweep(rows), [written.scored(r, 5.0, 20.0) for r in rows]
    )
    markdown = render(table, "markdown")
    shown = headings(markdown)
    assert shown[:4] == ["row", "N", "optimizer.warmup_steps", "other"]
    assert not {"d_model", "P_drop", "steps", "paper PPL", "state"} & set(shown)
    assert markdown_row(markdown, "shallow")["N"] == "3"
    assert markdown_row(markdown, "window")["other"] == (
        "attention window 5 instead of none"
    )
    assert markdown_row(markdown, "warm")["optimizer.warmup_steps"] == "300"
    assert markdown_row(markdown, "warm")["other"] == ""
    assert "reproduction" not in markdown


def test_sizes_need_no_run():
    """A blank would read as base's; a sweep.json of before has no counts."""
    rows = written.paper_rows(THREE)
    rows[1]["parameters"] = {"total": 63_082_496, "embedding": 1}
    rows[1]["flops"] = {"per_step": 20, "training": 2_000_000}
    failed = written.record(rows[2], status="failed", parameters=None, flops=None)
    written_by = written.sweep(rows), [written.scored(rows[0], 5.0, 20.0), failed]
    markdown = render(build_table(*written_by), "markdown")
    sizes = {n: markdown_row(markdown, n)["params ×10⁶"] for n in THREE}
    assert sizes == {"base": "65.1", "A_h1": "63.1", "B_dk16": "?"}
    assert "In the columns of the config a blank is equal to base; in the" in markdown
    found = as_rows(*written_by)
    assert found["A_h1"]["parameters"]["total"] == 63_082_496
    assert found["A_h1"]["flops"]["training"] == 2_000_000
    assert found["B_dk16"]["parameters"] is None  # for programs the unknown is null
    # A record has what was trained, whatever was planned.
    rows[0]["parameters"] = {"total": 1}
    assert as_rows(*written_by)["base"]["parameters"]["total"] == 65_126_400
    unknown = render(build_table(written.sweep(rows[2:]), [failed]), "markdown")
    assert "params" not in unknown


def test_base_without_a_row_is_described_and_gives_no_differences():
    rows = written.paper_rows(("A_h1",))
    table = build_table(written.sweep(rows), [written.scored(rows[0], 5.0, 20.0)])
    assert set(table.rows[0].deltas.values()) == {None}
    assert "base, which has no row: N 6, d_model 512" in " ".join(render(table).split())


def test_last_score_with_the_configs_settings_is_used():
    (row,) = written.paper_rows(("base",))
    scores = [
        written.bleu_score(1.0, (50_000,)),
        written.bleu_score(2.0),
        written.bleu_score(3.0),
        written.bleu_score(4.0, beam_size=1),
        written.bleu_score(5.0, (99_000, 100_000)),
        written.bleu_score(6.0, split="test"),
        written.ppl_score(7.0),
        written.bleu_score(8.0, (50_000,)),
    ]
    found = as_rows(written.sweep([row]), [written.record(row, scores=scores)])
    assert found["base"]["bleu"] == 3.0
    assert found["base"]["bleu_test"] == 6.0
    assert found["base"]["ppl"] == 7.0


def test_score_that_is_unknown_is_not_a_number():
    (row,) = written.paper_rows(("base",))
    scores = [written.ppl_score(None), written.bleu_score(0.0)]
    record = written.record(row, scores=scores, reason="PPL is not finite")
    found = as_rows(written.sweep([row]), [record])
    assert found["base"]["ppl"] is None
    assert found["base"]["bleu"] == 0.0
    table = build_table(written.sweep([row]), [record])
    assert "Finished without a score: base/seed0 (PPL)." in render(table)


def changed_score(record, index, **keys):
    """The record with keys of one of its scores changed."""
    scores = [dict(score) for score in record["scores"]]
    scores[index] |= keys
    return {**record, "scores": scores}


def other_data(record, **keys):
    return {**record, "data": {**record["data"], **keys}}


def table_of_text(manifest):
    rows = three_rows()
    scored = [written.scored(row, 5.0, 20.0) for row in rows]
    for record in scored:
        steps = record["scores"][0]["steps"]
        record["scores"].append(written.bleu_score(21.0, steps, "test"))
    records = [other_data(record, manifest=manifest) for record in scored]
    return build_table(written.sweep(rows), records)


def test_text_that_is_not_the_published_one_is_called_so():
    """Beside the name of every split, also in a table of several sweeps."""
    table = table_of_text({"corpus": "wmt14", "official": False})
    told = "wmt14 en-de, not the published text, split"
    ppl, dev, test = (note for note in table.notes if told in note)
    assert ppl.startswith("PPL") and dev.startswith("BLEU dev: ")
    assert test.startswith(f"BLEU test: {told} test, 3,000 sentences;")
    assert [note for note in table.run_notes if told in note] == [test]
    # Published, of no published name, and of a record that does not say.
    for manifest in ({"official": True}, {}, None):
        notes = table_of_text(manifest).notes
        assert any("wmt14 en-de, split test, 3,000" in note for note in notes)
        assert not any("published" in note for note in notes)


def test_only_the_rows_of_other_text_are_called_so():
    rows = three_rows()
    records = [written.scored(row, 5.0, 20.0) for row in rows]
    records[1] = other_data(records[1], manifest={"official": False})
    notes = build_table(written.sweep(rows), records).notes
    told = "wmt14 en-de, not the published text in A_h1, split validation"
    assert sum(told in note for note in notes) == 2


def test_what_is_unusual_in_the_text_is_told_in_the_corpus_words_once():
    why = "test: 2,737 sentences, but newstest2014 has 3,003"
    table = table_of_text({"corpus": "wmt14", "unusual": [why]})
    for notes in (table.notes, table.run_notes):
        assert [note for note in notes if "newstest" in note] == [f"Text: {why}."]


MIXTURES = {
    "version": (lambda r: {**r, "results_version": 2}, ["results_version", "1", "2"]),
    "signature": (
        lambda r: changed_score(r, 1, signature="nrefs:1|tok:none"),
        ["sacreBLEU signature", written.SIGNATURE, "nrefs:1|tok:none"],
    ),
    "manifest": (
        lambda r: other_data(r, manifest_hash="99"),
        ["data manifest hash", written.MANIFEST, "99"],
    ),
    "vocabulary": (
        lambda r: other_data(r, vocabulary_hash="98"),
        ["vocabulary hash", written.VOCABULARY, "98"],
    ),
    "sentences": (
        lambda r: changed_score(r, 1, sentences=2737),
        ["number of sentences", "3000", "2737"],
    ),
    "tokens": (
        lambda r: changed_score(r, 0, target_tokens=80_000),
        ["number of target tokens", "81234", "80000"],
    ),
    "averaged": (
        lambda r: changed_score(r, 1, steps=[99_000, 100_000]),
        ["average of 2 checkpoints (99000, 100000)", "average_checkpoints = 1"],
    ),
    "beam": (
        lambda r: changed_score(r, 1, decode={"beam_size": 1}),
        ["beam_size 1 (config: 4)"],
    ),
    "config": (
        lambda r: {**r, "config": written.config_with({"model.d_ff": 99})},
        ["model.d_ff = 99", "2048"],
    ),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_mixture_is_refused_with_rows_and_values(name):
    mix, expected = MIXTURES[name]
    rows = three_rows()
    good = [written.scored(row, 5.0, 20.0) for row in rows]
    build_table(written.sweep(rows), good)
    bad = [good[0], mix(good[1]), good[2]]
    with pytest.raises(TableError) as error:
        build_table(written.sweep(rows), bad)
    for text in ["A_h1/seed0", *expected]:
        assert text in str(error.value)


def test_row_with_a_filter_is_shown_and_another_manifest_still_refused():
    """A filter is a row's own subject: its vocabulary differs, not its test set."""
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row("no_copies", {"data.filter_copies": True}, "F"),
    ]
    records = [written.scored(row, 5.0, 20.0) for row in rows]
    records[1] = other_data(records[1], vocabulary_hash="98")
    records[1] = changed_score(records[1], 0, target_tokens=80_000)
    found = as_rows(written.sweep(rows), records)
    assert found["no_copies"]["changes"] == "data.filter_copies on instead of off"
    records[1] = other_data(records[1], manifest_hash="99")
    with pytest.raises(TableError, match="data manifest hash.*99 in no_copies/seed0"):
        build_table(written.sweep(rows), records)


def test_mixture_within_the_seeds_of_a_row_is_refused():
    rows = three_rows()
    records = [written.scored(rows[0], 5.0, 20.0, seed) for seed in (0, 1)]
    records[1] = changed_score(records[1], 1, signature="other")
    with pytest.raises(TableError, match="base/seed1"):
        build_table(written.sweep(rows, (0, 1)), records)


def test_rows_with_different_test_sets_are_refused():
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row("other", {"data.test_split": "test_2017_flickr"}),
    ]
    with pytest.raises(TableError) as error:
        build_table(written.sweep(rows), [])
    assert "test in row base; test_2017_flickr in row other" in str(error.value)


def test_unknown_hashes_are_no_mixture():
    rows = three_rows()
    records = [written.scored(row, 5.0, 20.0) for row in rows]
    records[1]["data"] = None
    records[2] = {**written.record(rows[2], status="failed"), "data": None}
    build_table(written.sweep(rows), records)


def test_row_about_the_vocabulary_is_marked_and_has_no_perplexity_difference():
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row("small", {"data.vocabulary_size": 8000}),
    ]
    small = other_data(written.scored(rows[1], 3.0, 19.0), vocabulary_hash="97")
    small = changed_score(small, 0, target_tokens=99_000)
    table = build_table(
        written.sweep(rows), [written.scored(rows[0], 5.0, 20.0), small]
    )
    deltas = table.rows[1].deltas
    assert deltas["ppl"] is None and deltas["bleu"] == -1.0
    text = render(table)
    assert "3.00 †" in text_line(text, "small")
    assert "† PPL of another vocabulary than base's, no ΔPPL: small." in text


def test_row_about_averaging_is_marked():
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row("averaged", {"decode.average_checkpoints": 2}),
    ]
    steps = (98_500, 100_000)
    scores = [written.ppl_score(4.0, steps), written.bleu_score(21.0, steps)]
    records = [
        written.scored(rows[0], 5.0, 20.0),
        written.record(rows[1], scores=scores),
    ]
    text = render(build_table(written.sweep(rows), records))
    assert "average of 2 checkpoints instead of 1" in text_line(text, "averaged")
    assert "averaged/seed0: the average of 2 checkpoints (98500, 100000)" in text


def test_notes_say_what_was_scored_and_how():
    rows = three_rows()
    records = [written.scored(row, 5.0, 20.0) for row in rows]
    records[1] = changed_score(records[1], 1, unfinished=2)
    text = " ".join(render(build_table(written.sweep(rows), records)).split())
    assert "wmt14 en-de, split validation, 3,000 sentences" in text
    assert "81,234 target pieces" in text
    assert f"hash {written.VOCABULARY[:12]}" in text
    assert "not comparable with the PPL of another vocabulary" in text
    assert f"sacreBLEU signature {written.SIGNATURE}; beam 4" in text
    assert "length penalty wu2016 with alpha 0.6, at most source + 50 pieces" in text
    assert "2 hypotheses hit the length cap (1 of 3 runs)." in text
    assert "one checkpoint, without averaging" in text
    assert "Device: 1 x cpu" in text and "0123456789ab" in text


def test_note_has_bases_decoding_where_rows_decode_otherwise():
    """Theirs stand in their columns: nine more would fill a screen."""
    rows = [
        *written.paper_rows(("base",)),
        written.sweep_row("greedy", {"decode.beam_size": 1}),
        written.sweep_row("wide", {"decode.beam_size": 16}),
    ]
    records = [
        written.record(
            row,
            scores=[
                written.ppl_score(5.0),
                written.bleu_score(
                    20.0, beam_size=row["config"]["decode"]["beam_size"]
                ),
            ],
        )
        for row in rows
    ]
    text = " ".join(render(build_table(written.sweep(rows), records)).split())
    settings = (
        "beam 4, length penalty wu2016 with alpha 0.6, at most source + 50 pieces"
    )
    assert f"; {settings}, but where a row's columns say other." in text
    assert "beam 16" not in text


def test_notes_name_every_process_that_made_a_run():
    """A run that went on elsewhere is not the last process's alone."""
    rows = three_rows()
    first = {
        "commit": {"hash": "f" * 40, "dirty": True},
        "command": ["python"],
        "packages": {"jax": "0.10.1"},
        "device": {"kind": "H100", "count": 8, "platform": "gpu"},
    }
    records = [written.scored(row, 5.0, 20.0) for row in rows]
    last = {key: records[1][key] for key in first}
    records[1]["sessions"] = [{"from_step": 0, **first}, {"from_step": 700, **last}]
    text = " ".join(render(build_table(written.sweep(rows), records)).split())
    assert "Device: 1 x cpu; 8 x H100." in text
    assert f"Commit: 0123456789ab; {'f' * 12} with uncommitted changes." in text


def test_note_on_trends_only_where_base_is_not_the_papers():
    rows = three_rows()
    assert "Trend" not in render(build_table(written.sweep(rows), []))
    small = written.sweep(rows)
    small["config"]["train"]["steps"] = 600
    for row in small["rows"]:
        row["config"]["train"]["steps"] = 600
    text = " ".join(render(build_table(small, [])).split())
    assert "Trend, not reproduction" in text
    assert "train.steps 600 (paper: 100000)" in text
    assert "model.d_model" not in text


def test_score_before_the_last_update_is_pointed_out():
    (row,) = written.paper_rows(("base",))
    scores = [written.ppl_score(5.0, (400,)), written.bleu_score(20.0, (400,))]
    table = build_table(written.sweep([row]), [written.record(row, scores=scores)])
    assert "Not scored after the last update: base/seed0: update 400 of 100000." in (
        render(table)
    )


def test_row_known_from_records_alone_is_shown_last_and_named():
    rows = three_rows()
    extra = written.sweep_row("C_N2", {"model.num_layers": 2}, "C")
    table = build_table(written.sweep(rows), [written.scored(extra, 6.0, 18.0)])
    assert [row.name for row in table.rows] == [*THREE, "C_N2"]
    assert "Not in sweep.json, from records only: C_N2." in render(table)


def test_markdown_shows_bars_and_stars_as_they_are():
    rows = three_rows()
    record = written.record(rows[1], status="failed", reason="a | b * <c>")
    markdown = render(build_table(written.sweep(rows), [record]), "markdown")
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert len(bars) == 1
    assert r"a \| b \* &lt;c\>" in markdown
    assert "d_model" in markdown


def test_unknown_format_is_refused():
    table = build_table(written.sweep(three_rows()), [])
    with pytest.raises(TableError, match="pdf is unknown.*text, markdown, latex"):
        render(table, "pdf")


def test_json_is_unrounded_and_complete():
    rows = three_rows()
    records = [written.scored(row, 5.123456789, 20.987654321) for row in rows]
    row = as_rows(written.sweep(rows), records)["B_dk16"]
    assert row["ppl"] == 5.123456789 and row["bleu"] == 20.987654321
    assert row["config"]["model"]["d_k"] == 16
    assert row["config"]["decode"]["beam_size"] == 4
    assert row["parameters"]["total"] == 65_126_400
    assert row["seeds"] == [0] and row["steps"] == 100_000
    assert row["seconds"]["total"] == 150.0  # 20 + 100 + 30
    assert row["bleu_test"] is None and row["reason"] is None


def test_numbers_are_rounded_for_people():
    # Beside the paper's sign it is told on which side of zero a difference is.
    assert number(-0.004, 2, "+") == "-0.00" and number(0.0, 2, "+") == "+0.00"
    assert number(-0.004, 2) == "0.00"
    assert number(None, 2) == ""
    assert millions({"total": 65_126_400}) == "65.1"
    assert millions({"total": 167_976_960}) == "168"
    assert millions({"total": 420_736}) == "0.42"
    assert millions(None) == ""


# Millions by two ways of counting; not the real ones, to see which is compared.
COUNTS = {
    "base": {"first_code": 65_400_000, "text": 63_000_000},
    "B_dk16": {"first_code": 58_000_000, "text": 58_400_000},
    "C_N2": {"first_code": 36_600_000, "text": 36_600_000},
}


def counted_rows(**base):
    rows = written.paper_rows([*COUNTS, "A_h1"])
    for row in rows:
        row["paper_counts"] = COUNTS.get(row["name"])
    sweep = written.sweep(rows)
    sweep["config"]["model"].update(base)
    return sweep, [written.scored(row, 5.0, 25.0) for row in rows]


def test_counts_are_compared_with_the_printed_ones():
    sweep, records = counted_rows()
    text = " ".join(render(build_table(sweep, records), "text").split())
    assert (
        "base 65.4 (printed 65), B_dk16 58.0 (printed 58), C_N2 36.6 (printed 36)"
        in (text)
    )
    assert "Rounded, 2 of the 3 printed counts come out" in text
    assert "with the text's 37,000 rows 1. Unexplained: C_N2." in text
    found = as_rows(sweep, records)
    assert found["base"]["paper_counts"] == COUNTS["base"]
    assert found["A_h1"]["paper_counts"] is None


def test_counts_are_left_out_where_rows_have_other_sizes():
    """The printed counts are no one's but the paper's sizes'."""
    markdown = render(build_table(*counted_rows(d_ff=1024)), "markdown")
    assert "first code" not in markdown and "printed" not in markdown


def test_a_choice_that_is_not_the_papers_is_named():
    sweep, records = counted_rows()
    sweep["config"]["model"]["norm"] = "pre"
    text = render(build_table(sweep, records), "text")
    assert "model.norm pre (paper: post)" in " ".join(text.split())


def test_single_and_averaged_scores_stand_side_by_side():
    rows = three_rows()
    records = [written.scored(row, 5.0, 25.0) for row in rows]
    steps = [96_000, 98_000, 100_000]
    records[0]["scores"] += [
        {**written.bleu_score(26.25, steps), "unfinished": 2},
        written.ppl_score(4.75, steps),
        written.bleu_score(99.0, steps, beam_size=1),  # decoded otherwise
        written.bleu_score(98.0, steps[1:]),  # of fewer
    ]
    table = build_table(written.sweep(rows), records)
    base = markdown_row(render(table, "markdown"), "base")
    assert (base["BLEU dev"], base["BLEU averaged"]) == ("25.0", "26.2 (3)")
    assert base["PPL dev"] == "5.00"
    assert markdown_row(render(table, "markdown"), "A_h1")["BLEU averaged"] == ""
    text = " ".join(render(table, "text").split())
    assert "Every other score is of one checkpoint, without averaging." in text
    note = "base/seed0: the average of 3 checkpoints (96000, 98000, 100000)"
    assert f"{note}, 2 hypotheses hit the length cap." in text, text
    found = as_rows(written.sweep(rows), records)
    assert found["base"]["bleu_averaged"] == 26.25
    assert found["base"]["averaged_steps"] == {"0": steps}
    # Differences are those of the single checkpoint.
    assert found["A_h1"]["deltas"]["bleu"] == 0.0


def test_each_bleu_is_shown_under_its_own_name_only():
    rows = three_rows()
    records = [written.scored(row, 5.0, 25.0) for row in rows]
    for record, value in zip(records, (26.5, 26.0, 27.25), strict=True):
        record["scores"].append(written.paper_bleu_score(value))
    sweep = written.sweep(rows)
    paper = build_table(sweep, records, options=Options(metric="bleu_paper"))
    base = markdown_row(render(paper, "markdown"), "B_dk16")
    assert (base["paper-BLEU dev"], base["Δpaper-BLEU"]) == ("27.2", "+0.8")
    assert "BLEU dev" not in base and "25.0" not in render(paper, "markdown")
    assert "not comparable with sacreBLEU" in render(paper, "markdown")
    (row, *_) = json.loads(render(paper, "json"))["rows"]
    assert row["bleu_paper"] == 26.5 and "bleu" not in row
    plain = render(build_table(sweep, records), "markdown")
    assert "paper-BLEU" not in plain and "26.5" not in plain


def test_notes_of_a_table_of_the_papers_bleu_never_call_it_bleu():
    """Also those on tests, power and agreement; the paper's own number is BLEU."""
    rows = written.paper_rows(("base", "A_h1", "A_h4", "C_N2"))
    # A_h1 minus base is -3 and +1; A_h4 minus base -6 and -5.875, p 0.0067 (t = -95).
    values = {"base": (26, 26), "A_h1": (23, 27), "A_h4": (20, 20.125), "C_N2": (9,)}
    records, steps = [], (96_000, 98_000, 100_000)
    for row in rows:
        for seed in (0, 1):
            record = written.scored(row, 5.0, 25.0, seed)
            for value in values[row["name"]][seed : seed + 1]:
                record["scores"].append(written.paper_bleu_score(value))
                record["scores"].append(written.paper_bleu_score(value + 1, steps))
            records.append(record)
    sweep, options = written.sweep(rows, (0, 1)), Options(metric="bleu_paper")
    text = " ".join(build_table(sweep, records, options=options).notes)
    for told in (
        *("p seeds: of Δpaper-BLEU,", "would show a difference of 0.3 paper-BLEU ("),
        "ns: paper-BLEU not distinguishable from base at 5%: A_h1.",
        *("paper-BLEU averaged is of other", "without a score: C_N2/seed1 (paper-BLEU"),
        "Δpaper-BLEU has the paper's sign in 3 of the 3 rows",
        "of the 1 row distinguishable from base, 1 has the paper's sign of Δpaper-BLEU",
    ):
        assert told in text, told
    assert not re.search(r"(?<!paper-)(?<!sacre)BLEU", text)
    alone = build_table(sweep, records[::2], options=options)
    told = "how many seeds would show 0.3 paper-BLEU is not known"
    assert any(told in note for note in alone.notes)


def test_differences_are_over_the_seeds_that_both_rows_have():
    """Base has seeds 0 and 1, A_h1 only 0, B_dk16 only 2."""
    rows = three_rows()
    records = [
        written.scored(rows[0], 5.0, 20.0, seed=0),
        written.scored(rows[0], 7.0, 10.0, seed=1),
        written.scored(rows[1], 7.0, 22.0, seed=0),
        written.scored(rows[2], 9.0, 9.0, seed=2),
    ]
    table = build_table(written.sweep(rows, (0,)), records)
    found = {row.name: row for row in table.rows}
    assert found["A_h1"].deltas["ppl"] == 2.0  # 7 - 5, not 7 - 6
    assert found["A_h1"].deltas["bleu"] == 2.0  # 22 - 20, not 22 - 15
    assert found["B_dk16"].deltas["bleu"] is None
    text = " ".join(render(table, "text").split())
    assert "shares with base: A_h1: seed 0; B_dk16: none, so blank." in text


def test_seeds_of_one_row_are_not_pending_in_another():
    rows = three_rows()
    for row, seeds in zip(rows, ([0], [0, 1], [0]), strict=True):
        row["seeds"] = seeds
    records = [written.scored(row, 5.0, 20.0) for row in rows]
    table = build_table(written.sweep(rows, (0, 1)), records)
    states = {row.name: [run.state for run in row.runs] for row in table.rows}
    assert states == {
        "base": ["finished"],
        "A_h1": ["finished", "pending"],
        "B_dk16": ["finished"],
    }


def test_note_of_ppl_speaks_of_bases_vocabulary():
    rows = written.paper_rows(("base",))
    other = written.sweep_row("A_small", {"data.vocabulary_size": 500}, "V")
    records = [written.scored(other, 4.0, 19.0), written.scored(rows[0], 5.0, 20.0)]
    records[0]["data"]["vocabulary_hash"] = "77" * 32
    records[0]["scores"][0]["target_tokens"] = 99_999
    text = render(build_table(written.sweep([*rows, other]), records), "text")
    text = " ".join(text.split())
    assert "81,234 target pieces, per subword piece of this vocabulary (37,000" in text
    assert "99,999" not in text and "7777" not in text


def test_what_an_architecture_does_not_read_is_a_dash_and_no_change():
    rows = written.paper_rows(("base",))
    cells = written.sweep_row("rnn", of_architecture("recurrent"), "X")
    records = [written.scored(row, 5.0, 20.0) for row in (rows[0], cells)]
    table = build_table(written.sweep([*rows, cells]), records)
    row = markdown_row(render(table, "markdown"), "rnn")
    assert [row[name] for name in ("d_ff", "h", "d_k", "d_v")] == ["–"] * 4
    assert [row[name] for name in ("N", "d_model", "P_drop")] == [""] * 3
    assert row["other"] == "recurrent instead of transformer"


def test_every_field_compared_with_the_papers_is_bases_own():
    """The lists in columns.py are those of configs/base.py, and miss no choice."""
    from configs import base
    from transformer_ablation.report import columns

    known = {**columns.PAPER_SETTING, **columns.PAPER_CHOICES, **columns.OUR_CHOICES}
    mapping = columns.flatten(base.get_config().to_dict())
    assert {path: mapping[path] for path in known} == known
    sections = ("model.", "regularization.", "optimizer.", "decode.")
    left_out = {
        "model.max_length",  # of the learned positions alone
        "model.dtype",
        "model.rematerialize",  # memory for time: the same numbers
        "optimizer.accumulation_steps",
        "decode.sentences_per_batch",
    }
    assert {p for p in mapping if p.startswith(sections)} - left_out <= set(known)


def test_cost_by_the_papers_rule_is_time_times_devices_times_rate():
    """12 hours on 8 P100 of 9.5 TFLOP/s are the 3.3e18 that the paper prints.

    The last of them may have been on fewer: the record has each session's.
    """
    rows = written.paper_rows(("base",))
    hours = {"compile": 3600.0, "train": 11 * 3600.0, "evaluate": 999.0}
    device = {"kind": "P100", "count": 4, "platform": "gpu", "seconds": 8 * 12 * 3600}
    record = written.scored(rows[0], 5.0, 25.0, seconds=hours, device=device)
    table = build_table(written.sweep(rows), [record], options=Options(rate=9.5e12))
    row = markdown_row(render(table, "markdown"), "base")
    assert row["cost FLOPs"] == "3.3e+18"
    (found,) = json.loads(render(table, "json"))["rows"]
    assert found["flops"]["papers_rule"] == pytest.approx(3.2832e18)
    assert found["flops"]["training"] == 1_000_000
    without = build_table(written.sweep(rows), [record])
    assert "cost" not in render(without, "markdown")
    (found,) = json.loads(render(without, "json"))["rows"]
    assert found["flops"]["papers_rule"] is None


def test_number_too_long_for_a_cell_has_a_power_of_ten():
    rows = three_rows()
    values = {"base": 5.0, "A_h1": 5e299, "B_dk16": 1_234_567.0}
    records = [written.scored(row, values[row["name"]], 20.0) for row in rows]
    text = render(build_table(written.sweep(rows), records))
    assert "5.0e+299" in text_line(text, "A_h1")
    assert "1.2e+06" in text_line(text, "B_dk16")
    assert "+1.2e+06" in text  # the difference
    assert max(map(len, text.splitlines())) < 200
