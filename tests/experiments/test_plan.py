"""``plan`` and what ``sweep`` refuses, as command lines."""

import json
import subprocess
import sys

import pytest

from experiments import command, plan, sweep
from tests.report import written_sweeps as written
from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import from_mapping, replace, to_mapping
from transformer_ablation.report.record import new_record, write_record, write_sweep

GRAMMAR = "--config=configs/table3.py:grammar"
WMT14 = "--config=configs/table3.py:wmt14"


@pytest.fixture(autouse=True)
def at_root(repository, monkeypatch):
    monkeypatch.chdir(repository)


def run(capsys, found, *arguments):
    """Exit code, stdout, stderr."""
    code = command.run(found, list(arguments))
    return (code, *capsys.readouterr())


def test_plan_counts_the_papers_base_model(capsys):
    """Hand arithmetic without projection biases, 37,000 shared pieces.

    Attention 4*512*512, twice in a decoder layer; feed-forward
    2*512*2048 + 2048 + 512; a layer norm 2*512: 2 an encoder layer, 3 a decoder's.
    """
    attention, ffn, norm = 4 * 512 * 512, 2 * 512 * 2048 + 2048 + 512, 2 * 512
    layers = 6 * (3 * attention + 2 * ffn + 5 * norm)
    code, out, _ = run(capsys, plan.COMMAND, WMT14, "--rows=base", "--format=json")
    (row,) = json.loads(out)["rows"]
    assert code == 0
    assert row["parameters"]["total"] == layers + 37_000 * 512
    assert (row["steps"], row["target_tokens"]) == (100_000, 2_500_000_000)


def test_plan_json_holds_every_row_and_seed(capsys):
    _, out, _ = run(capsys, plan.COMMAND, GRAMMAR, "--seeds=0,1", "--format=json")
    found = json.loads(out)
    assert found["runs"] == 40 and len(found["rows"]) == 20
    assert all(row["seeds"] == [0, 1] for row in found["rows"])


def test_plan_sees_finished_runs_of_the_same_config(capsys, tmp_path):
    _, out, _ = run(capsys, plan.COMMAND, GRAMMAR, "--format=json")
    rows = {row["row"]: row for row in json.loads(out)["rows"]}
    base = from_mapping(rows["base"]["config"])
    other = replace(from_mapping(rows["big"]["config"]), {"train.steps": 5})
    for name, config in [("base", base), ("big", other)]:
        record = new_record(
            results_version=1, row=name, group=name, label=name, seed=0,
            identity="i", config=to_mapping(config), status="finished",
        )  # fmt: skip
        write_record(tmp_path / "runs" / name / "seed0", record)
    _, out, _ = run(
        capsys, plan.COMMAND, GRAMMAR, f"--workdir={tmp_path}", "--format=json"
    )
    found = json.loads(out)
    states = {row["row"]: row["states"]["0"] for row in found["rows"]}
    assert states["base"] == "finished" and states["A_h1"] == "pending"
    assert states["big"] == "another config" and found["runs_left"] == 19
    (note,) = found["notes"]
    place = tmp_path / "runs/big/seed0"
    assert note.startswith(f"A sweep would be refused there. {place}: holds a run of")


def test_plan_counts_no_run_of_another_version_of_the_results(capsys, tmp_path):
    """Its identity is another, so that ``sweep`` refuses its folder."""
    only = [GRAMMAR, "--rows=base", f"--workdir={tmp_path}", "--format=json"]
    config = json.loads(run(capsys, plan.COMMAND, *only)[1])["rows"][0]["config"]
    other = RESULTS_VERSION + 1
    record = new_record(
        results_version=other, row="base", group="base", label="base", seed=0,
        identity="i", config=config, status="finished",
    )  # fmt: skip
    write_record(tmp_path / "runs/base/seed0", record)
    found = json.loads(run(capsys, plan.COMMAND, *only)[1])
    assert found["rows"][0]["states"] == {"0": "another version"}
    assert found["runs_left"] == 1 and found["seconds_left"] > 0
    assert found["notes"] == [
        f"A sweep would be refused there. {tmp_path / 'runs/base/seed0'}: holds a run "
        f"of results version {other}, this program's is {RESULTS_VERSION}; use another "
        "--workdir, or move it."
    ]


def test_plan_says_of_a_workdir_what_sweep_would(capsys, tmp_path):
    """A note below the plan: it refuses nothing, as it writes nothing."""
    there, other = tmp_path / "there", "--config.model.d_ff=128"
    only = ["--rows=base", GRAMMAR, f"--workdir={there}"]
    code, out, _ = run(capsys, plan.COMMAND, *only)
    assert code == 0
    assert " ".join(out.split()).endswith(f" {there}: nothing is there yet.")
    _, out, _ = run(capsys, plan.COMMAND, GRAMMAR, "--format=json")
    config = json.loads(out)["rows"][0]["config"]
    write_sweep(
        there, written.sweep([written.sweep_row("base", {})]) | {"config": config}
    )
    record = new_record(
        results_version=1, row="base", group="base", label="base", seed=0,
        identity="i", config=config, status="finished",
    )  # fmt: skip
    write_record(there / "runs/base/seed0", record)
    code, out, _ = run(capsys, plan.COMMAND, *only)
    assert code == 0 and "refused" not in out and " 1/1\n" in out
    code, out, _ = run(capsys, plan.COMMAND, *only, other)
    _, _, refusal = run(capsys, sweep.COMMAND, *only, other)
    assert code == 0 and "model.d_ff is 256 there and 128 now" in refusal
    told = f"A sweep would be refused there. {refusal.strip()}."
    assert " ".join(out.split()).endswith(told)


def test_plan_takes_a_rate(capsys):
    rate = "--flops_per_second=1e10"
    _, slow, _ = run(capsys, plan.COMMAND, GRAMMAR, rate, "--format=json")
    _, fast, _ = run(capsys, plan.COMMAND, GRAMMAR, "--format=json")
    slow, fast = json.loads(slow), json.loads(fast)
    assert slow["seconds_left"] == pytest.approx(4 * fast["seconds_left"])
    text = " ".join(run(capsys, plan.COMMAND, GRAMMAR, rate)[1].split())
    assert "assume 1e+10 FLOP/s" in text


@pytest.mark.parametrize(
    ("found", "arguments", "message"),
    [
        (plan.COMMAND, ["--rows=A_h3"], "unknown row 'A_h3'; did you mean A_h"),
        (plan.COMMAND, ["--seeds=a"], "--seeds=a: it must be whole numbers"),
        (
            plan.COMMAND,
            ["--config.regularization.dropout_rate=0.2"],
            "rows base and D_drop0.2 are equal",
        ),
        (plan.COMMAND, ["--flops_per_second=0"], "flag --flops_per_second=0"),
        (plan.COMMAND, ["--format=xml"], "flag --format=xml"),
        (sweep.COMMAND, [], "--workdir is missing"),
        (sweep.COMMAND, ["--workdir=w", "--launcher=pbs"], "--launcher=pbs: must be"),
        (sweep.COMMAND, ["--workdir=w", "--jobs=999"], "--jobs=999: 999 runs at a"),
        (sweep.COMMAND, ["--workdir=w", "--rows=bse"], "unknown row 'bse'; did you"),
        (
            plan.COMMAND,
            ["--config.model.num_heads=5", "--rows=A_h16"],
            "row A_h16: 10 heads, where model.num_heads = 5: 1/10 of "
            "model.d_model = 64 is not a whole number; make it a multiple of 10, or "
            "leave the row out with --rows",
        ),
        (
            sweep.COMMAND,
            ["--workdir=w", "--config.model.num_layers=4"],
            "row C_N2: a third of model.num_layers = 4",
        ),
    ],
)
def test_refusals_exit_2_and_leave_no_folder(
    capsys, repository, found, arguments, message
):
    code, out, error = run(capsys, found, GRAMMAR, *arguments)
    assert (code, out) == (2, "")
    assert error.startswith(message)
    assert not (repository / "w").exists()


def test_depth_without_thirds_is_no_matter_where_no_row_needs_it(capsys):
    arguments = [GRAMMAR, "--config.model.num_layers=2", "--rows=base,A_h1"]
    assert run(capsys, plan.COMMAND, *arguments)[0] == 0


@pytest.mark.parametrize(
    "arguments", [["plan", "--help"], ["sweep", "--help"], ["plan", GRAMMAR]]
)
def test_quick_commands_never_load_jax(arguments):
    code = (
        "import runpy, sys\n"
        "name, sys.argv[1:] = sys.argv[1], sys.argv[2:]\n"
        "try:\n"
        "    runpy.run_module(f'experiments.{name}', run_name='__main__')\n"
        "except SystemExit as stop:\n"
        "    assert not stop.code, stop.code\n"
        "assert not {'jax', 'flax', 'tensorflow_datasets'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
