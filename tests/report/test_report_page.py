"""The report of a sweep: its parts, its values, and that data stays data."""

import dataclasses
import json
import re

import pytest

from tests.report import written_sweeps as written
from tests.report import written_workdirs as places
from tests.report.test_page import Parsed
from transformer_ablation.report.render import render
from transformer_ablation.report.render_data import json_row
from transformer_ablation.report.render_html import read_details, row_ids
from transformer_ablation.report.table import Options, build_table, read_table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The table, its report and the report's elements."""
    folder = places.table3(tmp_path_factory.mktemp("work"))
    table = read_table(folder, Options(sentences=None))
    text = render(table, "html", read_details(folder, table))
    return table, text, Parsed(text)


def data_of(page, name):
    ((_, text),) = page.of("script", id=name)
    return json.loads(text)


def shown(text):
    """Text as a page shows it: controls as pictures."""
    return text.replace("\x1b", "\u241b")


def test_report_is_well_formed_and_loads_nothing(made):
    _, text, page = made
    assert page.wrong == [] and page.open == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert page.of("link") == [] and page.of("img") == [] and page.of("iframe") == []
    for attributes in (a for _, a, _ in page.elements):
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert page.of("b") == []  # ODD holds one


def test_links_lead_to_parts_of_the_page(made):
    _, _, page = made
    ids = [a["id"] for _, a, _ in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = {a["href"][1:] for a, _ in page.of("a")}
    assert {"table", "curves", "groups", "agreement", "cost", "rows"} <= links
    assert links <= set(ids)


def test_values_in_the_page_are_the_tables_unrounded(made):
    table, _, page = made
    rows = data_of(page, "table-data")["rows"]
    assert rows == json.loads(json.dumps([json_row(r, table) for r in table.rows]))
    points = data_of(page, "groups-data")[0]["points"]
    bleu = {p["row"]: p["deltas"]["bleu"] for p in points}
    assert bleu["A_h1"]["mean"] == table.rows[1].deltas["bleu"]
    # Of the two seeds: -1/3 -+ 1/14 by the records.
    values = bleu["A_h1"]["values"]
    assert values == pytest.approx({"0": -1 / 3 - 1 / 14, "1": -1 / 3 + 1 / 14})


def test_cells_are_those_of_the_other_formats(made):
    table, text, _ = made
    lines = [x for x in render(table, "markdown").splitlines() if x.startswith("|")]
    wanted = [[c.strip() for c in line.split("|")[1:-1]] for line in lines[2:]]
    body = re.search(r'id="results">.*?<tbody>(.*?)</tbody>', text, re.S)[1]
    for line, cells in zip(body.strip().splitlines(), wanted, strict=True):
        found = Parsed(line)
        texts = [t for tag, _, t in found.elements if tag in ("td", "th")]
        # The group stands in every row, and the state beside the name.
        rest = [t for i, t in enumerate(texts) if i not in (0, 2)]
        expected = [re.sub(r"\\(.)", r"\1", c) for c in cells[1:]]
        assert rest == expected[:-1] and texts[2] == expected[-1]


def test_numbers_sort_unrounded_and_blanks_as_base(made):
    table, _, page = made
    cells = [a["data-value"] for a, _ in page.of("td") if "data-value" in a]
    assert cells.count("512") >= len(table.rows)  # d_model, blank where base's
    for row in table.rows[1:3]:
        assert repr(row.deltas["bleu"]) in cells


def test_rows_tell_config_runs_scores_and_translations(made):
    table, _, page = made
    ((_, told),) = page.of("details", id="row-A_h1")
    for fact in (
        *("model.num_heads", "d_k", "0123456789abcdef0123", "jax 0.10.2"),
        *(written.SIGNATURE, "100000", "beam_size 4", "python -m experiments.sweep"),
        *("finished", "hypothesis", shown(places.ODD), places.ARABIC, "1 x cpu"),
    ):
        assert fact in told, fact
    assert str(table.rows[1].bleu.values[0]) in told
    ((_, lost),) = page.of("details", id="row-C_N2")
    assert "diverged" in lost and f"the loss is {shown(places.ODD)}" in lost
    assert "4000" in lost
    ((_, base),) = page.of("details", id="row-base")
    assert "None: this row is base." in base


def test_texts_have_their_own_direction(made):
    _, _, page = made
    spans = [text for a, text in page.of("span", dir="auto")]
    assert spans.count(places.ARABIC) == 6  # source and hypothesis of three rows
    samples = data_of(page, "samples-data")
    assert [s["row"] for s in samples] == ["base", "A_h1", "A_h4"]
    assert samples[1]["sentences"][1]["source"] == places.ODD


def test_curves_are_those_of_every_run_that_has_begun(made):
    _, _, page = made
    runs = {(c["row"], c["seed"]): c for c in data_of(page, "curves-data")}
    names = ("base", "A_h1", "A_h4", "C_N2", "D_drop0.0")
    assert set(runs) == {(name, seed) for name in names for seed in (0, 1)}
    points = runs["C_N2", 1]["points"]
    assert len(points["train/loss"]) == 100
    assert points["validation/perplexity"] == [[50, 4.0], [100, 2.0]]


def test_unfinished_sweep_says_when_it_was_read(made):
    _, text, page = made
    (lead,) = [t for a, t in page.of("p", **{"class": "faint"}) if " runs: " in t]
    counts = "6 rows, 12 runs: 6 finished, 2 diverged, 2 running, 2 pending, at "
    assert re.fullmatch(re.escape(counts) + r"\d{4}-\d\d-\d\d \d\d:\d\d UTC\.", lead)


def test_finished_sweep_gives_the_same_bytes_again(tmp_path):
    rows = written.paper_rows(("base", "A_h1"))
    records = [written.scored(row, 5.0, 25.0) for row in rows]
    places.workdir(tmp_path, rows, records)
    table = read_table(tmp_path, Options(sentences=None))
    details = read_details(tmp_path, table)
    later = dataclasses.replace(details, made=details.made.replace(year=2000))
    assert render(table, "html", details) == render(table, "html", later)


def test_sweep_that_has_not_begun_shows_its_rows(tmp_path):
    places.workdir(tmp_path, written.paper_rows(("base", "A_h1")), [])
    table = read_table(tmp_path)
    text = render(table, "html", read_details(tmp_path, table))
    assert "2 runs: 2 pending" in text and "No run has curves yet." in text
    assert "No row has stored translations yet." in text


def test_agreement_has_its_title_and_the_rows_that_are_not_drawn(tmp_path):
    rows = written.paper_rows(("base", "A_h1", "A_h4"))
    ppls = (5.0, 501.0, 6.0)  # more than a hundred times the least
    records = [written.scored(r, p, 25.0) for r, p in zip(rows, ppls, strict=True)]
    table = build_table(written.sweep(rows), records)
    found = data_of(Parsed(render(table, "html")), "agreement-data")
    assert [p["row"] for p in found["ppl"]["points"]] == ["A_h4"]
    assert found["ppl"]["beyond"] == ["A_h1"] and found["bleu"]["beyond"] == []
    # Ours 496 and 1, the paper's 0.37 and 0.08: in one order.
    assert found["ppl"]["title"] == "ΔPPL, 2 rows: Kendall's tau-b +1.00"


def test_papers_bleu_has_its_own_name_in_every_part(tmp_path):
    """The learning curves alone are sacreBLEU, and say so."""
    rows = written.paper_rows(("base", "A_h1"))
    records = [written.scored(r, 5.0, 25.0 + s, s) for r in rows for s in (0, 1)]
    for i, record in enumerate(records):
        record["scores"].append(written.paper_bleu_score(26.0 + i))
    places.workdir(tmp_path, rows, records, seeds=(0, 1))
    table = read_table(tmp_path, Options(metric="bleu_paper", sentences=None))
    page = Parsed(render(table, "html", read_details(tmp_path, table)))
    ((_, told),) = page.of("details", id="row-A_h1")
    assert "paper-BLEU 28.5" in told  # of 28 and 29
    assert "paper-BLEU over 2 seeds" in told
    assert not re.search(r"(?<!paper-)BLEU", told)
    assert data_of(page, "names-data") == {"bleu": "paper-BLEU", "ppl": "PPL"}
    curves = data_of(page, "curve-names-data")
    assert curves["validation/bleu"] == "validation sacreBLEU"
    ((_, section),) = page.of("section", id="curves")
    assert "BLEU: sacreBLEU, not paper-BLEU, of the single checkpoints" in section


def test_run_is_told_with_every_process_that_made_it(tmp_path):
    rows = written.paper_rows(("base", "A_h1"))
    first = {
        "commit": {"hash": "f" * 40, "dirty": False},
        "command": ["python", "-m", "first"],
        "packages": {"jax": "0.10.1"},
        "device": {"kind": "H100", "count": 8, "platform": "gpu"},
    }
    records = [written.scored(row, 5.0, 25.0) for row in rows]
    last = {key: records[1][key] for key in first}
    records[1]["sessions"] = [{"from_step": 0, **first}, {"from_step": 1500, **last}]
    places.workdir(tmp_path, rows, records)
    table = read_table(tmp_path, Options(sentences=None))
    page = Parsed(render(table, "html", read_details(tmp_path, table)))
    ((_, told),) = page.of("details", id="row-A_h1")
    assert "8 x H100, then 1 x cpu" in told
    assert f"{'f' * 12}, then 0123456789ab" in told
    for words in ("python -m first", "jax 0.10.1", "0 from update 1,501", "jax 0.10.2"):
        assert words in told


def test_names_of_any_letters_become_distinct_ids():
    names = ("a b", "a/b", "\u0645", 'x"<')
    rows = [written.sweep_row(n, {"model.num_layers": i}) for i, n in enumerate(names)]
    table = build_table(written.sweep(rows), [])
    ids = row_ids(table.rows)
    assert list(ids) == list(names) and len(set(ids.values())) == 4
    assert ids["a b"] == "row-a-b" and ids['x"<'] == "row-x--"
    page = Parsed(render(table, "html"))
    assert page.wrong == []
    found = {a["id"] for a, _ in page.of("details") if "id" in a}
    assert found == set(ids.values())


def test_data_in_cells_is_text():
    """In a name, a group, a config value, words, a reason, a label and a note."""
    odd = '<b>&"|_% </script>'
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row(odd, {"model.norm": odd}, f"g {odd}"),
        written.sweep_row("y", {"model.norm": "x", "model.positions": odd}),
    ]
    rows[1]["label"] = f"label {odd}"
    record = written.record(rows[1], status="failed", reason=odd)
    page = Parsed(render(build_table(written.sweep(rows, title=odd), [record]), "html"))
    assert page.wrong == [] and page.of("b") == []
    cells = [text for _, text in page.of("td")]
    reason = f"failed: {odd}"
    for wanted in (f"(g {odd})", odd, f"{odd} positions instead of sinusoidal", reason):
        assert wanted in cells, wanted
    (head,) = page.of("th", title=f"label {odd}")
    assert head[0]["data-value"] == odd and head[1] == odd
    assert any(odd in text for _, text in page.of("li", dir="auto"))


def test_one_row_and_its_run_are_told_in_the_singular():
    (row,) = written.paper_rows(("base",))
    table = build_table(written.sweep([row]), [written.scored(row, 5.0, 25.0)])
    assert '<p class="faint">1 row, 1 run: 1 finished.</p>' in render(table, "html")
