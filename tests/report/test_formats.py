"""Every format shows names and labels as they are, and what the table says."""

import csv
import html
import io
import json
import re
import shutil
import subprocess

import pytest

from tests.report import written_sweeps as written
from transformer_ablation.report.cells import duration, p_value, places, plain
from transformer_ablation.report.render import escape_markdown, render
from transformer_ablation.report.render_latex import escape
from transformer_ablation.report.table import build_table

ODD = r"""<b>&amp; a|b_c %x $y$ #z \end{x} "q" 'r' {s} ~t ^u `v` [w](x) --- @me"""
ARABIC = "\u0645\u062a\u0646"


def odd_table():
    """A row with odd letters in its name, group and reason, one in Arabic."""
    rows = [
        written.sweep_row("base", {}),
        written.sweep_row(ODD, {"model.num_layers": 3}, group="g_1 & <2>"),
        written.sweep_row(ARABIC, {"model.positions": "none"}, group=ARABIC),
        written.sweep_row("\u732b", {"model.num_layers": 4}, group="\u732b"),
    ]
    records = [
        written.scored(rows[0], 5.0, 20.0),
        written.record(rows[1], status="failed", reason=f"{ODD}\n\x1b[31mred"),
        written.scored(rows[2], 4.0, 19.0),
        written.scored(rows[3], 4.5, 20.5),
    ]
    return build_table(written.sweep(rows, title=f"Title {ODD}"), records)


def three_seeds():
    rows = written.paper_rows()
    records = [
        written.scored(row, 5.0 + i / 7, 25.0 - i / 3 + seed * (i % 3) / 9, seed)
        for i, row in enumerate(rows)
        for seed in (0, 1, 2)
    ]
    return build_table(written.sweep(rows, (0, 1, 2)), records)


def test_json_and_csv_keep_every_letter():
    table = odd_table()
    found = json.loads(render(table, "json"))["rows"]
    lines = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    for rows in (found, lines):
        assert [row["row"] for row in rows] == ["base", ODD, ARABIC, "\u732b"]
        assert rows[1]["reason"] == f"{ODD}\n\x1b[31mred"
        assert rows[1]["group"] == "g_1 & <2>"


def test_csv_holds_every_field_of_json_unrounded():
    table = three_seeds()
    found = json.loads(render(table, "json"))["rows"]
    lines = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert len(lines) == len(found) == 20

    def leaves(value, path):
        if path == "runs":
            for run in value:
                yield from leaves(run, f"runs.seed{run['seed']}")
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from leaves(item, f"{path}.{key}" if path else key)
        else:
            yield path, value

    for row, line in zip(found, lines, strict=True):
        for path, value in leaves(row, ""):
            if isinstance(value, float):
                assert float(line[path]) == value, path
            elif isinstance(value, bool):
                assert line[path] == str(value).lower()
            elif isinstance(value, list):
                assert json.loads(line[path]) == value
            else:
                assert line[path] == ("" if value is None else str(value))
    assert float(lines[1]["runs.seed2.bleu"]) == 25.0 - 1 / 3 + 2 / 9
    assert float(lines[1]["deltas.bleu"]) == found[1]["deltas"]["bleu"]
    assert lines[0]["tests.seeds.bleu.p"] == ""  # base has no test


def test_markdown_shows_letters_as_they_are():
    """What CommonMark makes of escapes and entities is the text again."""
    for text in (ODD, "a_b_c _d_ ~~e~~ 5 * 6 * 7", "\\|", "&lt;"):
        shown = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escape_markdown(text))
        assert html.unescape(shown).replace("\u200b", "") == text
        assert not re.search(r"(?<!\\)[|<*`~$]", escape_markdown(text))
    lines = render(odd_table(), "markdown").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 6
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in rows}) == 1


def test_control_characters_reach_no_terminal():
    text = render(odd_table())
    assert "\x1b" not in text and "[31mred" in text
    assert plain("a\nb\u2028c\x00") == "a b c"


def test_text_columns_stand_below_each_other_with_wide_and_right_to_left_letters():
    assert [places(t) for t in ("ab", "\u732b", "e\u0301", "\u2068a\u2069")] == [
        *(2, 2),
        *(1, 1),
    ]
    block = render(odd_table()).split("\n\n")[1].splitlines()
    ends = set()
    for name, ppl in ((ARABIC, "4.00"), ("\u732b", "4.50"), ("base", "5.00")):
        (line,) = [line for line in block if name in line and ppl in line]
        ends.add(places(line[: line.index(ppl)]))
    assert len(ends) == 1
    # Isolated, so that numbers beside it keep their order.
    assert f"\u2068{ARABIC}\u2069" in "\n".join(block)


def latex_cells(text):
    """The rows of the tabular, each as its cells, spans counted."""
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    for line in body.splitlines():
        if line.strip().endswith(r"\\"):
            cells = re.split(r"(?<!\\)&", line.strip()[:-2])
            spans = [re.match(r"\s*\\multicolumn\{(\d+)\}", c) for c in cells]
            yield cells, sum(int(m[1]) if m else 1 for m in spans)


@pytest.mark.parametrize("make", [odd_table, three_seeds])
def test_latex_rows_fill_their_columns(make):
    text = render(make(), "latex")
    (specification,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", text)
    widths = {width for _, width in latex_cells(text)}
    assert widths == {len(specification)}
    body = text.split(r"\begin{table*}")[1]
    plain_braces = re.sub(r"\\[{}]", "", body)
    assert plain_braces.count("{") == plain_braces.count("}")
    for command in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert command in text
    # Whatever TeX would read as a command or mark comes from us alone.
    assert not re.search(r"(?<!\\)[#%]", re.sub(r"^%.*", "", body, flags=re.M))


def test_latex_looks_like_the_papers_table():
    text = render(three_seeds(), "latex")
    rows = [[c.strip() for c in cells] for cells, _ in latex_cells(text)]
    assert r"$d_{\mathrm{model}}$" in rows[1] and "$N$" in rows[1]
    by_name = {row[1]: row for row in rows}
    # (A) one head: of the config only h, d_k and d_v.
    cells = ["", "", "", "1", "512", "512", "", "", ""]
    assert by_name[r"A\_h1"][:11] == ["(A)", r"A\_h1", *cells]
    assert by_name[r"A\_h4"][0] == ""  # the group is headed once
    words = "learned positions instead of sinusoidal"
    assert by_name[r"E\_learned\_pos"][2] == f"\\multicolumn{{9}}{{l}}{{{words}}}"
    # A rule above each group: base, A to E and big.
    assert text.count(r"\midrule") == 7
    # Minus signs are no hyphens; big is 19 / 3 below base, the mean of its seeds.
    assert r"\ensuremath{-}6.2" in by_name["big"]


def test_latex_escapes_by_hand():
    assert escape(r"a_b & c% $d$ #e \f {g} ~ ^") == (
        r"a\_b \& c\% \$d\$ \#e \textbackslash{}f \{g\} "
        r"\textasciitilde{} \textasciicircum{}"
    )
    assert escape("--") == "-{}-{}"
    assert escape(ARABIC) == f"\\sweeptabletext{{{ARABIC}}}{{U+0645 U+062A U+0646}}"
    assert escape("\u0394 é ü") == r"\ensuremath{\Delta} é ü"


@pytest.mark.parametrize(
    ("engine", "make", "wrapped"),
    [
        ("pdflatex", odd_table, False),
        ("pdflatex", odd_table, True),
        ("pdflatex", three_seeds, False),
        ("lualatex", odd_table, False),
    ],
)
def test_latex_compiles(engine, make, wrapped, tmp_path):
    """As it is, and within a paper that loads booktabs alone."""
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    (tmp_path / "table.tex").write_text(render(make(), "latex"), encoding="utf-8")
    start = r"\documentclass[twocolumn]{article}\usepackage[T1]{fontenc}"
    start += r"\usepackage{booktabs,textcomp}\begin{document}"
    paper = start + r"Before.\input{table}After.\end{document}"
    (tmp_path / "paper.tex").write_text(paper)
    name = "paper" if wrapped else "table"
    call = [engine, "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-3000:]
    assert (tmp_path / f"{name}.pdf").stat().st_size > 1000


def test_cells_for_people():
    assert [p_value(p) for p in (None, 0.0004, 0.0123, 0.05, 0.4)] == [
        "",
        "<.001",
        "0.012",
        "0.05 ns",
        "0.40 ns",
    ]
    seconds = (None, 5.25, 99.0, 100.0, 7200.0, 400_000.0)
    assert [duration(s) for s in seconds] == [
        *("", "5.2 s", "99 s"),
        *("1.7 min", "2.0 h", "5 d"),
    ]
