"""``translate``: lines in, as many lines out, by a run's folder alone."""

import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import types

import numpy as np
import pytest

from experiments import command, line_streams, line_translation, loading, translate
from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.evaluate.translation import Translation
from transformer_ablation.vocabulary import EOS, PAD


@pytest.fixture(scope="module")
def base(folder):
    """The folder of a finished run; nobody writes there."""
    return tiny.straight(folder) / "runs/base/seed0"


@pytest.fixture
def moved(base, tmp_path):
    """The run copied elsewhere, free to be changed."""
    return shutil.copytree(base, tmp_path / "elsewhere" / "model")


@pytest.fixture
def refused(capsys, monkeypatch):
    """``refused(*arguments)``: the one message of a request refused with exit 2."""
    monkeypatch.setattr(sys, "stdin", standard(b"red dog\n"))

    def refused(*arguments):
        assert command.run(translate.COMMAND, list(map(str, arguments))) == 2
        out, error = capsys.readouterr()
        assert out == "" and "Traceback" not in error
        return error

    return refused


def standard(content, terminal=False):
    """A stand-in for stdin."""
    return types.SimpleNamespace(
        buffer=io.BytesIO(content), isatty=lambda: terminal, content=content
    )


@pytest.fixture
def piped(monkeypatch, capfdbinary):
    """``piped(content, terminal=False, **)``: stdout, stderr and the calls of a
    translation that spells every line backwards."""

    def piped(content, terminal=False, one_by_one=False):
        calls = []

        def backwards(lines, first, *, few_shapes):
            calls.append((list(lines), first, few_shapes))
            if any(line == "too long" for line in lines):
                raise line_streams.LineError("too long")
            return [[line[::-1]] for line in lines]

        monkeypatch.setattr(sys, "stdin", standard(content, terminal))
        if terminal:
            line_streams.prompt(backwards)
        else:
            line_streams.pipe(backwards, one_by_one=one_by_one)
        return (*capfdbinary.readouterr(), calls)

    return piped


def test_moved_run_translates_a_split_as_its_sweep_did(folder, base, moved, tmp_path):
    """From another folder, without the corpus, the config file or the sweep."""
    source = (folder / "corpus/val.en").read_bytes()
    given = [f"--run={moved}", f"--cache={tmp_path / 'cache'}"]
    done = tiny.process("translate", given, input=source, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    expected = (base / "translations/validation.txt").read_bytes()
    # They differ from each other, so order matters.
    assert len(set(expected.split(b"\n"))) > 3
    assert done.stdout == expected
    # What takes minutes on a busy machine is told, and only there.
    told = done.stderr.decode().splitlines()
    assert told[0] == f"loading checkpoint 150 of {moved} ..."
    assert told[1].startswith("compiling the search for sources of up to ")


def test_terminal_gets_a_prompt_and_ctrl_c_ends_it(base, folder, tmp_path):
    leader, follower = pty.openpty()
    environment = {**os.environ, **tiny.ENVIRONMENT}
    child = subprocess.Popen(
        [sys.executable, "-m", "experiments.translate", f"--run={base}",
         f"--cache={tmp_path}"],
        stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment,
    )  # fmt: skip
    os.close(follower)
    try:
        os.write(leader, b"red dog\n")
        answer = child.stdout.readline()
        child.send_signal(signal.SIGINT)  # as Ctrl-C does
        out, error = child.communicate(timeout=60)
    finally:
        child.kill()
        os.close(leader)
    assert answer.endswith(b"\n") and out == b""
    assert child.returncode == 0 and b"Traceback" not in error
    assert error.count(b"> ") in (1, 2)  # the second may be overtaken


def test_lines_end_at_line_feeds_and_nowhere_else(piped):
    text = "a b\r\nc\x85d\ne\u2028f\n\x0b\x0c\x1cg\n\nlast"
    out, error, _ = piped(text.encode())
    expected = "\rb a\nd\x85c\nf\u2028e\ng\x1c\x0c\x0b\n\ntsal\n"
    assert out == expected.encode() and error.startswith(b"line 1 ends in a carriage")


@pytest.mark.parametrize(("content", "count"), [(b"", 0), (b"\n", 1), (b"\n\nx", 3)])
def test_there_are_as_many_lines_out_as_in(piped, content, count):
    assert piped(content)[0].count(b"\n") == count


def test_many_lines_are_read_and_numbered_in_pieces(piped, monkeypatch):
    monkeypatch.setattr(line_streams, "LINES_AT_ONCE", 3)
    out, _, calls = piped(b"a\nb\nc\nd\ne\nf\ng\n")
    assert out == b"a\nb\nc\nd\ne\nf\ng\n"
    numbers = [(len(lines), first) for lines, first, _ in calls]
    assert numbers == [(3, 1), (3, 4), (1, 7)]
    # Only the first may have shapes of its own: of the others there is no end.
    assert [few for _, _, few in calls] == [False, True, True]


def test_each_line_is_answered_before_the_next_is_read(piped):
    _, _, calls = piped(b"a\nb\n", one_by_one=True)
    assert calls == [(["a"], 1, True), (["b"], 2, True)]


def test_carriage_return_is_text_and_told_once(piped, monkeypatch):
    """Lines end at line feeds only; who did not mean it is warned."""
    monkeypatch.setattr(line_streams, "LINES_AT_ONCE", 1)
    _, error, calls = piped(b"a\nb\r\nc\r\n")
    assert [lines for lines, *_ in calls] == [["a"], ["b\r"], ["c\r"]]
    assert error.count(b"carriage return") == 1 and error.startswith(b"line 2 ends")


def test_undecodable_line_is_named_by_its_number(piped, monkeypatch):
    monkeypatch.setattr(line_streams, "LINES_AT_ONCE", 2)
    message = "line 3, byte 2 of the line: 0xff is not UTF-8"
    with pytest.raises(line_streams.LineError, match=message):
        piped(b"a\nb\nc\xff\nd\n")


def test_prompt_goes_on_after_a_bad_line_until_the_end(piped):
    out, error, _ = piped(b"a b\n\xff\ntoo long\nc d", terminal=True)
    assert out == b"b a\nd c\n"
    assert error.count(b"> ") == 5  # four lines, and the one that ends it
    assert b"line 2, byte 1 of the line: 0xff" in error and b"too long" in error


# The translation of a list of lines, with a stand-in for the search.


@pytest.fixture
def lines(base, monkeypatch):
    """``lines(n_best, **changes)``: a line translator whose search returns the ids
    it is given, then the first half of them; ``.batches`` are what it was given."""

    def make(n_best=1, **changes):
        from transformer_ablation.config import replace

        run = loading.read_run(base)
        batches = []

        class Search:
            def __init__(self, model, config, n_best, compiling):
                self.n_best = n_best

            def translate(self, params, sources):
                batches.append([list(map(int, ids)) for ids in sources])
                found = []
                for ids in batches[-1]:
                    whole = ids[: ids.index(EOS)]
                    kept = [whole, whole[: len(whole) // 2]][: self.n_best]
                    found.append([Translation(k, 0.0, 0.0, False) for k in kept])
                return found

        monkeypatch.setattr(line_translation, "Translator", Search)
        config = replace(run.config, {"decode.extra_length": 11, **changes})
        trained = loading.Trained(None, None, [7])
        made = line_translation.LineTranslator(trained, config, run.vocabulary, n_best)
        made.batches, made.vocabulary = batches, run.vocabulary
        return made

    return make


def test_blank_lines_stay_blank_and_are_not_translated(lines):
    translator = lines()
    found = translator.translate(["red dog", "", " \t", "old\x85man"])
    assert found == [["red dog"], [""], [""], ["old\x85man"]]
    assert len(translator.batches[0]) == 2


def test_line_break_in_a_translation_becomes_a_space(lines, monkeypatch):
    translator = lines()
    feed = next(
        i
        for i in range(4, 260)
        if translator.vocabulary.pieces([i]) == ["<0x0A>"]
    )  # fmt: skip
    letters = translator.vocabulary.encode("red")
    monkeypatch.setattr(
        translator._translator,
        "translate",
        lambda params, sources: [
            [Translation([*letters, feed, *letters], 0.0, 0.0, False)]
        ],
    )
    # The word's piece brings a space of its own.
    assert translator.translate(["x"]) == [["red  red"]]


def test_places_without_a_hypothesis_are_blank_lines(lines):
    found = lines(n_best=3).translate(["red dog", ""])
    assert [len(best) for best in found] == [3, 3]
    assert found[0][0] == "red dog" and found[0][2] == "" and found[1] == ["", "", ""]


def test_lengths_are_padded_to_rungs_only_where_asked(lines):
    translator = lines()
    text = ["red", "old man plays ball in the old street, says the man with a red dog"]
    exact = [[*ids, EOS] for ids in map(translator.vocabulary.encode, text)]
    assert len(exact[0]) < 8 and len(exact[1]) > 24
    translator.translate(text)
    translator.translate(text, few_shapes=True)
    plain, padded = translator.batches
    assert plain == exact
    for short, long in zip(plain, padded, strict=True):
        assert long[: len(short)] == short and set(long[len(short) :]) <= {PAD}
        # A power of two, or one and a half times one.
        n = len(long)
        assert n >= 8 and (
            n & (n - 1) == 0 or n % 3 == 0 and (n // 3) & (n // 3 - 1) == 0
        )


def test_line_beyond_learned_positions_is_named(lines):
    learned = {"model.positions": "learned", "model.max_length": 40}
    translator = lines(**learned)
    piece = translator.vocabulary.encode("ß")
    # 40 positions hold 11 more than the source: 29 with the end of sentence.
    fitting = "ß" * (
        (28 - len(piece)) // (len(translator.vocabulary.encode("ßß")) - len(piece)) + 1
    )
    while len(translator.vocabulary.encode(fitting)) > 28:
        fitting = fitting[:-1]
    count = len(translator.vocabulary.encode(fitting))
    translator.translate([fitting], few_shapes=True)
    assert max(map(len, translator.batches[0])) <= 29
    longer = fitting
    while len(translator.vocabulary.encode(longer)) <= 28:
        longer += "ß"
    with pytest.raises(line_streams.LineError, match="^line 6: is .* 40 learned") as e:
        translator.translate(["red", longer], first=5)
    assert "hold 29 and 11 more" in str(e.value) and count <= 28
    lines().translate([longer])  # sinusoids have no end


# Runs that cannot be loaded, and what is loaded.


def test_unusable_run_is_one_message(base, moved, refused, tmp_path):
    workdir = base.parents[2]
    assert "--run is missing" in refused()
    assert refused(f"--run={tmp_path / 'no'}").startswith(
        f"{tmp_path / 'no'}: there is no such"
    )
    message = refused(f"--run={workdir}")
    assert f"{workdir}: holds no run" in message and f"--run={workdir}/runs/" in message
    (moved / "record.json").write_text("{")
    assert f"{moved / 'record.json'}: not valid JSON" in refused(f"--run={moved}")


def test_unfinished_run_without_checkpoint_is_one_message(moved, refused):
    record = json.loads((moved / "record.json").read_text())
    record["status"] = "preempted"
    (moved / "record.json").write_text(json.dumps(record))
    shutil.rmtree(moved / "checkpoints")
    told = "no checkpoint yet; the run is preempted; the first comes by update 50"
    assert refused(f"--run={moved}") == f"{moved}/checkpoints: {told}\n"
    assert not (moved / "checkpoints").exists()


def test_config_of_another_version_is_named_with_its_file(moved, refused):
    config = json.loads((moved / "config.json").read_text())
    del config["model"]["d_k"]
    (moved / "config.json").write_text(json.dumps(config))
    assert f"{moved / 'config.json'}: model.d_k: missing" in refused(f"--run={moved}")


def test_vocabulary_of_another_run_is_refused(moved, refused):
    from transformer_ablation.vocabulary import Vocabulary

    lines = [f"{a} {b}" for a, b in tiny.sentences(99, 5)]
    other = Vocabulary.train(lines, loading.read_run(moved).vocabulary.size)
    other.save(moved / "vocabulary.model")
    message = refused(f"--run={moved}")
    assert (
        "was trained with vocabulary" in message and other.content_hash[:12] in message
    )


def test_damaged_checkpoint_is_one_message(moved, refused):
    for path in (moved / "checkpoints/150/state").rglob("*"):
        if path.is_file() and path.name != "_METADATA":
            path.write_bytes(b"")
    message = refused(f"--run={moved}")
    assert f"{moved}/checkpoints/150: is damaged: " in message


@pytest.mark.parametrize(
    ("flag", "part"),
    [
        ("--beam_size=0", "decode.beam_size: 0 is not allowed"),
        ("--length_penalty_alpha=nan", "decode.length_penalty_alpha: nan"),
        ("--n_best=4", "--n_best=4: it must be from 1 to the beam size, 3"),
        ("--n_best=0", "--n_best=0"),
        ("--average=3", "decode.average_checkpoints: 3 are averaged, but"),
        ("--step=120", "no checkpoint of update 120; there are [100, 150]"),
        ("--beam_siez=1", "beam_siez"),
    ],
)
def test_refused_flag_is_one_message(base, refused, flag, part):
    assert part in refused(f"--run={base}", flag)


def test_average_before_the_second_checkpoint_is_refused(base, refused):
    message = refused(f"--run={base}", "--average=2", "--step=100")
    assert "2 checkpoints are to be averaged, but those up to 100 are [100]" in message


def test_parameters_are_the_mean_of_the_checkpoints_asked_for(base):
    import jax

    def arrays(step):
        found = tiny.checkpoint(base, step)
        prefix = ".params"
        return {k[len(prefix) :]: np.frombuffer(v, np.float32) for k, v in found.items()
                if k.startswith(prefix)}  # fmt: skip

    def loaded(count, step=None):
        trained = loading.load(loading.read_run(base), count, step)
        leaves = jax.tree_util.tree_flatten_with_path(trained.params)[0]
        found = {jax.tree_util.keystr(k): np.asarray(v).ravel() for k, v in leaves}
        return trained.steps, found

    first, last = arrays(100), arrays(150)
    mean = {k: (first[k].astype(np.float64) + last[k]) / 2 for k in first}
    for asked, steps, expected in (
        ((1,), [150], last),
        ((1, 100), [100], first),
        ((2,), [100, 150], mean),
        ((2, 150), [100, 150], mean),
    ):
        found_steps, found = loaded(*asked)
        assert found_steps == steps and found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(found[key], value.astype(np.float32), key)
