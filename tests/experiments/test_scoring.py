"""Scores of a split: which of them there are, and who hears of them."""

import threading
import types

import pytest

from experiments import run_scores, score_lines, scoring
from tests.report import written_sweeps as written
from transformer_ablation import config
from transformer_ablation.report import record
from transformer_ablation.runs.building import build_model


@pytest.mark.parametrize(
    ("language", "metrics"), [("de", ["bleu", "bleu_paper"]), ("cs", ["bleu"])]
)
def test_language_without_a_tokeniser_has_no_bleu_as_in_the_paper(
    base_config, tmp_path, language, metrics
):
    changes = {
        "data.corpus": "parallel_files",
        "data.directory": "text",
        "data.target_language": language,
    }
    vocabulary = types.SimpleNamespace(decode=" ".join)
    corpus = types.SimpleNamespace(splits={"test": [("a b", "c d")]})
    scored = scoring.Scored(
        config.replace(base_config, changes),
        types.SimpleNamespace(vocabulary=vocabulary, corpus=corpus),
        *(None, None, None),
        [3],
    )
    best = types.SimpleNamespace(ids=["c", "d"], unfinished=False)
    path = tmp_path / "translations" / "test.txt"
    entries = scoring._bleus(scored, "test", [best], path)
    assert [entry["metric"] for entry in entries] == metrics
    assert path.read_text() == "c d\n"
    # A test of sentences needs no corpus: the pairs stand beside.
    assert path.with_name("test.source.txt").read_text() == "a b\n"
    assert path.with_name("test.reference.txt").read_text() == "c d\n"


def test_record_says_what_is_being_scored(base_config, tmp_path, monkeypatch):
    """For ``status``: the steps of such a run are all done."""
    row = written.sweep_row("base", {})
    record.write_record(tmp_path, written.record(row, status="running"))
    told, recorded = [], []

    def score(scored, splits, path_of, progress, stop):
        for name in splits:
            progress({"phase": f"scoring {name}"})
            recorded.append(record.read_record(tmp_path)["reason"])
        return []

    monkeypatch.setattr(scoring, "score", score)
    changed = config.replace(base_config, {"data.test_split": "test"})
    run = types.SimpleNamespace(config=changed, directory=tmp_path)
    run_scores.score_run(run, None, told.append, threading.Event())
    assert recorded == ["scoring validation", "scoring test"]
    assert told == [{"phase": phase} for phase in recorded]


def test_hypotheses_without_an_end_are_told():
    score = {
        "split": "test",
        "metric": "bleu",
        "value": 25.25,
        "sentences": 1000,
        "steps": [9],
        "signature": "s",
        "unfinished": 12,
    }
    said = "test bleu 25.25 (1,000 sentences, checkpoint 9); "
    assert score_lines.as_lines([score]) == f"{said}12 hypotheses hit the length cap; s"
    assert score_lines.as_lines([{**score, "unfinished": 0}]) == f"{said}s"


def test_attention_of_cudnn_is_refused_without_a_gpu(base_config):
    fields = {"model.attention_implementation": "cudnn", "model.dtype": "bfloat16"}
    with pytest.raises(
        config.ConfigError, match="'cudnn' needs an NVIDIA GPU, and JAX has a"
    ):
        build_model(config.replace(base_config, fields), 1000)
