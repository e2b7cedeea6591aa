"""Translations: the cached beam of a real model against full recomputation."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.decode.test_beam import plain_beam
from tests.evaluate.test_perplexity import (
    NumpyTransformer,
    V,
    random_params,
    seven_sentences,
    tiny_model,
)
from transformer_ablation import parallel
from transformer_ablation.config import DecodeConfig
from transformer_ablation.data.ragged import Ragged
from transformer_ablation.decode import beam
from transformer_ablation.evaluate import translation
from transformer_ablation.evaluate.translation import Translator
from transformer_ablation.model import transformer, widths
from transformer_ablation.vocabulary import EOS, PAD

EXTRA = 3
BEAM = 3
N_BEST = 2
# float32 through two layers against float64, summed over up to nine tokens.
CLOSE = {"rtol": 5e-5, "atol": 5e-5}


def settings(**changes):
    fields = {
        "beam_size": BEAM,
        "length_penalty": "wu2016",
        "length_penalty_alpha": 0.6,
        "extra_length": EXTRA,
        "average_checkpoints": 1,
        "sentences_per_batch": 4,
    }
    return DecodeConfig(**(fields | changes))


@pytest.fixture(scope="module")
def translator():
    return Translator(tiny_model(), settings(), N_BEST)


class Case(NamedTuple):
    """Random parameters, and what the best translations are with them."""

    params: dict
    expected: list


@pytest.fixture(scope="module")
def cases():
    """By a plain beam that runs a numpy Transformer over every prefix anew."""
    return [case(seed) for seed in (36, 49, 55)]


def case(seed):
    params = random_params(tiny_model(), seed)
    reference = NumpyTransformer(params)
    expected = []
    for source in seven_sentences().source:
        memory = reference.encode(source)

        def log_of(words, memory=memory):
            return reference.log_probabilities(memory, words)[-1]

        found, _ = plain_beam(log_of, len(source) + EXTRA, BEAM, 0.6)
        expected.append(found[:N_BEST])
    return Case(params, expected)


def assert_translations(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        without_end = [[t for t in h.tokens if t != EOS] for h in theirs]
        assert [h.ids for h in ours] == without_end
        assert [h.unfinished for h in ours] == [h.unfinished for h in theirs]
        for field in ("score", "log_probability"):
            values = [[getattr(h, field) for h in x] for x in (ours, theirs)]
            np.testing.assert_allclose(*values, **CLOSE)


def test_cached_beam_equals_teacher_forced_recomputation(translator, cases):
    """Seven sentences by 4, one of them an end of sentence alone, in their order."""
    for params, expected in cases:
        told = []
        found = translator.translate(params, seven_sentences().source, told.append)
        assert_translations(found, expected)
        assert told == [4, 7]


def test_the_expected_translations_are_of_every_kind(cases):
    """Finished and cut, of several words and of none: else the above tells little."""
    best = [found[0] for _, expected in cases for found in expected]
    assert 4 <= sum(h.unfinished for h in best) <= 17
    assert {len(h.tokens) for h in best if not h.unfinished} >= {1, 2, 4, 6}
    assert sum(len(set(h.tokens)) >= 3 for h in best) >= 3
    assert len({h.tokens for h in best}) >= 18


def test_translations_keep_the_order_of_their_sources(translator, cases):
    order = np.array([2, 0, 6, 4, 1, 3, 5])
    sources = seven_sentences().source.take(order)
    found = translator.translate(cases[0].params, sources)
    assert_translations(found, [cases[0].expected[i] for i in order])


def test_translations_do_not_depend_on_the_batch(cases):
    """Eight rows at once are two a device, one of them empty."""
    translator = Translator(tiny_model(), settings(sentences_per_batch=7), N_BEST)
    for params, expected in cases:
        found = translator.translate(params, seven_sentences().source)
        assert_translations(found, expected)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_search_of_many_batches_finds_the_same(cases, monkeypatch, devices):
    """Caches of 4, 8 and all positions, widths of 2 and more, on any devices."""
    monkeypatch.setattr(translation, "MANY_BATCHES", 1)
    monkeypatch.setattr(beam, "_FIRST_ROOM", 4)
    monkeypatch.setattr(widths, "NARROWEST", 2)
    grown = []

    def make_room(cache, length):
        grown.append(length)
        return transformer.make_room(cache, length)

    monkeypatch.setattr(transformer.Transformer, "make_room", staticmethod(make_room))
    with parallel.at_most(devices):
        translator = Translator(tiny_model(), settings(), N_BEST)
        for params, expected in cases:
            found = translator.translate(params, seven_sentences().source)
            assert_translations(found, expected)
    assert grown[0] == 8 and max(grown) > 8


@pytest.mark.parametrize(("batches", "fitted"), [(11, False), (12, True)])
def test_only_a_split_of_many_batches_takes_longer_to_compile(batches, fitted):
    class Asked(Copier):
        def start_cache(self, source_BS, candidates, length, fitted):
            asked.append(fitted)
            return super().start_cache(source_BS, candidates, length, fitted)

    asked = []
    sources = Ragged.of([[5, 6, EOS]] * (4 * batches))
    found = Translator(Asked(2), settings()).translate(np.zeros(1), sources)
    assert [h.ids for (h,) in found] == [[5, 6]] * (4 * batches)
    assert asked and set(asked) == {fitted}


def test_each_length_is_told_once_before_it_compiles(cases):
    told = []
    translator = Translator(tiny_model(), settings(), N_BEST, told.append)
    source = seven_sentences().source
    for _ in range(2):
        translator.translate(cases[0].params, source)
    assert len(told) == len(set(told)) and max(told) >= max(source.lengths)


def test_no_source_gives_no_translation(translator, cases):
    assert translator.translate(cases[0].params, Ragged.of([])) == []


class Cache(NamedTuple):
    """What ``follow`` expects of a cache."""

    origin_BCT: jax.Array
    source_BS: jax.Array


class Copier:
    """Writes its source again; the end comes at ``end_at`` tokens or never."""

    pad_id, grows = PAD, False
    follow, make_room = staticmethod(transformer.follow), None

    def __init__(self, end_at, positions="none", max_length=2):
        self.end_at = end_at
        self.lengths = []
        changes = {"positions": positions, "max_length": max_length}
        self.config = dataclasses.replace(tiny_model().config, **changes)

    def apply(self, variables, *arguments, method):
        return getattr(self, method)(*arguments)

    def start_cache(self, source_BS, candidates, length, fitted):
        self.lengths.append(length)
        shape = (source_BS.shape[0], candidates, length)
        return Cache(jnp.zeros(shape, jnp.int32), source_BS)

    def step(self, cache, tokens_BC, position):
        source_BS = cache.source_BS
        word_B = source_BS[:, jnp.minimum(position, source_BS.shape[1] - 1)]
        word_B = jnp.where((word_B == PAD) | (word_B == EOS), 7, word_B)
        word_B = jnp.where(position == self.end_at, EOS, word_B)
        logits_BV = jnp.where(jax.nn.one_hot(word_B, V) > 0, 0.0, -jnp.inf)
        shape = (*tokens_BC.shape, V)
        return jnp.broadcast_to(logits_BV[:, None], shape), cache


SOURCES = Ragged.of([[5, 6, EOS], [EOS], [8, 9, 10, 11, EOS], [12, EOS], [13, EOS]])


def test_translation_that_never_ends_has_source_and_extra_length():
    """Not the length of the longest source of its batch."""
    found = Translator(Copier(99), settings()).translate(np.zeros(1), SOURCES)
    assert [h.ids for (h,) in found] == [
        [5, 6] + [7] * (1 + EXTRA),
        [7] * (1 + EXTRA),
        [8, 9, 10, 11] + [7] * (1 + EXTRA),
        [12] + [7] * (1 + EXTRA),
        [13] + [7] * (1 + EXTRA),
    ]
    assert all(h.unfinished and h.log_probability == 0 for (h,) in found)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_ids_are_without_the_end_of_sentence(beam_size):
    """An end at the last allowed place is an end; places without one are left out."""
    translator = Translator(Copier(EXTRA), settings(beam_size=beam_size), beam_size)
    found = translator.translate(np.zeros(1), SOURCES)
    assert [h.ids for (h,) in found] == [
        [5, 6, 7],
        [7, 7, 7],
        [8, 9, 10],
        [12, 7, 7],
        [13, 7, 7],
    ]
    assert not any(h.unfinished for (h,) in found)
    assert all(type(i) is int for (h,) in found for i in h.ids)


def test_no_position_beyond_a_learned_table_is_asked_for():
    """The longest source has 5 ids, so 5 + EXTRA positions are enough."""
    model = Copier(2, "learned", 5 + EXTRA)
    found = Translator(model, settings()).translate(np.zeros(1), SOURCES)
    assert [h.ids for (h,) in found] == [[5, 6], [7, 7], [8, 9], [12, 7], [13, 7]]
    assert set(model.lengths) == {5 + EXTRA}


def test_endless_source_is_translated_in_its_place_and_in_few_rows():
    """1,500 pieces: one row a device, with a cache for them and the extra length."""

    class Watched(Copier):
        def start_cache(self, source_BS, candidates, length, fitted):
            rows.append((source_BS.shape[0], length))
            return super().start_cache(source_BS, candidates, length, fitted)

    rows = []
    sources = Ragged.of([[5, 6, EOS], [EOS], [9] * 1499 + [EOS], [12, EOS]])
    translator = Translator(Watched(2), settings(sentences_per_batch=64))
    found = translator.translate(np.zeros(1), sources)
    assert [h.ids for (h,) in found] == [[5, 6], [7, 7], [9, 9], [12, 7]]
    # 64 rows over four devices, then a 64th of them: at least one a device.
    assert rows == [(16, 8 + EXTRA), (1, 1504 + EXTRA)]


def test_endless_source_is_copied_to_its_end():
    """No position is lost on the way: 1,499 words, and a cap that is 1,500 + EXTRA."""
    words = [8 + i % 10 for i in range(1499)]
    sources = Ragged.of([[*words, EOS], [5, 6, EOS]])
    (ended,), _ = Translator(Copier(1499), settings()).translate(np.zeros(1), sources)
    assert ended.ids == words and not ended.unfinished
    (cut,), (short,) = Translator(Copier(9999), settings()).translate(
        np.zeros(1), sources
    )
    assert cut.ids == words + [7] * (1 + EXTRA) and cut.unfinished
    assert short.ids == [5, 6] + [7] * (1 + EXTRA)


def test_blank_texts_have_empty_translations_in_their_places():
    """Blank is what is without a letter or sign; the others are as if alone."""
    texts = ["five six", "", "eight", " \t\u2028", "thirteen"]
    sources = Ragged.of(
        [[5, 6, EOS], [EOS], [8, 9, 10, 11, EOS], [20, 21, EOS], [13, EOS]]
    )
    found = Translator(Copier(2), settings()).best(np.zeros(1), sources, texts)
    assert [best.ids for best in found] == [[5, 6], [], [8, 9], [], [13, 7]]
    assert not any(best.unfinished for best in found)
    none = Translator(Copier(2), settings()).best(np.zeros(1), Ragged.of([[EOS]]), [""])
    assert [best.ids for best in none] == [[]]


@pytest.mark.parametrize("n_best", [0, BEAM + 1])
def test_more_hypotheses_than_the_beam_holds_are_refused(n_best):
    message = f"n_best is {n_best}; it must be from 1 to decode.beam_size = {BEAM}"
    with pytest.raises(ValueError, match=message):
        Translator(tiny_model(), settings(), n_best)
