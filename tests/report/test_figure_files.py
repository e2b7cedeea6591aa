"""Figures for papers: which, under which names, of which size, the same again."""

import re
import struct
import zlib

import pytest

from tests.report import written_sweeps as written
from tests.report.written_workdirs import ARABIC
from transformer_ablation.report.figure_files import drawn, file_names, write_figures
from transformer_ablation.report.group_figures import GroupFigure
from transformer_ablation.report.table import Options, build_table

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

SEED = 2.2  # size of a seed's marker


def table_of(rows, seeds=(0, 1)):
    records = [
        written.scored(
            *(row, 5.0 + i / 7 + seed / 9, 25.0 - i / 3 + seed * (i + 1) / 5, seed),
            device={"kind": "cpu", "count": 1, "seconds": 3600.0 * (i + 1)},
        )
        for i, row in enumerate(rows)
        for seed in seeds
    ]
    return build_table(written.sweep(rows, seeds), records)


@pytest.fixture(scope="module")
def table():
    return table_of(written.paper_rows(("base", "A_h1", "A_h4", "E_learned_pos")))


@pytest.fixture(scope="module")
def written_once(table, tmp_path_factory):
    return write_figures(table, tmp_path_factory.mktemp("figures"))


def test_files_are_pdf_and_png_of_every_figure(written_once):
    names = ("group-A", "group-E", "agreement", "cost")
    expected = [f"{name}.{ending}" for name in names for ending in ("pdf", "png")]
    assert [path.name for path in written_once] == expected


def test_png_is_as_wide_as_a_column(written_once):
    """3.3 inches at 300 dots an inch."""
    for path in written_once[1::2]:
        data = path.read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">I", data[16:20]) == (990,)


def test_pdf_is_as_wide_as_a_column_and_embeds_its_font(written_once):
    for path in written_once[::2]:
        data = path.read_bytes()
        parts = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.S)
        text = data + b"".join(_inflated(part) for part in parts)
        assert re.search(rb"/MediaBox \[ ?0 0 237.6 ", text)  # 3.3 x 72
        assert b"/FontFile2" in text and b"/Subtype /CIDFontType2" in text
        assert b"/Type3" not in text and b"CreationDate" not in text


def _inflated(data):
    try:
        return zlib.decompress(data)
    except zlib.error:
        return b""


def test_same_table_gives_the_same_bytes(written_once, table, tmp_path):
    for old, new in zip(written_once, write_figures(table, tmp_path), strict=True):
        assert old.read_bytes() == new.read_bytes(), new.name


def test_points_stand_where_the_table_has_them(table):
    panel = drawn(table)["group-A"].get_axes()[0]
    assert panel.get_ylabel() == "ΔBLEU dev"
    drawn_means = {
        (float(x), float(y))
        for line in panel.get_lines()
        if line.get_markersize() > SEED and line.get_marker() in "so"
        for x, y in zip(*line.get_data(), strict=True)
    }
    rows = {row.name: row for row in table.rows}
    expected = {(8.0, 0.0), (1.0, rows["A_h1"].deltas["bleu"])}
    assert drawn_means == expected | {(4.0, rows["A_h4"].deltas["bleu"])}


def test_labels_do_not_run_into_each_other():
    """2000, 2048 and 2100 are at one place of an axis from 2000 to 20000."""
    rows = [written.sweep_row("base", {})]
    sizes = (2000, 2100, 20_000)
    rows += [written.sweep_row(f"n{n}", {"model.d_ff": n}) for n in sizes]
    figure = drawn(table_of(rows, (0,)))["group"]
    shown = [t.get_text() for t in figure.get_axes()[0].get_xticklabels()]
    assert shown == ["2000", "20000"]
    letters = [written.sweep_row("x" * 40, {"model.norm": "pre", "model.num_heads": 1})]
    figure = drawn(table_of([rows[0], *letters], (0,)))["group"]
    shown = [t.get_text() for t in figure.get_axes()[0].get_xticklabels()]
    assert shown == ["base", "x" * 19 + "…"]


def test_agreement_names_tau_and_cost_has_plain_hours(table):
    figures = drawn(table)
    titles = [a.get_title() for a in figures["agreement"].get_axes()]
    found = table.agreement["bleu"]
    # Ours -1/3+, -2/3+, -1+ against the paper's -0.9, -0.3, -0.1: all three pairs turn.
    assert found.tau == pytest.approx(-1.0)
    assert titles[0] == "ΔBLEU, 3 rows: Kendall's tau-b -1.00"
    (cost,) = figures["cost"].get_axes()
    low, high = cost.get_xlim()
    shown = [t.get_text() for t in cost.get_xticklabels()]
    assert {"1", "2"} <= set(shown) and low < 1 < 4 < high


def test_agreement_names_the_rows_that_are_not_drawn():
    rows = written.paper_rows(("base", "A_h1", "A_h4"))
    ppls = (5.0, 501.0, 6.0)  # more than a hundred times the least
    records = [written.scored(r, p, 25.0) for r, p in zip(rows, ppls, strict=True)]
    bleu, ppl = drawn(build_table(written.sweep(rows), records))["agreement"].axes
    assert bleu.get_xlabel() == "ΔBLEU in the paper"
    assert ppl.get_xlabel() == "ΔPPL in the paper\nPPL off the scale: A_h1"
    assert ppl.get_title() == "ΔPPL, 2 rows: Kendall's tau-b +1.00"
    (alone,) = (
        line for line in ppl.get_lines() if line.get_marker() not in ("", "None")
    )
    assert alone.get_ydata() == [1.0]  # 6 - 5


def test_one_seed_draws_no_spread():
    rows = written.paper_rows(("base", "A_h1"))
    figure = drawn(table_of(rows, (0,)))["group-A"]
    for axes in figure.get_axes():
        assert len(axes.containers) == len(axes.collections) == 0
        assert all(line.get_markersize() > SEED for line in axes.get_lines())


def test_names_of_any_letters_are_drawn_and_missing_ones_told(tmp_path):
    odd = "a$b_c %x \\frac{1}"
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row(odd, {"model.num_layers": 3}, group=f"../{odd}"),
        written.sweep_row("\u732b", {"model.positions": "none"}, group=ARABIC),
    ]
    told = []
    files = write_figures(table_of(rows), tmp_path, told.append)
    names = [path.name for path in files if path.suffix == ".pdf"]
    assert names[:2] == ["group-a_b_c_x_frac_1.pdf", "group-123.pdf"]
    assert {path.parent for path in files} == {tmp_path}
    assert len(told) == 1 and "not in the font" in told[0] and "CJK" in told[0]


def test_file_names_are_distinct_where_case_does_not_count():
    def figure(group, along="h"):
        return GroupFigure(group, along, [], True, False, [], [], [])

    found = file_names(
        [figure("A"), figure("a"), figure(""), figure("/"), figure("x" * 99)]
        + [figure("D", "P_drop"), figure("D", "ε_ls")]
    )
    assert found[:4] == ["group-A", "group-a-2", "group", "group-2"]
    assert len(found[4]) == 50
    assert found[5:] == ["group-D-P_drop", "group-D-eps_ls"]


def test_table_without_scores_has_no_figure(tmp_path):
    rows = written.paper_rows(("base", "A_h1"))
    assert write_figures(build_table(written.sweep(rows), []), tmp_path) == []


def test_rows_that_may_not_be_mixed_are_told(tmp_path):
    rows = written.paper_rows(("base", "A_h1"))
    records = [written.scored(row, 5.0, 25.0) for row in rows]
    records[1]["step"] = 5  # of 100,000
    options = Options(mixed=True, sentences=None)
    table = build_table(written.sweep(rows), records, options=options)
    told = []
    write_figures(table, tmp_path, told.append)
    assert told == ["figures: not comparable, marked § in the table: A_h1"]
