"""``sweep`` from the command line to the table, with a stand-in for the training."""

import json
import shutil
import subprocess
import sys

import pytest

from experiments import command, plan, sweep, sweep_launch, sweep_runs
from experiments.sweep_record import mark_stopped
from transformer_ablation import RESULTS_VERSION
from transformer_ablation.config import to_mapping
from transformer_ablation.data import corpus, tokens
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.report.record import (
    new_record,
    new_score,
    read_record,
    update_record,
    write_record,
)
from transformer_ablation.sweep.device_locks import DeviceLocks
from transformer_ablation.sweep.plan import duration
from transformer_ablation.sweep.worker_thread import WorkerThread
from transformer_ablation.vocabulary import VocabularyError

GRAMMAR = "--config=configs/table3.py:grammar"
MANIFEST = {
    "corpus": "grammar",
    "source_language": "en",
    "target_language": "de",
    "splits": {"train": {"en": {"sha256": "1"}, "de": {"sha256": "2"}}},
}


class Spelling:
    """Stands in for a vocabulary of two words."""

    def decode(self, ids):
        return " ".join({5: "dog", 6: "Hund\r\x1b[2J"}[i] for i in ids)


TRAIN = TokenizedSplit(Ragged.of([[5]]), Ragged.of([[6]]))
PREPARED = tokens.Prepared(
    corpus=corpus.Corpus("en", "de", {}, MANIFEST),
    vocabulary=Spelling(),
    train=TRAIN,
    validation=TRAIN,
    test=None,
    filters={},
)


class Training:
    """Stands in for ``experiments.run``: writes a record with made-up scores."""

    def __init__(self):
        self.ran, self.failing = [], set()

    def starter(self, cache):
        def start(share, hear):
            return WorkerThread(
                lambda: self.run_one,
                hear,
                read_record=read_record,
                mark_stopped=mark_stopped,
            )

        return start

    def run_one(self, run, stop, progress):
        self.ran.append(run.name)
        if run.row in self.failing:
            raise RuntimeError("no luck")
        value = {"base": 5.25, "A_h1": 6.5}.get(run.row, 7.75)
        scores = [
            new_score(
                "validation", "ppl", value, sentences=9, steps=[600], target_tokens=99
            )
        ]
        manifest = corpus.read_manifest(run.config.data, None) or MANIFEST
        record = new_record(
            results_version=RESULTS_VERSION,
            row=run.row,
            group=run.group,
            label=run.label,
            seed=run.seed,
            identity=run.identity,
            config=to_mapping(run.config),
            status="finished",
            step=run.config.train.steps,
            scores=scores,
            data={"manifest_hash": corpus.manifest_hash(manifest)},
        )
        write_record(run.directory, record)
        return "finished"


@pytest.fixture
def training(repository, monkeypatch):
    """The stand-in, with a corpus that is prepared already."""
    training = Training()
    monkeypatch.setattr(sweep_launch, "worker_starter", training.starter)
    monkeypatch.setattr(corpus, "read_manifest", lambda data, cache: MANIFEST)
    monkeypatch.setattr(tokens, "prepare", lambda data, cache: PREPARED)
    monkeypatch.chdir(repository)
    return training


@pytest.fixture
def run(training, tmp_path, capsys):
    """``run(*arguments)``: exit code, stdout, stderr of a sweep in one workdir."""

    def run(*arguments):
        where = [f"--workdir={tmp_path / 'w'}", f"--cache={tmp_path / 'cache'}"]
        steps = "--config.train.steps=600"  # as the stand-in's scores say
        code = command.run(sweep.COMMAND, [GRAMMAR, steps, *where, *arguments])
        return (code, *capsys.readouterr())

    return run


def test_sweep_trains_and_prints_the_table(run, training):
    code, out, _ = run("--rows=base,A_h1")
    assert code == 0 and training.ran == ["base seed 0", "A_h1 seed 0"]
    lines = [line for line in out.splitlines() if "A_h1" in line]
    assert "6.50" in lines[0] and "5.29" in lines[0]  # measured, and the paper's


def test_one_pair_is_shown_once_before_training(run):
    """So that a reversed direction is seen; a terminal obeys no text."""
    shown = "grammar, en to de, for example:\n  en: dog\n  de: Hund\\r\\x1b[2J\n"
    error = run("--rows=base,A_h1")[2]
    assert error.startswith(shown) and error.count("for example") == 1


def test_second_sweep_has_nothing_to_do_and_prints_the_same(run, training):
    _, first, _ = run("--rows=base,A_h1")
    training.ran.clear()
    code, second, error = run("--rows=base,A_h1")
    assert (code, training.ran, second) == (0, [], first)
    assert "nothing to do" in error


def test_sweep_tells_first_what_plan_says_of_what_is_to_do(run, capsys, tmp_path):
    run("--rows=base")
    steps, where = "--config.train.steps=600", f"--workdir={tmp_path / 'w'}"
    asked = [GRAMMAR, steps, where, "--rows=base,A_h1,big", "--seeds=0,1"]
    assert command.run(plan.COMMAND, [*asked, "--format=json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["runs_left"] == 5
    flops = planned["seconds_left"] * 4e10  # the default of --flops_per_second
    words = f"{flops:.2e} FLOPs, about {duration(planned['seconds_left'])}"
    _, _, error = run("--rows=base,A_h1,big", "--seeds=0,1")
    told = f"\n5 runs to do: {words} by plan's rough estimate (4e+10 FLOP/s sustained"
    assert told in error and error.index(told) < error.index("started")
    assert "to do: " not in run("--rows=base")[2].replace("nothing to do", "")
    assert "\n1 run to do: " in run("--rows=base", "--seeds=2")[2]


def test_devices_of_others_are_told_of_where_something_runs(run, monkeypatch):
    class Busy(DeviceLocks):
        def take(self, kind, names, needed):
            self.busy = list(names[:needed])
            return self.busy

    monkeypatch.setattr(sweep_launch, "DeviceLocks", Busy)
    told = "in use by another sweep of this machine too: device "
    asked = "--rows=base", "--devices_per_run=1"
    assert told in run(*asked)[2]
    error = run(*asked)[2]
    assert "nothing to do" in error and told not in error


def test_rows_and_seeds_are_added_to_a_sweep(run, training, tmp_path):
    run("--rows=base")
    training.ran.clear()
    code, out, _ = run("--rows=A_h1,base", "--seeds=0,1")
    assert code == 0
    assert training.ran == ["A_h1 seed 0", "base seed 1", "A_h1 seed 1"]
    assert "A_h1" in out
    run("--rows=big")
    kept = json.loads((tmp_path / "w" / "sweep.json").read_text())
    assert [row["name"] for row in kept["rows"]] == ["base", "A_h1", "big"]
    assert kept["seeds"] == [0, 1]


def test_failing_row_is_in_the_table_and_in_the_exit_code(run, training, tmp_path):
    training.failing.add("A_h1")
    code, out, error = run("--rows=base,A_h1,big")
    assert code == 1 and training.ran[-1] == "big seed 0"
    assert "failed" in out and "A_h1 seed 0 failed: RuntimeError: no luck" in error
    record = json.loads((tmp_path / "w/runs/A_h1/seed0/record.json").read_text())
    assert (record["status"], record["reason"]) == ("failed", "RuntimeError: no luck")
    training.failing.clear()
    training.ran.clear()
    assert run("--rows=base,A_h1,big")[0] == 0 and training.ran == ["A_h1 seed 0"]


def test_workdir_of_another_sweep_is_refused_and_left_alone(run, training, tmp_path):
    run("--rows=base")
    before = {p: p.read_bytes() for p in (tmp_path / "w").rglob("*.json")}
    training.ran.clear()
    code, out, error = run("--rows=base", "--config.train.steps=5")
    assert (code, out, training.ran) == (2, "", [])
    assert "holds another sweep: train.steps is 600 there and 5 now" in error
    assert {p: p.read_bytes() for p in (tmp_path / "w").rglob("*.json")} == before


def test_corrupt_record_is_refused_before_anything_runs(run, training, tmp_path):
    run("--rows=base")
    (tmp_path / "w/runs/base/seed0/record.json").write_text("{")
    training.ran.clear()
    code, _, error = run("--rows=base,A_h1")
    assert (code, training.ran) == (2, [])
    assert "runs/base/seed0/record.json: not valid JSON" in error


def test_finished_sweep_never_loads_jax(run, tmp_path):
    run("--rows=base")
    code = (
        "import sys\n"
        "from transformer_ablation.data import corpus\n"
        f"corpus.read_manifest = lambda data, cache: {MANIFEST}\n"
        "from experiments import command, sweep\n"
        "assert command.run(sweep.COMMAND, sys.argv[1:]) == 0\n"
        "assert not {'jax', 'flax', 'tensorflow_datasets'} & set(sys.modules)\n"
    )
    steps = "--config.train.steps=600"
    arguments = [GRAMMAR, steps, f"--workdir={tmp_path / 'w'}", "--rows=base"]
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "nothing to do" in ran.stderr


def test_data_that_is_missing_is_prepared_once_a_corpus(run, training, monkeypatch):
    """Rows share their data; only the vocabulary's size differs in a real sweep."""
    prepared = []

    def prepare(data, cache):
        prepared.append(data.corpus)
        return PREPARED

    monkeypatch.setattr(corpus, "read_manifest", lambda data, cache: None)
    monkeypatch.setattr(tokens, "prepare", prepare)
    assert run("--rows=base,A_h1")[0] == 0
    assert prepared == ["grammar", "grammar"]  # its hash, then whether it fits


def manifest_of(data, cache):
    """As if every corpus in every direction were prepared."""
    languages = {
        "source_language": data.source_language,
        "target_language": data.target_language,
    }
    texts = {name: {"sha256": f"{data.corpus} {name}"} for name in ("de", "en")}
    return {**MANIFEST, **languages, "splits": {"train": texts}}


TWO_TEXTS = """
from configs import table3
from transformer_ablation.sweep.rows import Row

TITLE = "Two directions"
get_config = lambda: table3.get_config("grammar")


def get_rows():
    there = {"data.source_language": "de", "data.target_language": "en"}
    return [
        Row("base", "base", "base", lambda b: {}),
        Row("narrow", "C", "d_ff", lambda b: {"model.d_ff": 16}),
        Row("back", "X", "direction", lambda b: there),
    ]
"""


def test_rows_of_other_text_are_refused_before_training(
    training, tmp_path, monkeypatch, capsys
):
    """The table would refuse them once all are trained."""
    monkeypatch.setattr(corpus, "read_manifest", manifest_of)
    (tmp_path / "two.py").write_text(TWO_TEXTS)
    given = [f"--config={tmp_path / 'two.py'}", f"--workdir={tmp_path / 'w'}"]
    given += [f"--cache={tmp_path / 'cache'}", "--config.train.steps=600"]
    assert command.run(sweep.COMMAND, given) == 2
    refused = capsys.readouterr().err
    assert refused == (
        "row back: is of other text than row base: data.source_language 'de', not "
        "'en', data.target_language 'en', not 'de'\n"
        "no table takes both: give all rows one text, or each a --workdir\n"
    )
    assert training.ran == [] and not (tmp_path / "w").exists()
    # One after the other they come to the same.
    assert command.run(sweep.COMMAND, [*given, "--rows=base,narrow"]) == 0
    capsys.readouterr()
    assert command.run(sweep.COMMAND, [*given, "--rows=back"]) == 2
    assert "row back: is of other text than row base, which this workdir holds" in (
        capsys.readouterr().err
    )
    assert training.ran == ["base seed 0", "narrow seed 0"]
    other = [x for x in given if "workdir" not in x] + [f"--workdir={tmp_path / 'v'}"]
    assert command.run(sweep.COMMAND, [*other, "--rows=back"]) == 0


ONE_ROW = """
from configs import table3
from transformer_ablation.sweep.rows import Row

TITLE = "One row"
get_config = lambda: table3.get_config("grammar")


def get_rows():
    narrow = Row("narrow", "C", "d_ff", lambda base: {"model.d_ff": D_FF})
    return [Row("base", "base", "base", lambda base: {}), narrow]
"""


def test_seed_of_a_row_that_was_run_otherwise_is_refused(training, tmp_path, capsys):
    """One table would have both seeds, and refuses them once they are trained."""
    path = tmp_path / "one.py"
    given = [f"--config={path}", f"--workdir={tmp_path / 'w'}"]
    given += [f"--cache={tmp_path / 'cache'}", "--config.train.steps=600"]
    path.write_text(ONE_ROW.replace("D_FF", "16"))
    assert command.run(sweep.COMMAND, given) == 0
    before = (tmp_path / "w" / "sweep.json").read_bytes()
    training.ran.clear()
    path.write_text(ONE_ROW.replace("D_FF", "32"))
    capsys.readouterr()
    assert command.run(sweep.COMMAND, [*given, "--seeds=1"]) == 2
    error = capsys.readouterr().err
    held = tmp_path / "w" / "runs" / "narrow" / "seed0"
    assert f"{held}: holds another run: model.d_ff is 16 there and 32 now" in error
    assert "--beside" in error and "base" not in error.partition(str(held))[0]
    assert training.ran == []
    assert (tmp_path / "w" / "sweep.json").read_bytes() == before
    # Under a name of its own it may run.
    assert command.run(sweep.COMMAND, [*given, "--seeds=1", "--beside"]) == 0
    assert len(training.ran) == 2


def test_seed_with_other_text_is_refused(run, training, monkeypatch):
    assert run("--rows=base")[0] == 0
    texts = {"en": {"sha256": "other"}, "de": {"sha256": "2"}}
    other = {**MANIFEST, "splits": {"train": texts}}
    monkeypatch.setattr(corpus, "read_manifest", lambda data, cache: other)
    code, _, error = run("--rows=base", "--seeds=1")
    assert code == 2 and "seed0: holds another run: the data or" in error
    assert training.ran == ["base seed 0"]


def test_workdir_of_another_version_of_results_takes_no_row(run, training, tmp_path):
    assert run("--rows=base")[0] == 0
    directory = tmp_path / "w" / "runs" / "base" / "seed0"
    update_record(directory, results_version=RESULTS_VERSION - 1)
    code, _, error = run("--rows=A_h1")
    assert code == 2 and training.ran == ["base seed 0"]
    assert error.splitlines()[-2:] == [
        f"base/seed0: has results of version {RESULTS_VERSION - 1}, those of this "
        f"program have {RESULTS_VERSION}",
        "no table takes both: use another --workdir",
    ]


def test_refused_data_leave_the_workdir_as_it_was(run, training, tmp_path, monkeypatch):
    """So that the corrected command is not one for another sweep."""

    def refuse(data, cache):
        raise VocabularyError("data.vocabulary_size: too many")

    monkeypatch.setattr(tokens, "prepare", refuse)
    code, out, error = run("--rows=base", "--config.data.vocabulary_size=50000")
    assert (code, out, training.ran) == (2, "", [])
    assert error.endswith("data.vocabulary_size: too many\n")
    assert not (tmp_path / "w").exists()
    monkeypatch.setattr(tokens, "prepare", lambda data, cache: PREPARED)
    assert run("--rows=base")[0] == 0


def test_sweep_that_ran_nothing_binds_no_later_one(run, training, tmp_path):
    run("--rows=base")
    shutil.rmtree(tmp_path / "w" / "runs")
    assert run("--rows=base", "--config.train.log_every_steps=7")[0] == 0


def test_broken_record_of_another_row_is_refused_first(run, training, tmp_path):
    run("--rows=base,A_h1")
    (tmp_path / "w/runs/A_h1/seed0/record.json").write_text('{"row')
    training.ran.clear()
    code, _, error = run("--rows=base", "--seeds=1")
    assert (code, training.ran) == (2, []) and "A_h1/seed0/record.json" in error


def test_seeds_of_one_row_are_not_asked_of_the_others(run, tmp_path):
    run("--rows=base,A_h1")
    run("--rows=A_h1", "--seeds=1")
    kept = json.loads((tmp_path / "w" / "sweep.json").read_text())
    seeds = {row["name"]: row["seeds"] for row in kept["rows"]}
    assert seeds == {"base": [0], "A_h1": [0, 1]}


def test_only_failed_runs_are_run_again_on_request(run, training, tmp_path):
    training.failing.add("A_h1")
    run("--rows=base,A_h1", "--seeds=0,1")
    shutil.rmtree(tmp_path / "w/runs/base/seed1")  # pending, and not asked for
    training.failing.clear()
    training.ran.clear()
    code, _, _ = run("--rerun=failed")
    assert (code, training.ran) == (0, ["A_h1 seed 0", "A_h1 seed 1"])
    kept = json.loads((tmp_path / "w" / "sweep.json").read_text())
    assert [row["name"] for row in kept["rows"]] == ["base", "A_h1"]
    training.ran.clear()
    code, _, error = run("--rerun=failed")
    assert (code, training.ran) == (0, [])
    assert error.endswith("nothing to do: no run has failed\n")


def test_changed_base_gets_rows_beside_the_old_ones(run, training, tmp_path):
    run("--rows=base,A_h1")
    files = (tmp_path / "w/runs").rglob("*")
    before = {p: p.stat().st_mtime_ns for p in files if p.is_file()}
    training.ran.clear()
    changed = ("--config.model.d_ff=96", "--beside")
    assert run("--rows=base,C_N2", *changed)[0] == 0
    # C_N2 was not there, but of this base it is no C_N2 of that workdir's.
    assert training.ran == ["base.2 seed 0", "C_N2.2 seed 0"]
    kept = json.loads((tmp_path / "w" / "sweep.json").read_text())
    assert [r["name"] for r in kept["rows"]] == ["base", "A_h1", "base.2", "C_N2.2"]
    rows = {row["name"]: row for row in kept["rows"]}
    assert rows["base.2"]["changes"] == {"model.d_ff": 96}
    assert set(rows["C_N2.2"]["changes"]) == {"model.num_layers", "model.d_ff"}
    assert kept["config"]["model"]["d_ff"] != 96
    assert {p: p.stat().st_mtime_ns for p in before} == before
    # The same request again is the same runs; another change is another one.
    training.ran.clear()
    code, out, _ = run("--rows=base,C_N2", *changed)
    assert (code, training.ran) == (0, []) and "base.2" in out
    run("--rows=base", "--config.model.d_ff=80", "--beside")
    assert training.ran == ["base.3 seed 0"]
    # Unchanged rows keep their names.
    assert run("--rows=base,A_h1", "--beside")[0] == 0
    assert training.ran == ["base.3 seed 0"]


def test_two_launchers_lose_no_row_of_the_other(run, tmp_path, monkeypatch):
    """Another one adds its row after this one has read sweep.json."""
    run("--rows=base")
    path = tmp_path / "w" / "sweep.json"
    check, other = sweep_runs.sweep_data.check, []

    def meanwhile(todo, cache):
        check(todo, cache)
        kept = json.loads(path.read_text())
        other.append({**kept["rows"][0], "name": "other"})
        path.write_text(json.dumps({**kept, "rows": [*kept["rows"], *other]}))

    monkeypatch.setattr(sweep_runs.sweep_data, "check", meanwhile)
    run("--rows=A_h1")
    names = [row["name"] for row in json.loads(path.read_text())["rows"]]
    assert sorted(names) == ["A_h1", "base", "other"]
