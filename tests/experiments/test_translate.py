"""``translate``: lines in, as many lines out, by a run's folder alone."""

import contextlib
import gzip
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

from experiments import (
    command,
    line_attention,
    line_streams,
    line_target,
    translate,
)
from tests.experiments import tiny_sweeps as tiny
from transformer_ablation.evaluate.translation import Translation
from transformer_ablation.report.record import update_record
from transformer_ablation.runs import loading, translating
from transformer_ablation.runs.errors import LineError
from transformer_ablation.runs.lines import Hypothesis, Translated
from transformer_ablation.vocabulary import EOS, PAD

# A terminal without Unicode.
ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}


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

        def backwards(lines, first, *, few_shapes, done=None):
            calls.append((list(lines), first, few_shapes))
            if any(line == "too long" for line in lines):
                raise LineError("too long")
            return [[line[::-1]] for line in lines]

        monkeypatch.setattr(sys, "stdin", standard(content, terminal))
        if terminal:
            line_streams.prompt(backwards)
        else:
            streams = sys.stdin.buffer, sys.stdout.buffer
            line_streams.pipe(backwards, *streams, one_by_one=one_by_one)
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


def test_terminal_gets_a_prompt_and_ctrl_c_ends_it(base, tmp_path):
    """One that knows ASCII alone does as well: what is read and written is UTF-8."""
    leader, follower = pty.openpty()
    environment = {**os.environ, **tiny.ENVIRONMENT, **ASCII}
    child = subprocess.Popen(
        [sys.executable, "-m", "experiments.translate", f"--run={base}",
         f"--cache={tmp_path}", "--format=json"],
        stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment,
    )  # fmt: skip
    os.close(follower)
    line = "mädchen ß שלום\n".encode()
    try:
        os.write(leader, line)
        answer = child.stdout.readline()
        child.send_signal(signal.SIGINT)  # as Ctrl-C does
        out, error = child.communicate(timeout=60)
    finally:
        child.kill()
        os.close(leader)
    assert json.loads(answer.decode("utf-8"))["source"] == line.decode().rstrip("\n")
    assert answer.endswith(b"\n") and out == b""
    assert child.returncode == 0 and b"Traceback" not in error and error.isascii()
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
    with pytest.raises(LineError, match=message):
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

            def translate(self, params, sources, done, *, draws, fitted):
                batches.append([list(map(int, ids)) for ids in sources])
                found = []
                for ids in batches[-1]:
                    whole = ids[: ids.index(EOS)]
                    kept = [whole, whole[: len(whole) // 2]][: self.n_best]
                    found.append([Translation(k, 0.0, 0.0, False) for k in kept])
                return found

        monkeypatch.setattr(translating, "Translator", Search)
        config = replace(run.config, {"decode.extra_length": 11, **changes})
        model = types.SimpleNamespace(config=config.model)
        trained = loading.Trained(model, None, [7])
        made = translating.LineTranslator(trained, config, run.vocabulary, n_best)
        made.batches, made.vocabulary = batches, run.vocabulary
        return made

    return make


def texts(found):
    """The texts of every line's translations."""
    return [[hypothesis.text for hypothesis in line.translations] for line in found]


def test_blank_lines_are_not_translated(lines):
    translator = lines()
    given = ["red dog", "", " \t", "old\x85man"]
    found = translator.translate(given)
    assert texts(found) == [["red dog"], [], [], ["old\x85man"]]
    assert [line.source for line in found] == given
    assert [line.text for line in found] == ["red dog", "", "", "old\x85man"]
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
        lambda params, sources, done, **how: [
            [Translation([*letters, feed, *letters], 0.0, 0.0, False)]
        ],
    )
    # The word's piece brings a space of its own.
    assert texts(translator.translate(["x"])) == [["red  red"]]


def test_lines_of_a_whole_text_are_padded_to_the_lengths_of_one_split(lines):
    """As ``evaluate`` would; so windows of it need no programs of their own."""
    from transformer_ablation.data.ragged import Ragged, TokenizedSplit
    from transformer_ablation.evaluate.perplexity import batches

    translator = lines(**{"decode.sentences_per_batch": 4})
    random = np.random.default_rng(3)
    lengths = np.append(random.integers(2, 40, 300), 70)
    split = Ragged.of([[EOS] * n for n in lengths])
    every = batches(TokenizedSplit(split, split), 4, None)
    shapes = {batch.source.shape[1] for batch in every}
    translator.expect(lengths)
    text = ["red", "old man plays ball in the old street, says the man with a red dog"]
    translator.translate(text, few_shapes=True)
    padded = [len(ids) for ids in translator.batches[0]]
    exact = [len(translator.vocabulary.encode(line)) + 1 for line in text]
    assert padded == [min(n for n in shapes if n >= need) for need in exact]
    # Longer than all that was expected: as it is.
    longer = " ".join(["old man"] * 200)
    translator.translate([longer], few_shapes=True)
    assert (
        len(translator.batches[1][0]) == len(translator.vocabulary.encode(longer)) + 1
    )


def test_lengths_are_padded_to_rungs_only_where_asked(lines):
    translator = lines()
    text = ["red", "old man plays ball in the old street, says the man with a red dog"]
    exact = [[*ids, EOS] for ids in map(translator.vocabulary.encode, text)]
    assert len(exact[0]) < 8 and len(exact[1]) > 24
    translator.translate(text)
    translator.translate(text, few_shapes=True)
    plain, padded = translator.batches
    # The longer one first: each line has its own translation all the same.
    again = translator.translate([*text[::-1], "", text[1]], few_shapes=True)
    assert texts(again) == [[text[1]], [text[0]], [], [text[1]]]
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
    with pytest.raises(LineError, match="^line 6: is .* 40 learned") as e:
        translator.translate(["red", longer], first=5)
    assert "hold 29 and 11 more" in str(e.value) and count <= 28
    lines().translate([longer])  # sinusoids have no end


# Formats, files and draws, by the command as a user types it.


@pytest.fixture
def said(base, folder, capfdbinary, monkeypatch):
    """``said(content, *arguments)``: exit code, stdout and stderr."""

    def said(content, *arguments):
        monkeypatch.setattr(sys, "stdin", standard(content))
        given = [f"--run={base}", f"--cache={folder / 'cache'}", *map(str, arguments)]
        code = command.run(translate.COMMAND, given)
        sys.stdout.flush()
        return (code, *capfdbinary.readouterr())

    return said


@pytest.fixture(scope="module")
def kept():
    """What has been said, by what was asked."""
    return {}


@pytest.fixture
def once(said, kept):
    """As ``said`` of TEXT, but the same is asked only once."""

    def once(*arguments):
        if arguments not in kept:
            kept[arguments] = said(TEXT, *arguments)
        return kept[arguments]

    return once


TEXT = b"red dog\n\nold man sees house\n"


def test_json_has_scores_and_pieces_of_every_translation(once, base):
    code, out, _ = once("--n_best=2", "--format=json")
    found = [json.loads(line) for line in out.decode().removesuffix("\n").split("\n")]
    assert code == 0 and [line["line"] for line in found] == [1, 2, 3]
    assert [line["source"] for line in found] == TEXT.decode().split("\n")[:3]
    assert [len(line["translations"]) for line in found] == [2, 0, 2]
    vocabulary = loading.read_run(base).vocabulary
    for line in found:
        for one in line["translations"]:
            assert list(one) == (
                "text pieces ids score log_prob token_log_probs finished".split()
            )
            assert one["pieces"] == vocabulary.pieces(one["ids"])
            assert sum(one["token_log_probs"]) == pytest.approx(one["log_prob"], 1e-4)
            penalty = (5 + len(one["ids"])) / 6  # length_penalty_alpha is 1
            assert one["score"] == pytest.approx(one["log_prob"] / penalty)


def test_text_and_tsv_have_n_best_lines_a_line(once):
    _, text, _ = once("--n_best=2")
    _, tsv, _ = once("--n_best=2", "--format=tsv")
    _, objects, _ = once("--n_best=2", "--format=json")
    rows = [line.split("\t") for line in tsv.decode().removesuffix("\n").split("\n")]
    assert [row[:2] for row in rows] == [[n, place] for n in "123" for place in "12"]
    assert all(len(row) == 6 for row in rows)
    assert [row[5] for row in rows] == text.decode().removesuffix("\n").split("\n")
    assert rows[2][2:] == rows[3][2:] == [""] * 4  # the blank line
    found = [
        one for line in objects.splitlines() for one in json.loads(line)["translations"]
    ]
    kept = [row for row in rows if row[2]]
    for row, one in zip(kept, found, strict=True):
        assert float(row[2]) == pytest.approx(one["score"], 1e-5)
        assert float(row[3]) == pytest.approx(one["log_prob"], 1e-5)
        assert row[4] == ("yes" if one["finished"] else "no")


def test_draws_depend_on_seed_and_place_and_not_on_the_batch(said):
    asked = ["--sample", "--temperature=1.5", "--n_best=2"]
    _, first, _ = said(TEXT, *asked, "--seed=1")
    assert first == said(TEXT, *asked, "--seed=1", "--sentences_per_batch=1")[1]
    lines = first.split(b"\n")
    other = b"house\nball\nold man sees house\nred\n"
    assert said(other, *asked, "--seed=1")[1].split(b"\n")[4:6] == lines[4:6]


def test_pictures_of_attention_stand_beside_the_translations(said, once, tmp_path):
    """Sheets of each kind and line, one page of all; of blank lines there are none."""
    place = tmp_path / "pictures"
    code, out, error = said(TEXT, f"--attention={place}")
    assert code == 0 and out == once()[1]
    names = sorted(path.name for path in place.iterdir())
    kinds = ("cross", "decoder", "encoder")
    ends = [f"-{n}-{kind}.png" for n in (1, 2) for kind in kinds]
    assert [any(name.endswith(end) for name in names) for end in ends] == [True] * 6
    (page,) = place.glob("red_dog-*.html")
    assert len(names) == 7 and f"wrote {page}\n".encode() in error
    # The best translations are the targets.
    text = page.read_text(encoding="utf-8")
    assert "line 1: red dog" in text and "line 3: old man sees house" in text


def test_pictures_of_many_lines_are_refused(said, tmp_path):
    path = tmp_path / "a.en"
    path.write_bytes(b"red\n" * 21)
    for content, more in ((b"", [f"--input={path}"]), (path.read_bytes(), [])):
        code, out, error = said(content, f"--attention={tmp_path / 'p'}", *more)
        assert (code, out) == (2, b"")
        assert b"pictures are drawn of at most 20 lines" in error


def test_line_too_long_for_a_picture_is_told_and_left_out(base, capsys):
    run = loading.read_run(base)
    best = Hypothesis("rot", ["rot", "</s>"], [7, EOS], -1.0, -1.0, None, True)
    fits, longer = "\N{LATIN SMALL LETTER SHARP S}" * 30, "x" * 200
    text, ids = line_attention._pair(3, Translated(fits, [best]), run)
    assert text.heading == "line 3" and ids.target == [7, EOS]
    assert ids.source == [*run.vocabulary.encode(fits), EOS]
    cut = best._replace(ids=[7], finished=False)
    _, ids = line_attention._pair(3, Translated(fits, [cut]), run)
    assert ids.target == [7, EOS] and "was cut" in ids.note
    assert capsys.readouterr().err == ""
    assert line_attention._pair(4, Translated(longer, [best]), run) is None
    assert "line 4: has more than 128 pieces" in capsys.readouterr().err
    assert line_attention._pair(5, Translated(" ", []), run) is None


def test_files_are_translated_as_stdin_is(said, once, tmp_path, monkeypatch):
    """In windows of two lines; plain to a file, and a .gz to stdout."""
    expected = once()[1]
    plain, packed, out = (tmp_path / name for name in ("a.en", "b.en.gz", "a.de"))
    plain.write_bytes(TEXT)
    packed.write_bytes(gzip.compress(TEXT))
    monkeypatch.setattr(line_streams, "LINES_AT_ONCE", 2)
    code, printed, _ = said(b"", f"--input={plain}", f"--out={out}")
    assert code == 0 and out.read_bytes() == expected
    assert printed.startswith(f"wrote {out}: 3 lines in ".encode())
    assert said(b"", f"--input={packed}")[1] == expected
    assert sorted(tmp_path.iterdir()) == sorted([plain, packed, out])


def test_bad_line_of_a_file_is_named_before_anything_is_loaded(said, tmp_path):
    path, out = tmp_path / "a.en", tmp_path / "a.de"
    path.write_bytes(b"red\n" * 5000 + b"\xff\n")
    out.write_bytes(b"kept\n")
    code, printed, error = said(b"", f"--input={path}", f"--out={out}")
    assert (code, printed) == (2, b"")
    assert error.startswith(f"{path}: line 5001, byte 1 of the line: 0xff".encode())
    assert b"loading" not in error and out.read_bytes() == b"kept\n"
    same = said(b"", f"--input={path}", f"--out={path}")
    assert same[0] == 2 and b"is the file of --input" in same[2]
    (tmp_path / "b.gz").write_bytes(gzip.compress(TEXT)[:20])
    code, _, error = said(b"", f"--input={tmp_path / 'b.gz'}")
    assert code == 2 and b"b.gz: damaged gzip file" in error


def test_what_is_finished_is_kept_where_a_translation_is_stopped(tmp_path, capsys):
    place = tmp_path / "out.de"
    place.write_bytes(b"old\n")
    with pytest.raises(KeyboardInterrupt), line_target.whole_file(place) as file:
        file.write(b"eins\n")
        raise KeyboardInterrupt
    assert place.read_bytes() == b"old\n"
    part = tmp_path / "out.de.part"
    assert part.read_bytes() == b"eins\n"
    assert capsys.readouterr().err.startswith(f"{part}: holds what was finished")
    with pytest.raises(KeyboardInterrupt), line_target.whole_file(place):
        raise KeyboardInterrupt
    assert not part.exists() and capsys.readouterr().err == ""


def test_lines_that_an_earlier_call_had_finished_are_not_written_over(
    base, refused, tmp_path
):
    (tmp_path / "a.de.part").write_bytes(b"eins\n")
    message = refused(f"--run={base}", f"--out={tmp_path / 'a.de'}")
    assert f"{tmp_path / 'a.de.part'} holds the lines that an earlier call" in message
    assert (tmp_path / "a.de.part").read_bytes() == b"eins\n"
    (tmp_path / "a.de.part").write_bytes(b"")
    line_target.check_part(tmp_path / "a.de")  # nothing to lose


def test_byte_order_mark_is_no_part_of_a_sentence():
    with pytest.raises(LineError, match="line 1 begins with a byte order mark"):
        list(line_streams.decoded([b"\xef\xbb\xbfman\n"]))
    assert list(line_streams.decoded([b"\xef\xbb\xbfman\n"], 2)) == ["\ufeffman"]


def test_terminal_sees_a_bar_where_the_lines_go_to_a_file(base, folder, tmp_path):
    """Also one that knows ASCII alone; the file is UTF-8 all the same."""
    (tmp_path / "a.en").write_bytes("man plays ball ß\n".encode() * 9)
    leader, follower = pty.openpty()
    given = [f"--run={base}", f"--cache={folder / 'cache'}"]
    given += [f"--input={tmp_path / 'a.en'}", f"--out={tmp_path / 'a.de'}"]
    environment = {**os.environ, **tiny.ENVIRONMENT, **ASCII, "TERM": "xterm"}
    child = subprocess.Popen(
        [sys.executable, "-m", "experiments.translate", *given],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower,
        env=environment,
    )  # fmt: skip
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # at its end
        while some := os.read(leader, 4096):
            shown += some
    out, _ = child.communicate(timeout=300)
    os.close(leader)
    assert child.returncode == 0, shown
    assert b"translating" in shown and b"9/9" in shown and b"Traceback" not in shown
    assert out.startswith(b"wrote ") and out.isascii()
    assert (tmp_path / "a.de").read_bytes().count(b"\n") == 9


def test_run_of_another_results_version_is_told_and_used(
    moved, folder, capfdbinary, monkeypatch
):
    update_record(moved, results_version=0)
    monkeypatch.setattr(sys, "stdin", standard(b"red dog\n"))
    given = [f"--run={moved}", f"--cache={folder / 'cache'}"]
    assert command.run(translate.COMMAND, given) == 0
    sys.stdout.flush()
    out, error = capfdbinary.readouterr()
    assert out.count(b"\n") == 1
    assert f"{moved}: is of results version 0, this program of 1".encode() in error


# Runs that cannot be loaded, and what is loaded.


def test_unusable_run_is_one_message(base, moved, refused, tmp_path):
    workdir = base.parents[2]
    assert "--run is missing" in refused()
    assert refused(f"--run={tmp_path / 'no'}").startswith(
        f"{tmp_path / 'no'}: there is no such"
    )
    message = refused(f"--run={workdir}")
    assert (
        f"{workdir}: holds no run" in message and f"example {workdir}/runs/" in message
    )
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


def test_finished_run_whose_checkpoints_are_gone_says_so(moved, refused):
    (moved / "checkpoints" / "150" / "sha256.json").unlink()
    for folder in (moved / "checkpoints").iterdir():
        if folder.name != "150":
            shutil.rmtree(folder)
    message = refused(f"--run={moved}")
    assert "no complete checkpoint, though the run is finished" in message
    assert message.endswith("moved, deleted or damaged; there: 150\n")
    shutil.rmtree(moved / "checkpoints")
    assert refused(f"--run={moved}").endswith("there: nothing\n")


def test_parameters_of_a_diverged_run_are_refused(base, refused, monkeypatch):
    """Whatever uses a run: no translation, score or picture is made of them."""
    from transformer_ablation.train import averaging

    mean = averaging.average
    lost = lambda parts: jax.tree.map(lambda x: x * np.nan, mean(parts))  # noqa: E731
    monkeypatch.setattr(averaging, "average", lost)
    message = refused(f"--run={base}")
    assert "update 150 are not finite: the run has diverged" in message
    assert message.endswith("take an earlier checkpoint with --step\n")


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
        ("--beam_size=0", "--beam_size: 0 is not allowed"),
        ("--length_penalty_alpha=nan", "--length_penalty_alpha: nan"),
        ("--n_best=4", "--n_best=4: it must be from 1 to the beam size, 3"),
        ("--n_best=0", "--n_best=0"),
        ("--sample=maybe", "sample"),
        ("--temperature=0.7", "--temperature=0.7: only draws at random have it"),
        ("--input=no.en", "--input=no.en: there is no such file"),
        ("--input=.", "--input=.: is a folder; name a file of lines"),
        ("--input=", "--input=: there is no such file"),
        ("--out=/", "--out=/: is a folder"),
        ("--attention=/proc/no", "--attention=/proc/no: cannot write there"),
        ("--out=/proc/no", "--out=/proc/no: /proc cannot be written to"),
        ("--format=xml", "xml"),
        ("--average=3", "--average=3: the run has 2 checkpoints at most (train.keep"),
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
