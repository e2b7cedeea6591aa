"""A head taken away by its projection's rows is a head that puts out zero."""

import dataclasses

import jax
import numpy as np
import pytest

from tests.evaluate.test_attention import model_with
from tests.evaluate.test_perplexity import (
    CLOSE,
    HEADS,
    K,
    NumpyTransformer,
    U,
    random_params,
    seven_sentences,
    tiny_model,
)
from tests.evaluate.test_translation import EXTRA, settings
from transformer_ablation import parallel
from transformer_ablation.evaluate import head_importance
from transformer_ablation.evaluate.head_importance import Head
from transformer_ablation.evaluate.perplexity import make_scorer, perplexity
from transformer_ablation.vocabulary import EOS

# Of every kind, and not two of the same layer and number.
CHOSEN = [Head("encoder", 0, 1), Head("decoder", 1, 0), Head("cross", 1, 1)]


class Without(NumpyTransformer):
    """One head's output is zero, before the projection; None for no head."""

    def __init__(self, params, head=None, heads=HEADS):
        super().__init__(params)
        self.head, self.heads, self.layer = head, heads, {}

    def stack(self, name, x, memory=None):
        self.layer = {}
        return super().stack(name, x, memory)

    def attend(self, p, x, memory, causal):
        kind = "decoder" if causal else "encoder" if memory is x else "cross"
        layer = self.layer[kind] = self.layer.get(kind, -1) + 1
        outputs = []
        for h in range(self.heads):
            q = x @ p["query"]["kernel"][:, h * K : (h + 1) * K]
            k = memory @ p["key"]["kernel"][:, h * K : (h + 1) * K]
            scores = q @ k.T / np.sqrt(K)
            if causal:
                scores[np.triu_indices(len(x), 1)] = -np.inf
            weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            output = weights @ memory @ p["value"]["kernel"][:, h * U : (h + 1) * U]
            outputs.append(output * (self.head != (kind, layer, h)))
        return np.concatenate(outputs, axis=1) @ p["output"]["kernel"]


@pytest.fixture(scope="module")
def params():
    return random_params(tiny_model(), 49)


def total(reference, pairs):
    return sum(reference.nll(pairs.source[i], pairs.target[i]) for i in range(7))


def test_loss_without_a_head_is_that_of_a_numpy_model_without_it(params, monkeypatch):
    traced = []
    apply = head_importance.Masked.apply
    monkeypatch.setattr(
        head_importance.Masked,
        "apply",
        lambda *a, **k: traced.append(1) or apply(*a, **k),
    )
    pairs = seven_sentences()
    given = tiny_model(), parallel.replicate(params), pairs, 8
    found = list(head_importance.perplexities(*given, CHOSEN))
    expected = [total(Without(params, head), pairs) for head in (None, *CHOSEN)]
    np.testing.assert_allclose([f.nll for f in found], expected, rtol=CLOSE)
    # Each head matters here by far more than that.
    assert min(abs(e / expected[0] - 1) for e in expected[1:]) > 50 * CLOSE
    assert len(traced) == 1  # one program for all
    whole = perplexity(make_scorer(given[0]), *given[1:])
    assert whole == found[0]


def test_without_its_only_head_attention_adds_nothing():
    model = model_with({"model.num_heads": 1})
    params = random_params(model, 7)
    pairs = seven_sentences()
    heads = head_importance.heads(model.config)
    assert len(heads) == 3 * 2 * 1

    class Silent(Without):
        def attend(self, p, x, memory, causal):
            kind = "decoder" if causal else "encoder" if memory is x else "cross"
            layer = self.layer.get(kind, -1) + 1
            attended = super().attend(p, x, memory, causal)
            return attended * (self.silent != (kind, layer))

    given = model, parallel.replicate(params), pairs, 8, heads
    _, *found = head_importance.perplexities(*given)
    for head, each in zip(heads, found, strict=True):
        reference = Silent(params, heads=1)
        reference.silent = head.kind, head.layer
        np.testing.assert_allclose(each.nll, total(reference, pairs), rtol=CLOSE)


def test_translations_without_a_head_are_the_numpy_models_without_it(params):
    """Greedy: the likeliest word at every place."""
    sources = seven_sentences().source
    greedy = dataclasses.replace(settings(), beam_size=1)
    texts = ["x"] * 6 + [" "]
    found = head_importance.translations(
        tiny_model(), parallel.replicate(params), sources, texts, greedy, CHOSEN
    )
    different = set()
    for head, translations in zip((None, *CHOSEN), found, strict=True):
        reference = Without(params, head)
        for source, ours in zip(sources, translations[:6], strict=False):
            memory, words = reference.encode(source), []
            while len(words) < len(source) + EXTRA and EOS not in words:
                scores = reference.log_probabilities(memory, words)[-1]
                words.append(int(scores.argmax()))
            assert ours.ids == [word for word in words if word != EOS]
        assert translations[6].ids == []  # of a blank line
        different.add(tuple(tuple(t.ids) for t in translations))
    assert len(different) > 1


def test_projection_biases_stay():
    """Zero is what the head puts out, not what attention adds."""
    model = model_with({"model.projection_biases": True, "model.num_heads": 1})
    params = random_params(model, 5)
    keep = head_importance.kept(model.config, head_importance.heads(model.config))
    found = head_importance.masked(model.config, params, keep)
    before = params["decoder"]["cross_attention"]["output"]
    after = found["decoder"]["cross_attention"]["output"]
    assert (np.asarray(after["kernel"]) == 0).all()
    np.testing.assert_array_equal(after["bias"], before["bias"])
    # And the parameters that were given are as they were.
    assert (before["kernel"] != 0).any()


def test_looking_costs_training_nothing(params, monkeypatch):
    """Its program is, letter by letter, that of a model that offers no weights."""
    model = tiny_model()
    batch = [np.full((3, n), 5, np.int32) for n in (4, 6)]

    def program():
        def loss(given):
            return model.apply({"params": given}, *batch).sum()

        return jax.jit(jax.grad(loss)).lower(params).as_text()

    offered = program()
    monkeypatch.setattr(
        "transformer_ablation.model.attention.MultiHeadAttention.sow",
        lambda *_: False,
        raising=False,
    )
    assert program() == offered
