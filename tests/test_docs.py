"""docs/reproduce.md: what it tells to type is accepted, its figures are computed."""

import dataclasses
import importlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from configs import base
from experiments import command, decoding_flags, sweep
from transformer_ablation import config
from transformer_ablation.data import wmt14
from transformer_ablation.sweep import rows

TEXT = (pathlib.Path(__file__).parents[1] / "docs" / "reproduce.md").read_text()
BLOCKS = re.findall(r"^```\w*\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"(?:exec )?python -m experiments\.(\w+)(.*)")


def written_commands():
    """(name, arguments) of every command, with base for the row of a script."""
    lines = [line.strip() for block in BLOCKS for line in block.splitlines()]
    found = [match.groups() for line in lines if (match := PYTHON.match(line))]
    return [(name, shlex.split(text.replace("$ROW", "base"))) for name, text in found]


@pytest.mark.parametrize(("name", "arguments"), written_commands())
def test_command_is_accepted(name, arguments, repository, monkeypatch):
    """Its flags, its config and its rows; the data and the training are left out."""
    monkeypatch.chdir(repository)
    reached = []

    def body(options, sweep_file=None):
        reached.append(name)
        if name == "evaluate":
            kept = 20 if "/big/" in options.run else 5  # as the sweep above it says
            trained = config.from_mapping(base.get_config())
            trained = config.replace(trained, {"train.keep_checkpoints": kept})
            decoding_flags.changed(trained, options)
        if name == "sweep":
            sweep._check_options(options)
        if sweep_file is not None:
            asked = options.rows if "rows" in options else None
            chosen = rows.select(sweep_file.rows, asked)
            assert rows.expand(sweep_file.base, chosen)

    written = importlib.import_module(f"experiments.{name}").COMMAND
    code = command.run(dataclasses.replace(written, body=body), arguments)
    assert (code, reached) == (0, [name])


def cells(heading):
    """A row of the table of costs."""
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {heading}")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_table_of_costs_is_what_is_planned(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    plan = importlib.import_module("experiments.plan").COMMAND
    german, french = (
        {row["row"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
        for name, arguments in written_commands()
        if name == "plan" and command.run(plan, [*arguments, "--format=json"]) == 0
    )
    columns = [
        [german["base"]],
        [german["big"]],
        list(german.values()),
        [french["base"]],
        [french["big"]],
    ]
    units = {"h": 3600, "days": 86_400, "GB": 1e9}
    for heading, of_row in (
        ("FLOPs", lambda row: row["flops"]["training"]),
        ("time", lambda row: row["seconds"]),
        ("checkpoints", lambda row: row["disk_bytes"]),
    ):
        for written, column in zip(cells(heading), columns, strict=True):
            number, *unit = written.split()
            value = float(number) * (units[unit[0]] if unit else 1)
            assert value == pytest.approx(sum(map(of_row, column)), rel=0.02), heading


def test_archives_are_those_that_are_fetched():
    urls = re.findall(r"^(http\S+)( +\(en-fr only\))?$", TEXT, re.MULTILINE)
    assert [url for url, _ in urls] == list(wmt14.ARCHIVES["fr-en"])
    assert [url for url, french in urls if not french] == list(wmt14.ARCHIVES["de-en"])


def test_batch_script_names_every_row_once(repository, monkeypatch):
    """And bash reads the scripts."""
    monkeypatch.chdir(repository)
    from configs import table3

    (script,) = [block for block in BLOCKS if block.startswith("#!/bin/bash")]
    named = re.search(r"ROWS=\((.*?)\)", script, re.DOTALL)[1].split()
    assert named == [row.name for row in table3.get_rows()]
    assert "--array=0-19" in script and len(named) == 20
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    for block in re.findall(r"^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        subprocess.run([bash, "-n"], input=block, text=True, check=True)
