"""Searches of a given length: exactly so long, and otherwise beam search."""

import numpy as np
import pytest

from tests.model.numpy_transformer import (
    VOCABULARY,
    random_parameters,
    random_sentences,
    small_module,
)
from transformer_ablation import parallel
from transformer_ablation.benchmark import decoding
from transformer_ablation.data.batches import EvaluationBatch
from transformer_ablation.data.ragged import Ragged, TokenizedSplit

EOS = 3


@pytest.fixture
def decode(base_config):
    import dataclasses

    return dataclasses.replace(base_config.decode, beam_size=2, extra_length=4)


def test_hypotheses_have_the_lengths_asked_for(decode):
    module = small_module()
    params = parallel.replicate(random_parameters(module, seed=4))
    source_BS = random_sentences((4, 6), (6, 2, 5, 3), seed=5)
    cap_B = np.array([7, 3, 0, 10], np.int32)
    found = decoding.Search(module, decode)(params, source_BS, cap_B)
    lengths = (found.tokens[:, 0] != 0).sum(axis=1)
    assert lengths.tolist() == [7, 3, 0, 10]
    assert not (found.tokens == EOS).any() and found.tokens.max() < VOCABULARY


def test_length_beyond_the_search_is_an_error(decode):
    search = decoding.Search(small_module(), decode)
    with pytest.raises(ValueError, match="11 tokens do not fit into 10"):
        search(None, np.zeros((4, 6), np.int32), np.array([1, 11, 2, 3]))


def test_sentences_are_drawn_evenly_and_once():
    split = [Ragged.of([[i, EOS] for i in range(50)])] * 2
    chosen = decoding.some_sentences(TokenizedSplit(*split), 8)
    first = [int(chosen.source[i][0]) for i in range(len(chosen))]
    assert first == [0, 7, 14, 21, 28, 35, 42, 49]
    assert len(decoding.some_sentences(TokenizedSplit(*split), 99)) == 50


def test_reference_lengths_leave_padding_out_and_stay_in_the_search(decode):
    target_BT = np.array([[5, 6, 3, 0, 0, 0], [5, 5, 5, 5, 5, 3], [0] * 6], np.int32)
    source_BS = np.array([[5, 3], [3, 0], [0, 0]], np.int32)
    batch = EvaluationBatch(np.arange(2), source_BS, target_BT)
    # One source token and extra_length = 4 allow five of the six.
    assert decoding.reference_lengths(batch, decode).tolist() == [3, 5, 0]
