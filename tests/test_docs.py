"""What the docs tell to type is accepted; figures of reproduce.md are computed."""

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
from experiments import __main__, command, decoding_flags, sweep
from transformer_ablation import config
from transformer_ablation.data import wmt14
from transformer_ablation.sweep import rows

ROOT = pathlib.Path(__file__).parents[1]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"(?:^|.*[ /])python3? -m experiments\.(\w+)(.*)")
# For the row of a script, a config, and one that README tells to write.
STAND_INS = {
    "$ROW": "base",
    "--config=F ": "--config=configs/table3.py:grammar ",
    "--config=configs/norms.py:grammar": "--config=configs/table3.py:grammar",
}
# Flags without which a command is refused; of several sets one is needed.
NEEDED = {
    "attention": [["run"], ["runs"]],
    "compare": [["workdir", "rows"], ["runs"]],
    "evaluate": [["run"]],
    "export": [["run", "out"]],
    "status": [["workdir"]],
    "sweep": [["workdir"]],
    "table2": [["workdirs"]],
    "tables": [["workdir"]],
    "train": [["workdir"]],
    "translate": [["run"]],
}
TEXT = (ROOT / "docs" / "reproduce.md").read_text()
BLOCKS = BLOCK.findall(TEXT)


def written_commands(blocks=BLOCKS):
    """(name, arguments) of every command of the blocks, without what the shell does."""
    lines = [x for block in blocks for x in block.replace("\\\n", " ").splitlines()]
    for old, new in STAND_INS.items():
        lines = [line.replace(old, new) for line in lines]
    found = [match.groups() for line in lines if (match := PYTHON.match(line))]
    return [
        (name, shlex.split(re.split(r" [<>|] ", text)[0], comments=True))
        for name, text in found
    ]


def all_commands():
    """Those of README and of all docs, with the file's name."""
    for path in DOCS:
        for name, arguments in written_commands(BLOCK.findall(path.read_text())):
            yield path.name, name, arguments


def lacking(name, options):
    """The flags that it lacks, of each set that would do; empty where one does."""
    sets = [[f for f in need if not options[f].value] for need in NEEDED.get(name, ())]
    return [] if [] in sets else sets


@pytest.mark.parametrize(("file", "name", "arguments"), list(all_commands()))
def test_command_is_accepted(file, name, arguments, repository, monkeypatch):
    """Its flags, its config and its rows; the data and the training are left out."""
    monkeypatch.chdir(repository)
    reached = []

    def body(options, sweep_file=None):
        reached.append(name)
        assert lacking(name, options) == []
        if name == "evaluate" and file == "reproduce.md":
            kept = 20 if "/big/" in options.run else 5  # as the sweep above it says
            trained = config.from_mapping(base.get_config())
            trained = config.replace(trained, {"train.keep_checkpoints": kept})
            decoding_flags.changed(trained, options)
        if name == "sweep":
            sweep._check_options(options)
        if sweep_file is not None:
            asked = options.rows if "rows" in options else None
            asked = asked or (["base"] if name == "bench" else None)  # as it says
            chosen = rows.select(sweep_file.rows, asked)
            assert rows.expand(sweep_file.base, chosen)

    written = importlib.import_module(f"experiments.{name}").COMMAND
    code = command.run(dataclasses.replace(written, body=body), arguments)
    assert (code, reached) == (0, [name])


@pytest.mark.parametrize("name", NEEDED)
def test_needed_flags_are_those_that_a_command_asks_for(name, repository, capsys):
    written = importlib.import_module(f"experiments.{name}").COMMAND
    given = ["--config=configs/table3.py:grammar"] * written.takes_config
    given += ["--summary"] * (name == "attention")  # which asks first what for
    assert command.run(written, given) == 2
    assert f"--{NEEDED[name][0][0]} is missing" in capsys.readouterr().err
    first, *more = NEEDED[name][0]
    for flag in more:
        assert command.run(written, [*given, f"--{first}=nowhere"]) == 2
        assert f"--{flag} is missing" in capsys.readouterr().err


def test_every_command_that_asks_for_a_flag_is_among_them():
    asking = re.compile(r"--(?!config)\S+ is missing|run_folder\(")
    paths = {name: ROOT / f"experiments/{name}.py" for name in __main__.names()}
    found = {name for name, path in paths.items() if asking.search(path.read_text())}
    assert found <= set(NEEDED)


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
