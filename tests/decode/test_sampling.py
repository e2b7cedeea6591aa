"""Draws from a toy decoder whose every output can be written down."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from transformer_ablation.decode.beam import BeamSettings, beam_search
from transformer_ablation.decode.sampling import (
    SamplingSettings,
    sample,
    sentence_keys,
)
from transformer_ablation.vocabulary import BOS, EOS, PAD

V = 7
WORDS = (4, 5, 6)
LONGEST = 3
ROWS = 6000


def logits_after(last, position):
    """Of the piece after ``last``; PAD, UNK and BOS would often be drawn."""
    random = np.random.default_rng(100 * last + position)
    logits = random.normal(0.0, 1.0, V)
    logits[:3] += 1.5
    return logits


TABLE = np.array([[logits_after(n, t) for n in range(V)] for t in range(LONGEST)])


def step(cache, tokens_BC, position):
    """Depends on the last piece and the position; the cache counts the calls."""
    return jnp.float32(TABLE)[position, tokens_BC], cache + 1


@functools.cache
def compiled(draws, top_k=None, penalty="wu2016"):
    settings = SamplingSettings(draws, 0.6, LONGEST, top_k, penalty)

    def run(cap_B, keys_B2, temperature_B):
        cache = jnp.zeros((), jnp.int32)
        return sample(step, cache, cap_B, keys_B2, temperature_B, settings)

    return jax.jit(run)


def drawn(numbers, draws=1, temperature=1.0, seed=5, top_k=None, cap=LONGEST):
    rows = len(numbers)
    caps = np.full(rows, cap, np.int32)
    temperatures = np.full(rows, temperature, np.float32)
    keys = sentence_keys(seed, np.asarray(numbers))
    return jax.device_get(compiled(draws, top_k)(caps, keys, temperatures))


def allowed(logits, top_k):
    """Which pieces may be drawn: not PAD, UNK and BOS, and the best of the others."""
    order = sorted(range(EOS, V), key=lambda i: -logits[i])
    return order[: top_k or V]


def distribution(temperature=1.0, top_k=None):
    """``{tokens: probability}`` of every output, with those cut after LONGEST."""
    found = {}

    def grow(words, probability):
        position = len(words)
        logits = TABLE[position, words[-1] if words else BOS]
        pieces = allowed(logits, top_k)
        weights = np.exp(logits[pieces] / temperature)
        for piece, weight in zip(pieces, weights / weights.sum(), strict=True):
            longer = (*words, piece)
            if piece == EOS or len(longer) == LONGEST:
                found[longer] = probability * weight
            else:
                grow(longer, probability * weight)

    grow((), 1.0)
    assert sum(found.values()) == pytest.approx(1.0)
    return found


def outputs(found):
    """The tokens of every draw, without padding: [(row, draw)]."""
    return [[tuple(t[t != PAD].tolist()) for t in row] for row in found.tokens]


@pytest.mark.parametrize(
    ("temperature", "top_k", "outcomes"),
    # Outputs of up to three pieces: 1, then 3 words, then 9 and of three pieces 27;
    # of the two most probable pieces fewer.
    [(1.0, None, 40), (0.5, None, 40), (2.5, None, 40), (1.0, 2, None)],
)
def test_draws_have_the_distribution_of_the_decoder(temperature, top_k, outcomes):
    """Chi-square over all outputs; those expected fewer than five times as one."""
    expected = distribution(temperature, top_k)
    assert outcomes is None or len(expected) == outcomes
    rows = outputs(drawn(range(ROWS), temperature=temperature, top_k=top_k))
    counts = {words: 0 for words in expected}
    for (words,) in rows:
        counts[words] += 1
    often = [words for words, p in expected.items() if p * ROWS >= 5]
    observed = [counts[words] for words in often]
    wanted = [expected[words] * ROWS for words in often]
    if len(often) < len(expected):
        observed.append(ROWS - sum(observed))
        wanted.append(ROWS - sum(wanted))
    # One seed in a thousand would fail; this one is fixed.
    assert stats.chisquare(observed, wanted).pvalue > 1e-3


def test_draws_of_one_sentence_are_independent():
    """Pairs of draws against the product of their distributions."""
    expected = distribution()
    first = {words[0] for words in expected}
    marginal = {
        piece: sum(p for words, p in expected.items() if words[0] == piece)
        for piece in first
    }
    pairs = [(a[0], b[0]) for a, b in outputs(drawn(range(ROWS), draws=2))]
    every = list(itertools.product(sorted(first), repeat=2))
    observed = [pairs.count(pair) for pair in every]
    wanted = [marginal[a] * marginal[b] * ROWS for a, b in every]
    assert min(wanted) >= 5
    assert stats.chisquare(observed, wanted).pvalue > 1e-3


def test_low_temperature_is_greedy_search():
    settings = BeamSettings(1, 0.6, LONGEST)
    cap_B = jnp.full(3, LONGEST, jnp.int32)

    def follow(cache, parents_BC):
        return cache

    greedy = beam_search(step, jnp.zeros((), jnp.int32), follow, cap_B, settings)
    found = drawn(range(3), temperature=0.001)
    np.testing.assert_array_equal(found.tokens, greedy.tokens)
    np.testing.assert_allclose(found.scores, greedy.scores, rtol=1e-6)
    np.testing.assert_allclose(
        found.log_probabilities, greedy.log_probabilities, rtol=1e-6
    )
    np.testing.assert_array_equal(found.unfinished, greedy.unfinished)


def test_draw_depends_on_seed_number_and_place_alone():
    alone = outputs(drawn([7]))[0]
    among = outputs(drawn([3, 7, 9, 7], draws=4))
    # The first draw is that of one draw; the same number gives the same again.
    assert among[1][:1] == alone and among[1] == among[3]
    assert len({tuple(row) for row in among}) == 3
    assert len(set(among[1])) > 1
    others = [outputs(drawn([7], draws=4, seed=seed))[0] for seed in range(4)]
    assert len({tuple(row) for row in others}) > 1


def test_log_probability_is_the_models_at_temperature_one_of_all_pieces():
    """Whatever was drawn from; the score is by Wu's penalty, at the cap as well."""
    found = drawn(range(50), temperature=2.0, top_k=3)
    kinds = set()
    for row, (words,) in enumerate(outputs(found)):
        last, total = BOS, 0.0
        for position, piece in enumerate(words):
            logits = TABLE[position, last]
            total += logits[piece] - np.log(np.exp(logits).sum())
            last = piece
        assert found.log_probabilities[row, 0] == pytest.approx(total, rel=1e-5)
        score = total / ((5 + len(words)) / 6) ** 0.6
        assert found.scores[row, 0] == pytest.approx(score, rel=1e-5)
        assert found.unfinished[row, 0] == (words[-1] != EOS)
        kinds.add((len(words), words[-1] == EOS))
    assert kinds >= {(1, True), (2, True), (3, True), (3, False)}


def test_caps_are_kept_and_padded_rows_hold_nothing():
    keys = sentence_keys(0, np.arange(4))
    caps = np.array([0, 1, 2, 3], np.int32)
    found = jax.device_get(compiled(3)(caps, keys, np.ones(4, np.float32)))
    assert (found.tokens[0] == PAD).all() and not found.unfinished[0].any()
    assert (found.scores[0] == np.float32(-1e30)).all()
    for row, cap in enumerate(caps[1:], start=1):
        assert all(1 <= len(words) <= cap for words in outputs(found)[row])
        whole = [words[-1] == EOS for words in outputs(found)[row]]
        assert found.unfinished[row].tolist() == [not end for end in whole]


def test_steps_end_with_the_last_draw():
    """The cache counts them; of rows with a cap of one piece there is one."""
    settings = SamplingSettings(2, 0.0, LONGEST)
    calls = []

    def counted(cache, tokens_BC, position):
        logits, cache = step(cache, tokens_BC, position)
        jax.debug.callback(lambda n: calls.append(int(n)), cache)
        return logits, cache

    keys = sentence_keys(0, np.arange(2))
    found = sample(
        counted,
        jnp.zeros((), jnp.int32),
        jnp.ones(2, jnp.int32),
        keys,
        jnp.ones(2),
        settings,
    )
    jax.block_until_ready(found)
    jax.effects_barrier()
    assert calls == [1]
