"""docs/notebook.ipynb: its cells run in order on the tiny sweep."""

import ast
import json
import pathlib
import re

import pytest


@pytest.fixture(scope="module")
def notebook(repository):
    return json.loads((repository / "docs/notebook.ipynb").read_text(encoding="utf-8"))


def shown(cell, names):
    """What a notebook shows below a cell: the value of a last expression."""
    tree = ast.parse("".join(cell["source"]))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, cell["id"], "exec"), names)
    return (
        None if last is None else repr(eval(compile(last, cell["id"], "eval"), names))
    )


def test_notebook_is_one_of_format_4_5_without_outputs(notebook):
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        assert cell["cell_type"] in ("markdown", "code") and cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_cells_run_in_order(notebook, base, folder, tmp_path, monkeypatch, capsys):
    """What they print is looked at; the figures of a picture are drawn nowhere."""
    import matplotlib

    matplotlib.use("agg")
    monkeypatch.setenv("WORKDIR", str(base.parents[2]))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TRANSFORMER_ABLATION_CACHE", str(folder / "cache"))
    names = {"__name__": "notebook"}
    found = [
        shown(cell, names) for cell in notebook["cells"] if cell["cell_type"] == "code"
    ]
    printed = capsys.readouterr().out
    assert f"Run({str(base)!r}, checkpoint 150)" in found
    assert "base 0 finished " in printed and "narrow 0 finished " in printed
    assert "no checkpoint of update 7; there are [100, 150]" in printed
    assert " over 7 sentences" in printed and "</s>" in printed
    (page,) = re.findall("^(/.*attention.html)$", printed, re.MULTILINE)
    assert pathlib.Path(page).read_text(encoding="utf-8").startswith("<!DOCTYPE")
