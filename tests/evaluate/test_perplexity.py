"""Perplexity against a Transformer in plain numpy, and every sentence counted once."""

import dataclasses
import json
import math
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from configs import base
from transformer_ablation import config, parallel
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate.perplexity import (
    Scorer,
    longest_input,
    make_scorer,
    perplexity,
    sentence_scores,
    whole_rows,
)
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.vocabulary import BOS, EOS, PAD

V, D, HEADS, K, U = 23, 12, 2, 7, 5
SIZES = {
    "model.num_layers": 2,
    "model.d_model": D,
    "model.d_ff": 20,
    "model.num_heads": HEADS,
    "model.d_k": K,
    "model.d_v": U,
}
# Source and target lengths, EOS included; the shortest are an EOS alone.
LENGTHS = [(5, 4), (1, 2), (3, 9), (6, 1), (2, 5), (6, 7), (4, 3)]
# float32 through two layers against float64.
CLOSE = 2e-5


def tiny_model():
    settings = config.from_mapping(base.get_config())
    return Transformer(config.replace(settings, SIZES).model, V, PAD, BOS, EOS)


def random_params(model, seed=3):
    """Every parameter random; gains about 1, biases too about 0."""
    random = np.random.default_rng(seed)
    ids = np.zeros((1, 2), np.int32)
    tree = jax.eval_shape(model.init, jax.random.key(0), ids, ids)["params"]

    def draw(path, leaf):
        mean = 1.0 if path[-1].key == "scale" else 0.0
        return np.float32(mean + 0.4 * random.standard_normal(leaf.shape))

    return jax.tree_util.tree_map_with_path(draw, tree)


def seven_sentences():
    random = np.random.default_rng(5)

    def side(lengths):
        return Ragged.of([*random.integers(4, V, n - 1), EOS] for n in lengths)

    source, target = zip(*LENGTHS, strict=True)
    return TokenizedSplit(side(source), side(target))


class NumpyTransformer:
    """Section 3 of the paper for one sentence, in float64, without padding or masks
    but the causal one: post-norm, tied embeddings, sinusoids."""

    def __init__(self, params):
        self.p = jax.tree.map(np.float64, params)

    def embed(self, ids):
        position, feature = np.indices((len(ids), D))
        angle = position / 10_000 ** (feature // 2 * 2 / D)
        table = np.where(feature % 2, np.cos(angle), np.sin(angle))
        return self.p["shared_embedding"][ids] * math.sqrt(D) + table

    def attend(self, p, x, memory, causal):
        heads = []
        for h in range(HEADS):
            of_k, of_u = slice(h * K, (h + 1) * K), slice(h * U, (h + 1) * U)
            q = x @ p["query"]["kernel"][:, of_k]
            k = memory @ p["key"]["kernel"][:, of_k]
            scores = q @ k.T / math.sqrt(K)
            if causal:
                scores[np.triu_indices(len(x), 1)] = -np.inf
            weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            heads.append(weights @ memory @ p["value"]["kernel"][:, of_u])
        return np.concatenate(heads, axis=1) @ p["output"]["kernel"]

    def feed_forward(self, p, x):
        hidden = np.maximum(0, x @ p["inner"]["kernel"] + p["inner"]["bias"])
        return hidden @ p["outer"]["kernel"] + p["outer"]["bias"]

    def norm(self, p, x):
        centred = x - x.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6)
        return centred / deviation * p["norm"]["scale"] + p["norm"]["bias"]

    def stack(self, name, x, memory=None):
        for n in range(SIZES["model.num_layers"]):
            p = jax.tree.map(lambda leaf, n=n: leaf[n], self.p[name])
            y = self.attend(p["self_attention"], x, x, causal=memory is not None)
            x = self.norm(p["self_attention_residual"], x + y)
            if memory is not None:
                y = self.attend(p["cross_attention"], x, memory, causal=False)
                x = self.norm(p["cross_attention_residual"], x + y)
            y = self.feed_forward(p["feed_forward"], x)
            x = self.norm(p["feed_forward_residual"], x + y)
        return x

    def encode(self, source):
        return self.stack("encoder", self.embed(source))

    def log_probabilities(self, memory, words):
        """log p of every token after the begin of sentence and after each word."""
        x = self.stack("decoder", self.embed([BOS, *words]), memory)
        logits = x @ self.p["shared_embedding"].T
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def nll(self, source, target):
        """-log p of a whole target, its end of sentence included."""
        log = self.log_probabilities(self.encode(source), target[:-1])
        return -float(log[np.arange(len(target)), target].sum())


@pytest.fixture(scope="module")
def params():
    return random_params(tiny_model())


@pytest.fixture(scope="module")
def scorer():
    return make_scorer(tiny_model())


@pytest.fixture(scope="module")
def expected_nll(params):
    """Of each of the seven sentences, alone."""
    split, reference = seven_sentences(), NumpyTransformer(params)
    return [reference.nll(split.source[i], split.target[i]) for i in range(7)]


def test_perplexity_equals_a_numpy_transformer(params, scorer, expected_nll):
    """4 sentences at once, padded alike; the second batch has a row of padding."""
    found = perplexity(scorer, params, seven_sentences(), rows=4)
    tokens = sum(target for _, target in LENGTHS)
    assert found.nll == pytest.approx(sum(expected_nll), rel=CLOSE)
    assert found.value == pytest.approx(math.exp(sum(expected_nll) / tokens), rel=CLOSE)
    assert (found.target_tokens, found.sentences) == (tokens, 7)
    assert found.value > 1.2 * V  # far from indifferent, so faults show


def test_sentence_scores_are_in_corpus_order_for_any_order(
    params, scorer, expected_nll
):
    """A sentence's score depends neither on its place nor on its neighbours."""
    for order in ([6, 5, 4, 3, 2, 1, 0], [2, 0, 6, 4, 1, 3, 5]):
        split = seven_sentences().take(np.array(order))
        nll, tokens = sentence_scores(scorer, params, split, rows=4)
        expected = [expected_nll[i] for i in order]
        np.testing.assert_allclose(nll, expected, rtol=CLOSE)
        assert tokens.tolist() == [LENGTHS[i][1] for i in order]


def test_score_does_not_depend_on_padding(params, scorer, expected_nll):
    """Far longer rows than any sentence; rows of padding count nothing."""
    split = seven_sentences()
    source = split.source.padded(np.arange(7), 8, 13)
    target = split.target.padded(np.arange(7), 8, 17)
    nll, tokens = scorer.score(params, (source, target))
    np.testing.assert_allclose(nll[:7], expected_nll, rtol=CLOSE)
    assert tokens.tolist() == [target for _, target in LENGTHS] + [0]
    assert nll[7] == 0


def scored_here(rows):
    """What a process with other devices reports, as plain values."""
    model, split = tiny_model(), seven_sentences()
    scorer, params = make_scorer(model), random_params(model)
    found = [perplexity(scorer, params, split, n)._asdict() for n in rows]
    return {"devices": parallel.device_count(), "found": found}


@pytest.mark.parametrize(("devices", "rows"), [(1, [3]), (2, [4, 2])])
def test_all_seven_sentences_are_scored_on_other_devices(devices, rows, expected_nll):
    """Seven by 4 on 2 devices is 2 + 2, then 2 + 1: the last row is padding."""
    flag = "--xla_force_host_platform_device_count"
    code = (
        "import json, runpy, sys\n"
        "scored_here = runpy.run_path(sys.argv[1])['scored_here']\n"
        "print(json.dumps(scored_here(json.loads(sys.argv[2]))))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, __file__, json.dumps(rows)],
        env=os.environ | {"XLA_FLAGS": f"{flag}={devices}"},
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    scored = json.loads(child.stdout.splitlines()[-1])
    assert scored["devices"] == devices and len(scored["found"]) == len(rows)
    expected = math.exp(sum(expected_nll) / 31)
    for found in scored["found"]:
        assert (found["sentences"], found["target_tokens"]) == (7, 31)
        assert found["nll"] == pytest.approx(sum(expected_nll), rel=CLOSE)
        assert found["value"] == pytest.approx(expected, rel=CLOSE)


def test_sentence_of_1500_pieces_among_short_ones(params, scorer, expected_nll):
    """It gets its own likelihood and the others theirs, in their places."""
    random = np.random.default_rng(9)
    long = [*random.integers(4, V, 1499), EOS]

    def side(short):
        sentences = [short[i] for i in range(7)]
        return Ragged.of([*sentences[:3], long, *sentences[3:]])

    short = seven_sentences()
    split = TokenizedSplit(side(short.source), side(short.target))
    nll, tokens = sentence_scores(scorer, params, split, rows=4)
    expected = NumpyTransformer(params).nll(long, long)
    np.testing.assert_allclose(nll[3], expected, rtol=CLOSE)
    np.testing.assert_allclose(np.delete(nll, 3), expected_nll, rtol=CLOSE)
    assert tokens.tolist() == [4, 2, 9, 1500, 1, 5, 7, 3]


def test_long_sentences_are_scored_in_few_rows():
    """64 short ones at once, but one of 2,000 a device; their scores do not change."""
    lengths = [5] * 100 + [2000] * 5 + [7] * 28
    source = Ragged.of([10 + i] * n for i, n in enumerate(lengths))
    split = TokenizedSplit(source, Ragged.of([4] * n for n in lengths))
    shapes = []

    def watched(_, batch):
        shapes.extend(side.shape for side in batch)
        return by_first_id(_, batch)

    nll, tokens = sentence_scores(Scorer(watched, None), None, split, 64)
    assert set(shapes) == {(64, 8), (4, 2000)}
    assert nll.tolist() == [10 + i for i in range(133)]
    assert tokens.tolist() == lengths


class Bigram:
    """A model that gives the right id p = 0.9 and shares the rest: no smoothing."""

    pad_id = PAD
    config = tiny_model().config

    def apply(self, variables, source_BS, target_BT):
        rest = 0.1 / (V - 1)
        right_BTV = jax.nn.one_hot(target_BT, V, dtype=np.float32)
        return variables["params"] + jax.numpy.log(rest + (0.9 - rest) * right_BTV)


def test_perplexity_is_unsmoothed_by_hand():
    """1 / 0.9, where smoothing by 0.1 would give exp(0.9 * 0.105 + 0.1 * 5.16) = 1.84
    or so; a constant on all logits changes nothing."""
    constant = np.full((1, 1, 1), 1.5, np.float32)
    found = perplexity(make_scorer(Bigram()), constant, seven_sentences(), rows=4)
    assert found.value == pytest.approx(1 / 0.9, rel=1e-5)
    assert found.nll == pytest.approx(31 * -math.log(0.9), rel=1e-5)


def by_first_id(_, batch):
    """A stand-in for a scorer: a sentence's likelihood is its first source id."""
    source, target = batch
    return source[:, 0].astype(np.float32), (target != PAD).sum(axis=1)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 7, 9, 64, 130])
@pytest.mark.parametrize("rows", [1, 3, 4, 6])
def test_every_sentence_is_counted_once(count, rows):
    """In one shape or, with many batches, in several."""
    random = np.random.default_rng(count)
    lengths = random.integers(1, 20, (2, count))
    source = Ragged.of([10 + i] * n for i, n in enumerate(lengths[0]))
    split = TokenizedSplit(source, Ragged.of([4] * n for n in lengths[1]))
    nll, tokens = sentence_scores(Scorer(by_first_id, None), None, split, rows)
    assert nll.tolist() == [10 + i for i in range(count)]
    assert tokens.tolist() == lengths[1].tolist()
    found = perplexity(Scorer(by_first_id, None), None, split, rows)
    assert found.sentences == count
    mean = sum(range(10, 10 + count)) / lengths[1].sum()
    assert found.value == pytest.approx(math.exp(mean), rel=1e-12)


def test_rows_are_rounded_up_to_the_four_devices():
    assert [whole_rows(rows) for rows in (1, 3, 4, 5, 9)] == [4, 4, 4, 8, 12]


def test_padding_stays_within_learned_positions():
    """The longest target has 9 ids; a tenth position does not exist."""
    changes = {"positions": "learned", "max_length": 9}
    model = tiny_model()
    model = model.clone(config=dataclasses.replace(model.config, **changes))
    assert longest_input(model) == 9 and longest_input(model, extra=4) == 5
    assert longest_input(tiny_model(), extra=4) is None
    lengths = []

    def watched(_, batch):
        lengths.extend(side.shape[1] for side in batch)
        return by_first_id(_, batch)

    sentence_scores(Scorer(watched, longest_input(model)), None, seven_sentences(), 4)
    assert max(lengths) == 9


def test_likelihood_that_is_not_a_number_is_refused(params, scorer):
    """One NaN in one parameter, as a diverged run leaves it, and a single infinity."""
    embedding = params["shared_embedding"].copy()
    embedding[EOS, 0] = np.nan
    broken = {**params, "shared_embedding": embedding}
    with pytest.raises(ValueError, match="no finite log-likelihood"):
        perplexity(scorer, broken, seven_sentences(), rows=4)

    def infinite(_, batch):
        nll, tokens = by_first_id(_, batch)
        return np.where(np.arange(len(nll)) == 1, np.inf, nll), tokens

    with pytest.raises(ValueError, match="no finite log-likelihood"):
        perplexity(Scorer(infinite, None), None, seven_sentences(), rows=4)


def test_uncounted_token_is_refused():
    def forgetful(_, batch):
        nll, tokens = by_first_id(_, batch)
        return nll, np.minimum(tokens, 8)  # one sentence has 9

    with pytest.raises(ValueError, match="not every target token"):
        perplexity(Scorer(forgetful, None), None, seven_sentences(), rows=4)
