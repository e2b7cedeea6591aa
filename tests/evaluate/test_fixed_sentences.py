"""A few fixed sentences: greedy words by a numpy model, and which are short."""

import pytest

from tests.evaluate.test_perplexity import (
    NumpyTransformer,
    random_params,
    seven_sentences,
    tiny_model,
)
from tests.evaluate.test_translation import EXTRA, settings
from transformer_ablation import parallel
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate import fixed_sentences
from transformer_ablation.vocabulary import EOS


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


def test_short_pairs_are_found_or_else_the_shortest():
    sides = [
        Ragged.of([[7] * n for n in lengths]) for lengths in ((3, 9, 4), (5, 2, 4))
    ]
    split = TokenizedSplit(*sides)
    assert fixed_sentences.short_enough(split, 5).tolist() == [0, 2]
    assert fixed_sentences.short_enough(split, 3).tolist() == [2]
