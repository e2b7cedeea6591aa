"""``load_run`` and ``load_sweep`` on trained runs, as a notebook uses them."""

import json
import math
import pathlib
import shutil
import sys
import types
import warnings

import jax
import numpy as np
import pytest

import transformer_ablation
from transformer_ablation import RunError, load_run, load_sweep
from transformer_ablation.report.record import read_record, update_record
from transformer_ablation.vocabulary import BOS, EOS


@pytest.fixture(scope="module")
def run(base, folder):
    return load_run(base, cache=folder / "cache")


def lines(path):
    return path.read_text().removesuffix("\n").split("\n")


@pytest.fixture(scope="module")
def pairs(base):
    """Sources, references and the stored translations of the validation split."""
    folder = base / "translations"
    return [
        lines(folder / f"validation{name}.txt")
        for name in (".source", ".reference", "")
    ]


def test_run_has_config_vocabulary_and_parameters(run, base):
    assert run.config.model.d_model == 12 and run.steps == [150]
    assert run.state == "finished" and run.directory == base
    assert run.vocabulary.size == 360
    assert repr(run) == f"Run({str(base)!r}, checkpoint 150)"
    total = sum(leaf.size for leaf in jax.tree.leaves(run.params))
    assert total == read_record(base)["parameters"]["total"]
    # The model gives logits of the next piece from them.
    source = np.array([[*run.vocabulary.encode("red dog"), EOS]], np.int32)
    logits = jax.jit(run.model.apply)({"params": run.params}, source, source)
    assert logits.shape == (*source.shape, 360)


def test_split_is_translated_as_it_was_scored(run, pairs):
    sources, _, stored = pairs
    found = run.translate(sources, token_scores=False)
    assert [line.text for line in found] == stored
    assert len(set(stored)) > 3
    assert [line.source for line in found] == sources
    assert all(line.translations[0].token_log_probs is None for line in found)


def test_text_alone_is_one_of_many(run, pairs):
    sources, _, stored = pairs
    found = run.translate(sources[0])
    assert found.text == stored[0] and found.source == sources[0]
    (best,) = found.translations
    assert best.text == stored[0]


def test_scores_of_a_translation_agree_with_each_other(run, pairs):
    """The length penalty by its formula, pieces by the vocabulary, sums by adding."""
    for line in run.translate(pairs[0][:3], n_best=3):
        scores = [found.score for found in line.translations]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        for found in line.translations:
            count = len(found.ids)
            assert len(found.pieces) == len(found.token_log_probs) == count
            assert math.fsum(found.token_log_probs) == pytest.approx(
                found.log_prob, rel=1e-5
            )
            # The sweep's length_penalty_alpha is 1.
            assert found.score == pytest.approx(found.log_prob / ((5 + count) / 6))
            assert found.finished == (found.ids[-1] == EOS)
            assert found.text == run.vocabulary.decode(found.ids)
            assert found.pieces == run.vocabulary.pieces(found.ids)
            if found.finished:
                assert found.pieces[-1] == "</s>"


def test_translation_that_is_scored_has_its_log_probability(run, pairs):
    """Through text and back: the same pieces, or the text would be another's."""
    for line in run.translate(pairs[0]):
        best = line.translations[0]
        again = [*run.vocabulary.encode(best.text), EOS]
        if again == best.ids:
            scored = run.score(line.source, best.text)
            assert scored.log_prob == pytest.approx(best.log_prob, rel=1e-5)


def test_score_of_a_split_is_the_perplexity_of_the_record(run, base, pairs):
    sources, references, _ = pairs
    found = run.score(sources, references)
    (stored,) = [
        s
        for s in read_record(base)["scores"]
        if (s["split"], s["metric"]) == ("validation", "ppl")
    ]
    assert found.ppl == pytest.approx(stored["value"], rel=1e-6)
    assert found.tokens == stored["target_tokens"]
    assert [s.target for s in found.sentences] == references
    assert found.log_prob == pytest.approx(sum(s.log_prob for s in found.sentences))
    one = run.score(sources[1], references[1])
    assert one.log_prob == pytest.approx(found.sentences[1].log_prob, rel=1e-5)
    assert one.ppl == pytest.approx(math.exp(-one.log_prob / len(one.ids)))


def test_scores_of_pieces_are_those_of_the_logits(run, pairs):
    """Softmax by numpy of what the model gives, at each place of the target."""
    scored = run.score(pairs[0][0], pairs[1][0])
    source = np.array([[*run.vocabulary.encode(pairs[0][0]), EOS]], np.int32)
    target = np.array([scored.ids], np.int32)
    assert scored.ids == [*run.vocabulary.encode(pairs[1][0]), EOS]
    logits = np.float64(
        jax.jit(run.model.apply)({"params": run.params}, source, target)
    )[0]
    log = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = log[np.arange(len(scored.ids)), scored.ids]
    np.testing.assert_allclose(scored.token_log_probs, expected, rtol=1e-5, atol=1e-6)
    assert BOS not in scored.ids


def test_greedy_is_the_beam_of_one_and_may_differ_from_more(run, pairs):
    greedy = run.translate(pairs[0], greedy=True, token_scores=False)
    one = run.translate(pairs[0], beam_size=1, token_scores=False)
    assert [line.text for line in greedy] == [line.text for line in one]


def test_draws_are_the_same_for_a_line_alone_and_among_others(run, pairs):
    asked = {"sample": True, "n_best": 2, "seed": 3, "token_scores": False}
    found = run.translate(pairs[0][:4], **asked)
    texts = [[t.text for t in line.translations] for line in found]
    alone = run.translate(pairs[0][0], **asked)
    assert [t.text for t in alone.translations] == texts[0]
    again = run.translate(pairs[0][:2], **asked)
    assert [[t.text for t in line.translations] for line in again] == texts[:2]
    other = run.translate(pairs[0][:4], **{**asked, "seed": 4})
    assert [[t.text for t in line.translations] for line in other] != texts


def test_blank_and_no_lines(run):
    found = run.translate(["", " ", "red dog"], token_scores=False)
    assert [line.translations for line in found[:2]] == [[], []]
    assert found[0].text == "" and found[2].text
    assert run.translate([]) == []
    assert run.translate("").translations == []


def test_attention_is_of_every_piece_of_both_sides(run, pairs):
    """One layer, two heads; of a pair given, and of the run's own translation."""
    source, target = pairs[0][0], pairs[1][0]
    shown = run.attention(source, target)
    rows = len(run.vocabulary.encode(target)) + 1
    columns = len(run.vocabulary.encode(source)) + 1
    assert shown.weights.cross.shape == (1, 2, rows, columns)
    assert shown.weights.encoder.shape == (1, 2, columns, columns)
    assert shown.weights.decoder.shape == (1, 2, rows, rows)
    for weights in shown.weights:
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)
    assert (np.triu(shown.weights.decoder[0, 0], 1) == 0).all()
    assert len(shown.source.pieces) == columns and len(shown.written.pieces) == rows
    assert shown.source.pieces[-1] == shown.written.pieces[-1] == "</s>"
    assert shown.read.pieces[0] == "<s>"
    assert shown.read.pieces[1:] == shown.written.pieces[:-1]
    assert "given" in shown.note and "own" in run.attention(source).note
    many = run.attention(pairs[0][:2], pairs[1][:2])
    np.testing.assert_allclose(many[0].weights.cross, shown.weights.cross, atol=1e-6)
    assert many[1].heading == pairs[0][1]


def test_attention_has_pictures(run):
    shown = run.attention("red dog", "rot hund")
    sheets = {shown.sheet(kind) for kind in ("encoder", "decoder", "cross")}
    assert len(sheets) == 3
    assert all(png.startswith(b"\x89PNG\r\n") for png in sheets)
    assert shown._repr_png_().startswith(b"\x89PNG\r\n")
    page = shown.page()
    assert page.startswith("<!DOCTYPE html>") and "Attention: red dog" in page
    with pytest.raises(RunError, match="kind: 'self' is not one of encoder, decoder"):
        shown.sheet("self")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.attention(" "), "source 1: is blank; give it a word"),
        (lambda run: run.attention("a", ""), "target 1: is blank"),
        (lambda run: run.attention(["a", "b"], ["c"]), "2 sources, but 1 targets"),
        (lambda run: run.translate(7), "text: 7 is neither a text nor texts"),
        (lambda run: run.translate(["a", 7]), "text: number 2 is 7, which is no text"),
        (lambda run: run.translate("a\nb"), "a line end in the middle of a line"),
        (lambda run: run.translate("a", n_best=4), "n_best=4: .* beam size, 3"),
        (lambda run: run.translate("a", beam_size=0), "decode.beam_size: 0 is not"),
        (lambda run: run.translate("a", temperature=1.0), "temperature=1.0: only"),
        (lambda run: run.translate("a", decode={"bean": 1}), "decode.bean"),
        (lambda run: run.score("a", ["b"]), "two texts, or two lists"),
        (lambda run: run.score(["a"], ["b", "c"]), "1 sources, but 2 targets"),
        (lambda run: run.score([], []), "no sentence to score"),
        (lambda run: run.score(["a"], [None]), "targets: number 1 is None"),
    ],
)
def test_what_may_not_be_is_a_run_error(run, call, message):
    with pytest.raises(RunError, match=message):
        call(run)


def test_every_fault_of_a_folder_is_a_run_error(base, moved, tmp_path):
    cases = {
        tmp_path / "no": "there is no such folder",
        base.parents[2]: "holds no run .* name a run in it",
    }
    for path, message in cases.items():
        with pytest.raises(RunError, match=message):
            load_run(path)
    for options, message in (
        ({"step": 120}, r"no checkpoint of update 120; there are \[100, 150\]"),
        ({"average": 3}, "average=3: the run has 2 checkpoints at most"),
        ({"average": 1.5}, "average=1.5: it must be a whole number"),
    ):
        with pytest.raises(RunError, match=message):
            load_run(base, **options)
    (moved / "vocabulary.model").write_bytes(b"x")
    with pytest.raises(RunError, match="not a vocabulary of this project"):
        load_run(moved)
    (moved / "vocabulary.model").unlink()
    with pytest.raises(RunError, match="no vocabulary"):
        load_run(moved)
    (moved / "record.json").write_text("{")
    with pytest.raises(RunError, match="not valid JSON"):
        load_run(moved)


def test_moved_run_and_mean_of_checkpoints(moved, pairs):
    run = load_run(str(moved), average=2)
    assert run.steps == [100, 150]
    assert run.translate(pairs[0][0], token_scores=False).text


def test_run_of_another_results_version_is_told(moved):
    update_record(moved, results_version=0)
    with pytest.warns(UserWarning, match="results version 0, this program of 1") as w:
        load_run(moved)
    assert w[0].filename == __file__
    update_record(moved, results_version=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        load_run(moved)


# The rows of a sweep.


def test_sweep_is_one_row_a_run(base):
    found = load_sweep(base.parents[2], as_records=True)
    assert [r["row"] for r in found] == ["base", "smooth", "narrow"]
    assert [r["model.d_ff"] for r in found] == [20, 20, 14]
    record = read_record(base)
    (bleu,) = [
        s["value"]
        for s in record["scores"]
        if (s["split"], s["metric"]) == ("validation", "bleu")
    ]
    assert found[0]["validation_bleu"] == bleu
    assert found[0]["train_seconds"] == record["seconds"]["train"]
    assert pathlib.Path(found[0]["directory"]) == base


def test_sweep_is_a_data_frame_where_pandas_is(base, monkeypatch):
    """By a stand-in: pandas is not among the requirements."""
    given = []

    class DataFrame:
        @classmethod
        def from_records(cls, rows):
            given.append(rows)
            return cls()

    module = types.ModuleType("pandas")
    module.DataFrame = DataFrame
    monkeypatch.setitem(sys.modules, "pandas", module)
    workdir = base.parents[2]
    assert isinstance(load_sweep(str(workdir)), DataFrame)
    assert given == [load_sweep(workdir, as_records=True)]
    monkeypatch.setitem(sys.modules, "pandas", None)  # importing it fails
    assert load_sweep(workdir) == given[0]


def test_faults_of_a_workdir_are_run_errors(base, tmp_path):
    with pytest.raises(RunError, match="no such folder"):
        load_sweep(tmp_path / "no")
    with pytest.raises(RunError, match="holds neither sweep.json nor a run"):
        load_sweep(tmp_path)
    copy = shutil.copytree(base.parents[2], tmp_path / "w", ignore=lambda f, names: [
        n for n in names if n == "checkpoints"
    ])  # fmt: skip
    (copy / "sweep.json").write_text(json.dumps([]))
    with pytest.raises(RunError, match="sweep.json: must be a JSON object"):
        load_sweep(copy)


def test_offered_names_are_documented():
    for name in ("load_run", "load_sweep", "RunError"):
        assert getattr(transformer_ablation, name).__doc__
