"""A sweep over architectures: planned, trained, scored and in one table."""

import json

import pytest

from experiments import command, plan, tables
from tests.experiments import tiny_sweeps as tiny

SWEEP = """
import importlib.util
from pathlib import Path

from transformer_ablation.config import of_architecture
from transformer_ablation.sweep.rows import BASE, Row

spec = importlib.util.spec_from_file_location("tiny", Path(__file__).parent / "tiny.py")
tiny = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tiny)
TITLE = "Architectures"


def get_config():
    config = tiny.get_config()
    config.train.update(steps=20, evaluate_every_steps=20, checkpoint_every_steps=20)
    config.decode.update(beam_size=2, extra_length=5)
    config.data.test_split = None
    return config


def recurrent(base):
    attention = {"model.recurrent_attention": "additive"}
    return {**of_architecture("recurrent"), **attention}


def convolutional(base):
    return of_architecture("convolutional")


def get_rows():
    return [
        BASE,
        Row("recurrent", "X", "cells", recurrent),
        Row("convolutional", "X", "kernels", convolutional),
    ]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tiny.folder_of(tmp_path_factory)
    (folder / "architectures.py").write_text(SWEEP)
    return folder


def given(folder, *more):
    return [
        f"--config={folder / 'architectures.py'}",
        f"--config.data.directory={folder / 'corpus'}",
        *more,
    ]


def test_plan_counts_the_cost_of_each(folder, capsys):
    """360 pieces, d 12; parameters as in tests/model/test_costs.py."""
    assert command.run(plan.COMMAND, given(folder, "--format=json")) == 0
    rows = {row["row"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    cells = 2 * 4 * (12 * 6 + 36 + 6) + 4 * (36 * 12 + 12)
    assert rows["recurrent"]["parameters"] == {
        "embedding": 360 * 12,
        "positions": 0,
        "recurrence": cells,
        "attention": 600,
        "total": 360 * 12 + cells + 600,
    }
    assert rows["recurrent"]["paper_counts"] == {}
    assert len({row["flops"]["per_step"] for row in rows.values()}) == 3
    assert command.run(plan.COMMAND, given(folder, "--rows=recurrent")) == 0
    out = capsys.readouterr().out
    assert f"Parameters of recurrent: embedding 4,320, recurrence {cells:,}" in out
    assert "first code" not in out


def test_rows_are_trained_and_compared_in_one_table(folder, capsys):
    workdir = folder / "architectures"
    more = f"--workdir={workdir}", f"--cache={folder / 'cache'}"
    done = tiny.process("sweep", given(folder, *more))
    assert done.returncode == 0, done.stderr.decode()
    flags = [f"--workdir={workdir}"]
    assert command.run(tables.COMMAND, [*flags, "--format=json"]) == 0
    rows = {row["row"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert list(rows) == ["base", "recurrent", "convolutional"]
    for row in rows.values():
        assert row["state"] == "finished"
        assert 1 < row["ppl"] < 360 and row["bleu"] is not None
    assert command.run(tables.COMMAND, [*flags, "--format=markdown"]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if line.startswith("|")]
    for name in ("recurrent", "convolutional"):
        (line,) = (x for x in lines if x.split("|")[2].strip() == name)
        assert line.split("|")[3].strip() == name  # the column of architectures
    assert "attention of the decoder: additive instead of none" in out
    assert "learned positions instead of sinusoidal" in out
    # What they do not read is no change, so no column is of it.
    assert "d_ff" not in lines[0]
