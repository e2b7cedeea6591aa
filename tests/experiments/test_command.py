"""Command lines: exit codes, one message for a mistake, no traceback."""

import errno
import importlib
import os
import signal
import subprocess
import sys
import textwrap
import warnings

import pytest
from absl import flags

from experiments import __main__, command, plan, sweep, tables
from transformer_ablation import parallel
from transformer_ablation.config import ConfigError

GRAMMAR = "--config=configs/table3.py:grammar"


def configured(body):
    """A command that takes a config and does ``body(options, sweep_file)``."""

    def define(values):
        flags.DEFINE_string("workdir", None, "a folder", flag_values=values)

    return command.Command("test", "Tests.", ("an example",), define, body, True)


@pytest.fixture
def load(repository, monkeypatch, capsys):
    """``load(*arguments)``: the base config; or exit code and message."""
    monkeypatch.chdir(repository)

    def load(*arguments):
        found = []
        code = command.run(configured(lambda _, file: found.append(file)), arguments)
        error = capsys.readouterr().err.strip()
        return found[0] if found else (code, error)

    return load


@pytest.fixture
def write(tmp_path):
    """Write a sweep file; the --config argument for it."""

    def write(text, name="mine.py"):
        (tmp_path / name).write_text(textwrap.dedent(text))
        return f"--config={tmp_path / name}"

    return write


def test_overrides_reach_base_in_every_spelling(load):
    base = load(
        GRAMMAR,
        "--config.model.d_model=128",
        "-config.model.num_heads=2",
        "--config.train.steps", "7",
        "--noconfig.model.scale_embeddings",
        "--config.regularization.dropout_rate=0",
        "--config.data.directory=DIR",
        "--config.model.attention_window=5",
        "--config.model.attention_window=None",
        "--config.data.test_split=none",
        "--config.optimizer.clip_norm=2",
    ).base  # fmt: skip
    assert (base.model.d_model, base.model.num_heads, base.train.steps) == (128, 2, 7)
    assert base.model.scale_embeddings is False
    assert base.regularization.dropout_rate == 0.0
    assert base.data.directory == "DIR" and base.data.test_split is None
    assert base.model.attention_window is None and base.optimizer.clip_norm == 2.0


def test_later_override_wins_and_may_replace_none(load):
    paths = [
        "--config.model.attention_window=None",
        "--config.model.attention_window=3",
    ]
    assert load(GRAMMAR, *paths).base.model.attention_window == 3


@pytest.mark.parametrize("before", [True, False])
def test_config_may_stand_anywhere_on_the_line(load, before):
    arguments = ["--config.train.steps=7", "--workdir=x"]
    config = ["--config", "configs/table3.py:wmt14"]
    loaded = load(*(config + arguments if before else arguments + config))
    assert loaded.base.train.steps == 7 and loaded.base.data.corpus == "wmt14"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "--config.model.dropuot_rate=0.1",
            "model.dropuot_rate: unknown field; "
            "did you mean regularization.dropout_rate?",
        ),
        (
            "--config.model.d_model=abc",
            "model.d_model: 'abc' is not allowed; "
            "it must be a whole number of at least 1",
        ),
        (
            "--config.model.d_model=6.5",
            "model.d_model: '6.5' is not allowed; "
            "it must be a whole number of at least 1",
        ),
        (
            "--config.model.d_model=None",
            "model.d_model: None is not allowed; "
            "it must be a whole number of at least 1",
        ),
        (
            "--config.model.scale_embeddings=perhaps",
            "model.scale_embeddings: 'perhaps' is not allowed; "
            "it must be True or False",
        ),
        (
            "--config.regularization.dropout_rate=1",
            "regularization.dropout_rate: 1.0 is not allowed; "
            "it must be a number in [0, 1)",
        ),
        (
            "--config.model=5",
            "model: is a section; set a field of it, as in "
            "--config.model.architecture=VALUE",
        ),
    ],
)
def test_bad_override_is_one_message(load, override, message):
    assert load(GRAMMAR, override) == (2, message)


def test_all_bad_overrides_are_named_at_once(load):
    code, message = load(GRAMMAR, "--config.model.d_k=x", "--config.a.b=1")
    first, second = message.splitlines()
    assert code == 2
    assert first.startswith("model.d_k: 'x'") and second.startswith("a.b: unknown")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--config=configs/no.py"], ["no file configs/no.py", "configs/table3.py"]),
        (
            ["--config=table3.py:grammar"],
            ["no file table3.py; did you mean --config=configs/table3.py:grammar?"],
        ),
        (
            ["--config=configs/table3:grammar"],
            ["did you mean --config=configs/table3.py:grammar?"],
        ),
        (["--config=nowhere/base"], ["did you mean --config=configs/base.py?"]),
        (["--config=configs/"], ["there is no file configs/"]),
        (["--config=requirements.txt"], ["requirements.txt is not a Python file"]),
        (["--config=configs/table3.py:gramar"], ["'gramar'", "did you mean grammar?"]),
        (["--config=configs/base.py:big"], ["configs/base.py", "no argument", "'big'"]),
        ([], ["--config is missing", "--help"]),
        ([GRAMMAR, "--workdri=x"], ["workdri", "workdir", "--help"]),
        ([GRAMMAR, "stray"], ["unexpected argument 'stray'"]),
    ],
)
def test_refused_command_line_says_why(load, arguments, parts):
    code, message = load(*arguments)
    assert code == 2
    assert "Traceback" not in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def get_config(:\n", "mine.py, line 1: "),
        ("import no_such_module_x\n", "mine.py, line 1: ModuleNotFoundError"),
        ("x = 1\n", "mine.py: has no function get_config()"),
        ("def get_config():\n    return 5\n", "mine.py: get_config() returns a int"),
        (
            "def get_config():\n    config = None\n    config.model = 1\n",
            "mine.py, line 3: AttributeError",
        ),
        (
            "def get_config(scale):\n    return scale\n",
            "get_config() needs one; write --config=",
        ),
        (
            "from configs.base import get_config\ndef get_rows():\n    return [1]\n",
            "mine.py: get_rows() must return a list of Row",
        ),
        (
            "from configs.base import get_config\ndef get_rows():\n    return []\n",
            "mine.py: get_rows() returns no row",
        ),
        (
            "from configs import base\ndef get_config():\n"
            "    c = base.get_config()\n    c.model.d_modl = 1\n    return c\n",
            "model.d_modl: unknown field; did you mean model.d_model?",
        ),
    ],
)
def test_broken_config_file_is_named_with_its_line(load, write, text, message):
    code, error = load(write(text))
    assert code == 2 and message in error and "Traceback" not in error


def test_file_without_rows_is_a_study_of_base(load, write):
    loaded = load(write("from configs.base import get_config\n"))
    assert [row.name for row in loaded.rows] == ["base"]
    assert loaded.title == "mine"


def test_file_with_a_plain_none_takes_an_override(load, write):
    """Not a placeholder: the type comes from the schema, not from the file."""
    config = write(
        """
        from configs import base
        from transformer_ablation.sweep.rows import BASE, Row

        TITLE = "Depth"

        def get_config():
            config = base.get_config().to_dict()
            config["data"]["directory"] = None
            import ml_collections
            return ml_collections.ConfigDict(config)

        def get_rows():
            return [BASE, Row("deep", "D", "deep", lambda b: {"model.num_layers": 9})]
        """
    )
    loaded = load(
        config, "--config.data.directory=/d", "--config.optimizer.clip_norm=1"
    )
    assert loaded.base.data.directory == "/d" and loaded.base.optimizer.clip_norm == 1.0
    assert loaded.title == "Depth" and [r.name for r in loaded.rows] == ["base", "deep"]


class NoNetwork(ValueError):
    exit_code = 1


NoNetwork.__module__ = "transformer_ablation.data.somewhere"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigError(["a", "b"]), 2, "a\nb"),
        (NoNetwork("no network"), 1, "no network"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/w/record.json"),
            1,
            "disk full: /w/record.json; free space and run the same command again: "
            "finished runs are kept",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "/w"), 1, "/w: permission"),
        (KeyboardInterrupt(), 1, "interrupted"),
    ],
)
def test_error_of_a_body_becomes_a_code_and_a_message(
    load, capsys, error, code, message
):
    def body(options, file):
        raise error

    assert command.run(configured(body), [GRAMMAR]) == code
    assert capsys.readouterr().err.startswith(message)


def test_full_disk_without_a_file_name_names_the_workdir(load, capsys):
    def body(options, file):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert command.run(configured(body), [GRAMMAR, "--workdir=runs/w"]) == 1
    assert capsys.readouterr().err.startswith("disk full: runs/w; ")


@pytest.mark.parametrize("error", [ValueError("a bug"), TypeError("a bug")])
def test_bug_keeps_its_traceback(load, error):
    def body(options, file):
        raise error

    with pytest.raises(type(error), match="a bug"):
        command.run(configured(body), [GRAMMAR])


def test_exit_code_of_a_body_is_kept(load):
    assert command.run(configured(lambda options, file: 1), [GRAMMAR]) == 1
    assert command.run(configured(lambda options, file: None), [GRAMMAR]) == 0


@pytest.mark.parametrize("found", [plan.COMMAND, sweep.COMMAND])
def test_help_shows_examples_that_parse(load, capsys, found):
    assert command.run(found, ["--help"]) == 0
    text = capsys.readouterr().out
    assert found.summary in text and "--workdir" in text and "--config" in text
    for example in found.examples:
        assert example in text
        arguments = example.partition(f"experiments.{found.name} ")[2].split()
        accepting = configured(lambda options, file: 0)
        values = flags.FlagValues()
        found.define(values)
        accepting = command.Command(
            "t", "", (), found.define, accepting.body, True, found.config
        )
        assert command.run(accepting, arguments) == 0, example


def test_package_alone_lists_every_command_with_its_summary(capsys):
    found = __main__.names()
    assert {"plan", "sweep", "status", "tables", "translate"} <= set(found)
    assert __main__.main(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name in found:
        module = importlib.import_module(f"experiments.{name}")
        assert module.COMMAND.name == name
        assert f"{name} {module.COMMAND.summary}" in out


def test_command_as_an_argument_is_told_how_it_is_run(capsys):
    assert __main__.main(["sweep", "--workdir=w"]) == 2
    error = capsys.readouterr().err
    assert error.endswith("is not an argument here; run python -m experiments.sweep\n")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--mixed=maybe", "--mixed=maybe: must be true or false"),
        ("--samples=many", "--samples=many: must be a whole number"),
        ("--sustained_flops=x", "--sustained_flops=x: must be a number"),
        ("--samples=0", "0 is not an integer in the range [1, 1000000]"),
    ],
)
def test_value_of_another_kind_is_told_in_words(capsys, flag, said):
    assert command.run(tables.COMMAND, [flag]) == 2
    error = capsys.readouterr().err
    assert said in error.splitlines()[0] and "literal" not in error


def test_own_warnings_are_messages_and_others_stay_what_they_are(capsys):
    """One line without file and line number; a library's is not passed off as ours."""

    def body(options):
        warnings.warn(parallel.CacheWarning("folder: read-only"), stacklevel=1)
        warnings.warn("of a library", stacklevel=1)

    made = command.Command("x", "x", (), lambda values: None, body)
    with pytest.warns(UserWarning, match="of a library") as others:
        assert command.run(made, []) == 0
    assert capsys.readouterr().err == "folder: read-only\n"
    assert len(others) == 1


@pytest.fixture
def started(repository, tmp_path):
    """``started(name, *arguments, **more)``: a command in a process of its own.

    A module that it imports first sends Ctrl-C where ``INTERRUPT`` is set.
    """
    (tmp_path / "first/absl").mkdir(parents=True)
    (tmp_path / "first/absl/__init__.py").write_text(
        "import os, signal, sys\n"
        "if os.environ.get('INTERRUPT'):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    raise ImportError('goes on')\n"
        "found = [os.path.join(p, 'absl') for p in sys.path]\n"
        "__path__ = [p for p in found if os.path.isfile(p + '/app.py')]\n"
    )

    def started(name, *arguments, **more):
        path = os.pathsep.join([str(tmp_path / "first"), str(repository / "src")])
        return subprocess.run(
            [sys.executable, "-m", name, *arguments],
            cwd=repository,
            env={**os.environ, "PYTHONPATH": path, **more.pop("env", {})},
            capture_output=True,
            text=True,
            **more,
        )

    return started


@pytest.mark.parametrize("name", ["tables", "sweep"])
def test_ctrl_c_while_a_command_loads_is_one_line(started, name):
    done = started(f"experiments.{name}", env={"INTERRUPT": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_that_is_ignored_stays_ignored(started):
    """As a shell script has it of a command in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a child inherits it
    try:
        done = started("experiments.tables", env={"INTERRUPT": "1"})
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 1 and "goes on" in done.stderr


def test_ctrl_c_after_that_is_what_it_was(started, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = started("experiments.plan", f"--config={tmp_path / 'mine.py'}")
    told = "interrupted; run the same command again to go on\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
