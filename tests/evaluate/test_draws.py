"""Draws by a real model's cached steps, and the scores of single pieces."""

import numpy as np
import pytest

from tests.evaluate.test_perplexity import (
    NumpyTransformer,
    random_params,
    seven_sentences,
    tiny_model,
)
from tests.evaluate.test_translation import EXTRA, settings
from transformer_ablation.evaluate.perplexity import make_token_scorer, token_scores
from transformer_ablation.evaluate.translation import Draws, Translator
from transformer_ablation.vocabulary import EOS

# float32 through two layers against float64, summed over up to nine tokens.
CLOSE = {"rtol": 5e-5, "atol": 5e-5}
DRAWS = 3


@pytest.fixture(scope="module")
def params():
    return random_params(tiny_model(), 36)


@pytest.fixture(scope="module")
def sampler():
    return Translator(tiny_model(), settings(), DRAWS)


def draws(numbers=range(7), **changes):
    fields = {"seed": 4, "temperature": 1.3, **changes}
    return Draws(numbers=np.array(numbers), **fields)


def whole(translation):
    return translation.ids + [EOS] * (not translation.unfinished)


def test_draws_have_the_models_log_probabilities(sampler, params):
    """By a numpy Transformer that runs over the whole output again."""
    sources = seven_sentences().source
    reference = NumpyTransformer(params)
    found = sampler.translate(params, sources, draws=draws())
    assert [len(row) for row in found] == [DRAWS] * 7
    for source, row in zip(sources, found, strict=True):
        memory = reference.encode(source)
        for translation in row:
            ids = whole(translation)
            log = reference.log_probabilities(memory, ids[:-1])
            total = sum(log[t][i] for t, i in enumerate(ids))
            np.testing.assert_allclose(translation.log_probability, total, **CLOSE)
            cap = len(source) + EXTRA
            assert len(ids) == cap if translation.unfinished else len(ids) <= cap
    assert len({tuple(t.ids) for row in found for t in row}) > 12


def test_draws_do_not_depend_on_batch_or_order(params, sampler):
    sources = seven_sentences().source
    expected = [
        [t.ids for t in row]
        for row in sampler.translate(params, sources, draws=draws())
    ]
    order = np.array([5, 2, 0, 6, 1])
    for rows in (1, 4, 7):
        other = Translator(tiny_model(), settings(sentences_per_batch=rows), DRAWS)
        found = other.translate(params, sources.take(order), draws=draws(order))
        assert [[t.ids for t in row] for row in found] == [expected[i] for i in order]


def test_low_temperature_draws_what_greedy_search_finds(params):
    sources = seven_sentences().source
    greedy = Translator(tiny_model(), settings(beam_size=1)).translate(params, sources)
    one = Translator(tiny_model(), settings())
    cold = one.translate(params, sources, draws=draws(temperature=0.001))
    for (a,), (b,) in zip(cold, greedy, strict=True):
        assert (a.ids, a.unfinished) == (b.ids, b.unfinished)
        np.testing.assert_allclose(a.score, b.score, rtol=1e-5)


def test_scores_of_pieces_are_the_models(params):
    """Each of its own place, in the order of the split and without padding."""
    split = seven_sentences()
    reference = NumpyTransformer(params)
    scorer = make_token_scorer(tiny_model())
    found = token_scores(scorer, params, split, 4)
    assert [len(scores) for scores in found] == split.target.lengths.tolist()
    for source, target, scores in zip(split.source, split.target, found, strict=True):
        memory = reference.encode(source)
        log = reference.log_probabilities(memory, list(target[:-1]))
        expected = [log[t][i] for t, i in enumerate(target)]
        np.testing.assert_allclose(scores, expected, **CLOSE)
