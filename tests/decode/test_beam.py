"""Beam search on toy decoders whose every hypothesis can be written down."""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_ablation.decode import beam
from transformer_ablation.decode.beam import (
    NEVER,
    BeamSettings,
    beam_search,
    rooms,
    top_k,
)
from transformer_ablation.vocabulary import BOS, EOS, PAD, UNK

V = 7
WORDS = (4, 5, 6)
LONGEST = 4
# Prefixes of up to LONGEST - 1 words: 1 + 3 + 9 + 27.
NODES = 40
# All continuations of the 27 longest prefixes: nothing is ever left out.
WHOLE = 27 * 4
N_BEST = 5
ROWS = 60
ALPHAS = (-1.0, 0.0, 0.6, 2.0)
# float32 against float64, on sums of four numbers.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


class Found(NamedTuple):
    """One hypothesis, as the search returns it and as the tests compute it."""

    tokens: tuple
    score: float
    log_probability: float
    unfinished: bool


class Toy(NamedTuple):
    """Carries its prefix and forgets nothing: logits are those of the prefix."""

    table_BNV: jax.Array
    prefix_BCT: jax.Array


def toy_step(toy, tokens_BC, position):
    assert tokens_BC.dtype == jnp.int32 and position.dtype == jnp.int32
    prefix_BCT = toy.prefix_BCT.at[:, :, position].set(tokens_BC)
    node_BC = jnp.zeros_like(tokens_BC)
    for t in range(1, prefix_BCT.shape[2]):
        child_BC = 3 * node_BC + prefix_BCT[:, :, t] - EOS
        node_BC = jnp.where(t <= position, child_BC, node_BC)
    node_BC1 = jnp.clip(node_BC, 0, NODES - 1)[..., None]  # dead ones point anywhere
    logits_BCV = jnp.take_along_axis(toy.table_BNV, node_BC1, axis=1)
    return logits_BCV, toy._replace(prefix_BCT=prefix_BCT)


def toy_reorder(toy, parent_BC):
    prefix_BCT = jnp.take_along_axis(toy.prefix_BCT, parent_BC[..., None], axis=1)
    return toy._replace(prefix_BCT=prefix_BCT)


def toy_grow(toy, room):
    """Refuses a cache that would not grow, or is not full before it does."""
    *shape, old = toy.prefix_BCT.shape
    assert old < room
    added = jnp.full((*shape, room - old), UNK, jnp.int32)
    prefix_BCT = jnp.concatenate([toy.prefix_BCT, added], axis=-1)
    return toy._replace(prefix_BCT=prefix_BCT)


def search_growing(table_BNV, cap_B, settings):
    """From one candidate and the first room on."""
    shape = (len(cap_B), 1, rooms(settings.max_length)[0])
    toy = Toy(jnp.asarray(table_BNV), jnp.full(shape, UNK, jnp.int32))
    return beam_search(toy_step, toy, toy_reorder, cap_B, settings, toy_grow)


def search_batch(table_BNV, cap_B, settings, step=toy_step, reorder=toy_reorder):
    shape = (len(cap_B), settings.beam_size, settings.max_length)
    toy = Toy(jnp.asarray(table_BNV), jnp.full(shape, UNK, jnp.int32))
    return beam_search(step, toy, reorder, cap_B, settings)


@functools.cache
def compiled(beam_size, alpha, n_best, alone, penalty="wu2016"):
    """The search of [B] sentences, together or each for itself.

    ``vmap`` of batches of one leaves a sentence alone once it has stopped, so it
    shows each early stop.
    """
    settings = BeamSettings(beam_size, alpha, LONGEST, n_best, penalty)
    if not alone:
        return jax.jit(lambda table, cap: search_batch(table, cap, settings))

    def single(table_NV, cap):
        found = search_batch(table_NV[None], cap[None], settings)
        return jax.tree.map(lambda x: x[0], found)

    return jax.jit(jax.vmap(single))


def run(table_BNV, cap_B, beam_size, alpha, n_best=1, alone=True, penalty="wu2016"):
    """The result as numpy; rows are added, so that few shapes are compiled."""
    added = ROWS - len(cap_B)
    table_BNV = np.concatenate([table_BNV, np.zeros((added, NODES, V))])
    cap_B = np.concatenate([cap_B, np.zeros(added)])
    search = compiled(beam_size, alpha, n_best, alone, penalty)
    found = jax.device_get(search(np.float32(table_BNV), np.int32(cap_B)))
    return jax.tree.map(lambda x: x[: ROWS - added], found)


def read(found, row, cap):
    """The hypotheses of a row as plain values; checks what follows their end."""
    result = []
    for place, score in enumerate(found.scores[row]):
        tokens = found.tokens[row, place].tolist()
        if score == np.float32(-1e30):  # no hypothesis
            assert tokens == [PAD] * LONGEST and not found.unfinished[row, place]
            continue
        unfinished = bool(found.unfinished[row, place])
        length = cap if unfinished else tokens.index(EOS) + 1
        assert tokens[length:] == [PAD] * (LONGEST - length)
        log_probability = float(found.log_probabilities[row, place])
        words = tuple(tokens[:length])
        result.append(Found(words, float(score), log_probability, unfinished))
    return result


def log_softmax(table):
    table = np.float64(np.float32(table))
    return table - np.log(np.exp(table).sum(axis=-1, keepdims=True))


def node_of(words):
    return functools.reduce(lambda node, word: 3 * node + word - EOS, words, 0)


def rows_of(table_NV):
    """words -> log p [V] of what follows them, in float64."""
    log_NV = log_softmax(table_NV)
    return lambda words: log_NV[node_of(words)]


def made(tokens, log_of, alpha, penalty="wu2016"):
    """A hypothesis with its score by the paper's formula, or by length^alpha."""
    total = sum(log_of(tokens[:t])[token] for t, token in enumerate(tokens))
    base = (5 + len(tokens)) / 6 if penalty == "wu2016" else len(tokens)
    return Found(tuple(tokens), total / base**alpha, total, tokens[-1] != EOS)


def ranked(hypotheses):
    """Best first; a cut one comes after every finished one."""
    return sorted(hypotheses, key=lambda h: (h.unfinished, -h.score))


def exhaustive(table_NV, cap, alpha, penalty="wu2016"):
    """Every hypothesis of at most ``cap`` tokens, the end of sentence included."""
    every = []
    for count in range(cap):
        for words in itertools.product(WORDS, repeat=count):
            every.append((*words, EOS))
    if cap:
        every += itertools.product(WORDS, repeat=cap)
    log_of = rows_of(table_NV)
    return ranked(made(tokens, log_of, alpha, penalty) for tokens in every)


def plain_beam(log_of, cap, beam_size, alpha):
    """The documented rule in lists, without early stops; also who follows whom.

    ``log_of`` gives log p of what may follow some words.
    """
    live, finished, parents = [(0.0, ())] * (cap > 0), [], []
    for _ in range(cap):
        following = [
            (total + log_p, (*words, token), parent)
            for parent, (total, words) in enumerate(live)
            for token, log_p in enumerate(log_of(words))
            if token not in (PAD, UNK, BOS)
        ]
        best = sorted(following, reverse=True)[: 2 * beam_size]
        finished += [w for _, w, _ in best[:beam_size] if w[-1] == EOS]
        if beam_size == 1 and finished:
            live = []
            break
        others = [x for x in best if x[1][-1] != EOS][:beam_size]
        live = [(total, words) for total, words, _ in others]
        parents.append([parent for *_, parent in others])
    hypotheses = finished + [words for _, words in live]
    return ranked(made(tokens, log_of, alpha) for tokens in hypotheses), parents


def assert_same(found, expected):
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    assert [h.unfinished for h in found] == [h.unfinished for h in expected]
    for field in ("score", "log_probability"):
        values = [[getattr(h, field) for h in x] for x in (found, expected)]
        np.testing.assert_allclose(*values, **CLOSE)


@pytest.fixture(scope="module")
def tables():
    """Random decoders, from nearly indifferent to nearly certain; caps 0 to 4."""
    random = np.random.default_rng(11)
    spread_B11 = np.resize([0.3, 1.0, 3.0, 6.0], ROWS)[:, None, None]
    table_BNV = spread_B11 * random.standard_normal((ROWS, NODES, V))
    # In every third the end of sentence is rare, so that some are cut.
    table_BNV[::3, :, EOS] -= 3
    # In every fifth a token that may not be written is the likeliest.
    table_BNV[::5, :, [PAD, UNK, BOS]] += 4
    cap_B = np.resize([4, 4, 4, 3, 4, 2, 4, 1, 4, 4, 0], ROWS).tolist()
    return table_BNV, cap_B


@pytest.mark.parametrize(
    "alpha, penalty",
    [*((alpha, "wu2016") for alpha in ALPHAS), (-1.0, "power"), (0.6, "power")],
)
def test_whole_beam_equals_exhaustive_enumeration(tables, alpha, penalty):
    """Best and n-best, each sentence with its own cap and its own early stop."""
    table_BNV, cap_B = tables
    found = run(table_BNV, cap_B, WHOLE, alpha, N_BEST, penalty=penalty)
    assert found.tokens.dtype == np.int32
    for row, cap in enumerate(cap_B):
        expected = exhaustive(table_BNV[row], cap, alpha, penalty)[:N_BEST]
        assert_same(read(found, row, cap), expected)


def test_penalties_rank_differently(tables):
    """The tables tell the two formulas apart: else the above is idle."""
    table_BNV, cap_B = tables
    best = [
        [
            exhaustive(table_BNV[row], cap, 0.6, kind)[:1]
            for row, cap in enumerate(cap_B)
        ]
        for kind in ("wu2016", "power")
    ]
    words = [[[h.tokens for h in hs] for hs in rows] for rows in best]
    assert words[0] != words[1]


@pytest.mark.parametrize(
    ("beam_size", "alpha", "alone"),
    [
        (1, 2.0, True),
        (1, 2.0, False),
        (2, -1.0, True),
        (2, 2.0, False),
        (3, 0.6, True),
        (3, 0.6, False),
    ],
)
def test_small_beam_equals_a_plain_one(tables, beam_size, alpha, alone):
    """Also in a batch, where others go on after a sentence is done."""
    table_BNV, cap_B = tables
    found = run(table_BNV, cap_B, beam_size, alpha, alone=alone)
    for row, cap in enumerate(cap_B):
        expected, _ = plain_beam(rows_of(table_BNV[row]), cap, beam_size, alpha)
        assert_same(read(found, row, cap), expected[:1])


@pytest.mark.parametrize(
    ("max_length", "expected"),
    [
        (1, (1,)),
        (16, (16,)),
        (21, (21,)),
        (22, (16, 22)),
        (42, (16, 42)),
        (43, (16, 32, 43)),
        (90, (16, 32, 64, 90)),
        (129, (16, 32, 64, 129)),
    ],
)
def test_rooms_double_and_the_last_is_a_third_larger_at_least(max_length, expected):
    """4 / 3 of 16 is 21.3, of 32 is 42.7, of 64 is 85.3, of 128 is 170.7."""
    assert rooms(max_length) == expected


@pytest.mark.parametrize("beam_size", [1, 2, WHOLE])
@pytest.mark.parametrize("alone", [False, True])
def test_search_with_a_growing_cache_finds_the_same(
    tables, monkeypatch, beam_size, alone
):
    """Rooms of 1, 2 and 4; a first step of one candidate, of fewer than the beam.

    What a toy has at a position is read at all later ones, so nothing may be lost.
    """
    monkeypatch.setattr(beam, "_FIRST_ROOM", 1)
    table_BNV, cap_B = np.float32(tables[0]), np.int32(tables[1])
    settings = BeamSettings(beam_size, 0.6, LONGEST, 2 if beam_size > 1 else 1)
    assert rooms(LONGEST) == (1, 2, 4)
    if alone:
        single = jax.vmap(
            lambda table, cap: search_growing(table[None], cap[None], settings)
        )
        found = jax.tree.map(lambda x: x[:, 0], jax.jit(single)(table_BNV, cap_B))
    else:
        found = jax.jit(lambda *x: search_growing(*x, settings))(table_BNV, cap_B)
    found = jax.device_get(found)
    for row, cap in enumerate(tables[1]):
        log_of = rows_of(table_BNV[row])
        if beam_size == WHOLE:
            expected = exhaustive(table_BNV[row], cap, 0.6)
        else:
            expected, _ = plain_beam(log_of, cap, beam_size, 0.6)
        assert_same(read(found, row, cap), expected[: settings.n_best])


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_cache_grows_only_where_sentences_need_it(tables, monkeypatch, longest):
    """Rooms of 1, 2 and 4: no sentence goes beyond ``longest``, so neither do they."""
    monkeypatch.setattr(beam, "_FIRST_ROOM", 1)
    seen = []

    def step(toy, tokens_BC, position):
        room = toy.prefix_BCT.shape[-1]
        jax.debug.callback(lambda p: seen.append((int(p), room)), position)
        return toy_step(toy, tokens_BC, position)

    toy = Toy(jnp.asarray(tables[0][:3]), jnp.full((3, 1, 1), UNK, jnp.int32))
    settings = BeamSettings(2, 0.6, LONGEST)
    endless = toy._replace(table_BNV=toy.table_BNV.at[:, :, EOS].add(-30))
    caps = jnp.array([1, longest, 0])
    beam_search(step, endless, toy_reorder, caps, settings, toy_grow)
    jax.effects_barrier()
    room_at = {0: 1, 1: 2, 2: 4}
    assert sorted(seen) == [(p, room_at[p]) for p in range(longest)]


def test_small_beam_is_not_exhaustive(tables):
    """The tables tell a small beam from the whole one: else the above is idle."""
    pairs = list(zip(*tables, strict=True))
    best = [exhaustive(table, cap, 0.6)[:1] for table, cap in pairs]
    assert best != [
        plain_beam(rows_of(table), cap, 2, 0.6)[0][:1] for table, cap in pairs
    ]


@pytest.mark.parametrize("alone", [True, False])
def test_beam_of_one_is_greedy(tables, alone):
    """An argmax loop: it ends at the first end of sentence, whatever comes later."""
    table_BNV, cap_B = tables
    found = run(table_BNV, cap_B, 1, 2.0, alone=alone)
    for row, cap in enumerate(cap_B):
        words = []
        while len(words) < cap and EOS not in words:
            logits_V = table_BNV[row, node_of(words)].copy()
            logits_V[[PAD, UNK, BOS]] = -np.inf
            words.append(int(np.argmax(logits_V)))
        expected = [tuple(words)] if cap else []
        assert [h.tokens for h in read(found, row, cap)] == expected


def test_beam_of_one_has_ended_though_others_go_on():
    """The end has p = 0.51 and scores -0.67. What would have gone on, 4 4 4 and its
    end, has p = 0.49 and would score log 0.49 / (9/6) ** 2 = -0.32."""
    ends = only(((), {EOS: 0.51, 4: 0.49}), ((4, 4, 4), {EOS: 1.0}))
    found = run(np.stack([ends, only()]), [4, 4], 1, 2.0, alone=False)
    (greedy,) = read(found, 0, 4)
    assert greedy.tokens == (EOS,)


def test_result_does_not_depend_on_the_rest_of_the_batch(tables):
    """Bit for bit, when the others are reversed and have other caps."""
    table_BNV, cap_B = tables
    cap_B = np.array(cap_B)
    others_B = np.where(np.arange(ROWS) % 2, 4, cap_B)
    first = run(table_BNV, cap_B, 2, 2.0, alone=False)
    second = run(table_BNV[::-1], others_B[::-1], 2, 2.0, alone=False)
    same_B = cap_B == others_B
    assert 30 < same_B.sum() < ROWS
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one[same_B], other[::-1][same_B])


def test_forbidden_tokens_are_never_written_however_likely(tables):
    table_BNV, cap_B = tables
    table_BNV = table_BNV.copy()
    table_BNV[:, :, [PAD, UNK, BOS]] += 30
    found = run(table_BNV, cap_B, WHOLE, 0.6, N_BEST)
    for row, cap in enumerate(cap_B):
        hypotheses = read(found, row, cap)
        assert len(hypotheses) == min(N_BEST, 3**cap + cap) * (cap > 0)
        for h in hypotheses:
            assert set(h.tokens) <= {EOS, *WORDS}
            assert h.log_probability < -20  # their probability stays with them


def only(*probabilities):
    """A decoder [N, V] of (prefix, {token: p}); elsewhere 4 is certain."""
    table_NV = np.full((NODES, V), -np.inf)
    table_NV[:, 4] = 0
    for prefix, row in probabilities:
        table_NV[node_of(prefix)] = -np.inf
        for token, p in row.items():
            table_NV[node_of(prefix), token] = np.log(p)
    return table_NV


def test_sentence_cut_at_its_cap_ranks_below_finished_ones():
    """4 4 4 4 has probability 0.99, the finished hypothesis 0.01: that one wins."""
    table_NV = only(((), {4: 0.99, 5: 0.01}), ((5,), {EOS: 1.0}))
    found = run(np.stack([table_NV] * 2), [4, 3], WHOLE, 0.6, N_BEST)
    for row, cap in enumerate([4, 3]):
        first, *others = read(found, row, cap)
        assert first.tokens == (5, EOS) and not first.unfinished
        np.testing.assert_allclose(first.score, np.log(0.01) / (7 / 6) ** 0.6, 1e-5)
        (cut,) = [h for h in others if h.log_probability > -1]
        assert cut.unfinished and cut.tokens == (4,) * cap


def test_sentence_without_end_is_cut_at_its_own_cap():
    table_NV = only()
    found = run(np.stack([table_NV] * 5), range(5), 2, 2.0, alone=False)
    assert read(found, 0, 0) == []
    for cap in range(1, 5):
        (cut,) = read(found, cap, cap)
        assert cut.unfinished and cut.tokens == (4,) * cap


def test_cap_of_zero_returns_nothing(tables):
    found = run(tables[0], np.zeros(ROWS), WHOLE, 0.6, N_BEST)
    assert (found.tokens == PAD).all() and not found.unfinished.any()
    assert (found.scores == np.float32(-1e30)).all()


def test_equally_probable_hypotheses_are_all_found_once():
    """Every token has p = 1/7: with alpha 0, shorter is better and the rest ties."""
    found = run(np.zeros((3, NODES, V)), [4, 4, 2], WHOLE, 0.0, N_BEST)
    for row, cap in enumerate([4, 4, 2]):
        hypotheses = read(found, row, cap)
        lengths = [len(h.tokens) for h in hypotheses]
        assert lengths == ([1, 2, 2, 2, 3] if cap == 4 else [1, 2, 2, 2, 2])
        assert {h.tokens for h in hypotheses[1:4]} == {(w, EOS) for w in WORDS}
        assert len({h.tokens for h in hypotheses}) == N_BEST
        by_hand = -np.log(7) * np.array(lengths)
        np.testing.assert_allclose([h.score for h in hypotheses], by_hand, **CLOSE)
    np.testing.assert_array_equal(found.tokens[0], found.tokens[1])


@pytest.fixture(scope="module")
def spied():
    """A search that tells what its step and ``reorder`` were given."""
    steps, parents = [], []

    def step(toy, tokens_BC, position):
        jax.debug.callback(lambda *x: steps.append(x), position, tokens_BC)
        return toy_step(toy, tokens_BC, position)

    def reorder(toy, parent_BC):
        assert jnp.issubdtype(parent_BC.dtype, jnp.integer)
        jax.debug.callback(
            lambda t, x: parents.append((t, x)), toy.prefix_BCT, parent_BC
        )
        return toy_reorder(toy, parent_BC)

    settings = BeamSettings(2, 0.6, LONGEST)
    search = jax.jit(lambda t, cap: search_batch(t, cap, settings, step, reorder))

    def spy(table_BNV, cap_B):
        steps.clear(), parents.clear()
        jax.block_until_ready(search(np.float32(table_BNV), np.int32(cap_B)))
        jax.effects_barrier()
        return list(steps), list(parents)

    return spy


def test_reorder_receives_the_parents(tables, spied):
    """Of the plain search, as long as it goes on; random enough to cross."""
    seen = set()
    for table_NV in tables[0][[1, 2, 4, 6, 8]]:
        _, found = spied(np.stack([table_NV] * 4), [LONGEST] * 4)
        expected = plain_beam(rows_of(table_NV), LONGEST, 2, 0.6)[1]
        for (_, parent_BC), parents in zip(found, expected, strict=False):
            assert parent_BC.tolist() == [parents] * 4
            seen.add(tuple(parents))
    assert len(seen) > 2 and (1, 0) in seen


def test_search_stops_when_no_live_candidate_can_win(spied):
    """Steps 0, 1, ... are taken, and only as many as may change the result.

    First: an end of p = 0.9 scores log 0.9 = -0.105 at once; what lives has at most
    log 0.1 / (9/6) ** 0.6 = -1.8 to come. Second: the end has p = 0.4, and what
    lives may still reach log 0.6 / (9/6) ** 0.6 = -0.4 > log 0.4 = -0.92.
    """
    table_NV = only(((), {EOS: 0.9, 4: 0.1}))
    steps, _ = spied(np.stack([table_NV] * 4), [LONGEST] * 4)
    assert sorted(int(position) for position, _ in steps) == [0]
    table_NV = only(((), {EOS: 0.4, 4: 0.6}))
    steps, _ = spied(np.stack([table_NV] * 4), [LONGEST, LONGEST, 3, 0])
    assert sorted(int(position) for position, _ in steps) == [0, 1, 2, 3]


def test_step_receives_the_begin_of_sentence_first(tables, spied):
    steps, _ = spied(tables[0][:4], [LONGEST] * 4)
    tokens = {int(position): tokens_BC for position, tokens_BC in steps}
    assert (tokens[0] == BOS).all()
    assert np.isin(tokens[1], WORDS).all()


@pytest.mark.parametrize("size", [7, 64, 500, 1000, 8000])
@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("values", [3, 10**6])
def test_top_k_is_that_of_numpy_also_among_equal_numbers(size, count, values):
    """Of equal numbers the first; with three values nearly all are equal."""
    count = min(count, size)
    random = np.random.default_rng(size)
    x_BCV = random.integers(0, values, (2, 3, size)).astype(np.float32)
    x_BCV[0, 0, size // 2 :] = NEVER  # what may not be written is the last resort
    found_BCK, index_BCK = top_k(jnp.asarray(x_BCV), count)
    order_BCV = np.argsort(-x_BCV, axis=-1, kind="stable")[..., :count]
    np.testing.assert_array_equal(index_BCK, order_BCV)
    np.testing.assert_array_equal(found_BCK, np.take_along_axis(x_BCV, order_BCV, -1))


@pytest.mark.parametrize("size", [64, 1000, 8000])
@pytest.mark.parametrize("hidden", [(0, 1, 3), (31, 32, 33), (5,)])
def test_top_k_is_that_of_numpy_without_the_hidden_places(size, hidden):
    """They come last, though they have the largest numbers of all."""
    random = np.random.default_rng(size)
    x_BCV = random.integers(0, 1000, (2, 3, size)).astype(np.float32)
    x_BCV[:, :, hidden] = 2000 + random.integers(0, 10, (2, 3, len(hidden)))
    allowed_BCV = x_BCV.copy()
    allowed_BCV[:, :, hidden] = NEVER
    found_BCK, index_BCK = top_k(jnp.asarray(x_BCV), 8, hidden)
    order_BCV = np.argsort(-allowed_BCV, axis=-1, kind="stable")[..., :8]
    np.testing.assert_array_equal(index_BCK, order_BCV)
    expected = np.take_along_axis(allowed_BCV, order_BCV, -1)
    np.testing.assert_array_equal(found_BCK, expected)
