"""A few fixed sentences: greedy words by a numpy model, weights by their sums."""

import numpy as np
import pytest

from configs import base
from tests.evaluate.test_perplexity import (
    NumpyTransformer,
    V,
    random_params,
    seven_sentences,
    tiny_model,
)
from tests.evaluate.test_translation import EXTRA, settings
from transformer_ablation import config, parallel
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate import fixed_sentences
from transformer_ablation.model.architectures import new_model
from transformer_ablation.vocabulary import BOS, EOS, PAD


@pytest.fixture(scope="module")
def params():
    return random_params(tiny_model(), 49)


def test_translations_are_the_likeliest_word_at_every_place(params):
    sources = seven_sentences().source
    greedy = fixed_sentences.make_greedy(tiny_model(), settings(), sources)
    on_device = parallel.on_one_device(parallel.replicate(params))
    reference = NumpyTransformer(params)
    found = greedy(on_device)
    assert len(found) == len(sources) == 7
    for ours, source in zip(found, sources, strict=True):
        memory, words = reference.encode(source), []
        while len(words) < len(source) + EXTRA and EOS not in words:
            words.append(int(reference.log_probabilities(memory, words)[-1].argmax()))
        assert ours.ids == [word for word in words if word != EOS]
        assert ours.unfinished == (EOS not in words)


def test_weights_are_of_real_places_alone_and_sum_to_one(params):
    """Of each pair as if it were alone, though the rows are padded together."""
    pairs = seven_sentences()
    found = fixed_sentences.make_attention(tiny_model(), pairs)(params)
    for i, each in enumerate(found):
        s, t = int(pairs.source.lengths[i]), int(pairs.target.lengths[i])
        assert each.encoder.shape[-2:] == (s, s)
        assert each.decoder.shape[-2:] == (t, t)
        assert each.cross.shape[-2:] == (t, s)
        for weights in each:
            np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-6)
        later = np.triu(np.ones((t, t), bool), 1)
        assert (each.decoder[..., later] == 0).all()
        if i > 1:
            continue  # each compiles a program of its own
        one = TokenizedSplit(
            *(side.take(np.array([i])) for side in vars(pairs).values())
        )
        (alone,) = fixed_sentences.make_attention(tiny_model(), one)(params)
        for ours, theirs in zip(each, alone, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [({}, {}), ({"model.recurrent_attention": "additive"}, {"cross": 1})],
)
def test_attention_that_a_model_lacks_is_left_out(fields, kinds):
    settings = config.replace(
        config.from_mapping(base.get_config()),
        {**config.of_architecture("recurrent"), "model.d_model": 12, **fields},
    )
    model = new_model(settings.model, V, pad_id=PAD, bos_id=BOS, eos_id=EOS)
    few = seven_sentences()
    pairs = TokenizedSplit(*(s.take(np.array([0, 2])) for s in vars(few).values()))
    found = fixed_sentences.make_attention(model, pairs)(random_params(model))
    assert [set(each.known()) for each in found] == [set(kinds)] * 2
    for kind, heads in kinds.items():
        weights = found[1].known()[kind]
        assert weights.shape == (1, heads, 9, 3)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-6)


def test_entropy_is_that_of_each_querys_weights():
    weights_NHLM = np.array([[[[0.25] * 4, [0, 1, 0, 0], [0.5, 0, 0.5, 0]]]])
    found = fixed_sentences.entropies(weights_NHLM)
    np.testing.assert_allclose(found, [[[np.log(4), 0, np.log(2)]]], rtol=1e-12)


def test_short_pairs_are_found_or_else_the_shortest():
    sides = [
        Ragged.of([[7] * n for n in lengths]) for lengths in ((3, 9, 4), (5, 2, 4))
    ]
    split = TokenizedSplit(*sides)
    assert fixed_sentences.short_enough(split, 5).tolist() == [0, 2]
    assert fixed_sentences.short_enough(split, 3).tolist() == [2]
