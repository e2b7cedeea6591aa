"""What a run shows TensorBoard at its evaluations, as its config asks."""

import types

import numpy as np
import pytest

from experiments import run_looks
from tests.evaluate.test_perplexity import random_params, seven_sentences, tiny_model
from tests.report.tensorboard_http import Board
from transformer_ablation import config as configs
from transformer_ablation import parallel
from transformer_ablation.report.metrics import MetricWriter

TEXTS = [(f"source {i}", f"target {i}") for i in range(7)]
# Of tiny_model: layers and heads.
LAYERS, HEADS = tiny_model().config.num_layers, tiny_model().config.num_heads


def state(seed):
    params = random_params(tiny_model(), seed)
    return types.SimpleNamespace(params=parallel.replicate(params))


def parts(config):
    model = tiny_model()
    vocabulary = types.SimpleNamespace(
        decode=lambda ids: " ".join(f"w{i}" for i in ids),
        pieces=lambda ids: [f"w{i}" for i in ids],
    )
    prepared = types.SimpleNamespace(
        validation=seven_sentences(),
        vocabulary=vocabulary,
        corpus=types.SimpleNamespace(splits={"validation": TEXTS}),
    )
    config = configs.replace(config, {"decode.extra_length": 3})
    return types.SimpleNamespace(config=config, prepared=prepared, model=model)


@pytest.fixture
def look(tmp_path, tiny_config):
    """Looks at two states, as two evaluations do; what TensorBoard shows then."""

    def shown(changes):
        with MetricWriter(tmp_path / "run") as writer:
            of = parts(configs.replace(tiny_config, changes))
            looked = run_looks.looks(of, writer)
            looked(3, state(36))
            looked(6, state(49))
        return Board(tmp_path)

    return shown


def test_the_same_sentences_are_translated_at_every_evaluation(look):
    board = look({"train.sample_sentences": 3})
    found = board.get("text", "text", run="run", tag="samples/validation/text_summary")
    assert [each["step"] for each in found] == [3, 6]
    for each in found:
        # The middles of three stretches of seven sentences.
        shown = [f"<td>{n}</td>\n<td>source {n - 1}</td>" for n in (2, 4, 6)]
        assert all(cells in each["text"] for cells in shown)
        assert each["text"].count("<td>target ") == 3
    assert found[0]["text"] != found[1]["text"]
    assert board.get("images", "tags") in ({}, {"run": {}})


def test_attention_of_two_sentences_its_entropies_and_positions_are_shown(look):
    board = look({"train.attention_images": True})
    tags = board.get("images", "tags")["run"]
    kinds = ("encoder", "decoder", "cross")
    sheets = {f"attention_{kind}/line_{n}" for kind in kinds for n in (2, 6)}
    assert set(tags) == sheets | {"positions/sinusoidal"}
    counts = {
        tag: len(board.get("images", "images", run="run", tag=tag, sample=0))
        for tag in tags
    }
    # Sinusoids never change, so they are shown once.
    assert counts == {**dict.fromkeys(sheets, 2), "positions/sinusoidal": 1}
    places = list(np.ndindex(LAYERS, HEADS))
    assert set(board.get("histograms", "tags")["run"]) == {
        f"entropy_{kind}_layer_{n + 1}/head_{h + 1}"
        for kind in kinds
        for n, h in places
    }


def test_nothing_is_made_unless_it_is_asked_for(look):
    assert look({}).get("text", "tags") in ({}, {"run": []})
