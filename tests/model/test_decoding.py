"""Cached decoding: every step equals teacher forcing of the candidate's own history."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    BOS,
    PAD,
    VOCABULARY,
    NumpyTransformer,
    random_parameters,
    random_sentences,
    small_module,
)
from transformer_ablation.model import widths
from transformer_ablation.model.transformer import follow, make_room

# Both position kinds, both norms and both depths in every combination; windows,
# tying and scores are varied along with them.
CASES = {
    "post_sinusoidal_1": {"attention_window": 3},
    "post_sinusoidal_3": {"num_layers": 3},
    "post_learned_1": {"positions": "learned", "compatibility": "additive"},
    "post_learned_3": {"num_layers": 3, "positions": "learned", "attention_window": 2},
    "pre_sinusoidal_1": {"norm": "pre", "tied_embeddings": "none"},
    "pre_sinusoidal_3": {
        "num_layers": 1,
        "decoder_layers": 3,
        "norm": "pre",
        "attention_window": 3,
    },
    "pre_learned_1": {"norm": "pre", "positions": "learned", "attention_window": 4},
    "pre_learned_3": {
        "num_layers": 3,
        "norm": "pre",
        "positions": "learned",
        "compatibility": "dot",
        "tied_embeddings": "decoder",
        "scale_embeddings": False,
    },
}
BATCH, CANDIDATES, LENGTH = 2, 3, 6
SOURCE_LENGTHS = (5, 2)
SOURCE = random_sentences((BATCH, 5), SOURCE_LENGTHS, seed=5)
# What each candidate takes at each step, and whom it continues: parents that
# survive twice, die out, swap places, and differ between the two sentences.
CHOSEN = random_sentences((LENGTH, BATCH * CANDIDATES), [9] * LENGTH, seed=6).reshape(
    LENGTH, BATCH, CANDIDATES
)
PARENTS = np.array(
    [
        [[0, 1, 2], [2, 0, 1]],
        [[1, 1, 0], [0, 2, 2]],
        [[2, 0, 1], [1, 0, 0]],
        [[0, 0, 2], [2, 1, 0]],
        [[2, 1, 0], [0, 1, 2]],
    ],
    np.int32,
)


def histories():
    """For each position the inputs of each candidate so far: [B][C] lists of ids."""
    now = [[[BOS] for _ in range(CANDIDATES)] for _ in range(BATCH)]
    yield now
    for chosen, parents in zip(CHOSEN, PARENTS, strict=False):
        now = [
            [[*now[b][parents[b, c]], int(chosen[b, c])] for c in range(CANDIDATES)]
            for b in range(BATCH)
        ]
        yield now


def decoded(step, params, cache, grow_at=()):
    """Logits [T, B, C, V] of every step, following PARENTS in between.

    Before the positions ``grow_at`` the cache is made a position or two larger.
    """
    tokens_BC = np.full((BATCH, CANDIDATES), BOS, np.int32)
    found = []
    for position in range(LENGTH):
        if position:
            cache = follow(cache, PARENTS[position - 1])
            tokens_BC = CHOSEN[position - 1]
        if position in grow_at:
            cache = make_room(cache, min(position + 2, LENGTH))
        logits_BCV, cache = step(params, cache, tokens_BC, np.int32(position))
        found.append(np.asarray(logits_BCV))
    return np.array(found)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A model of CASES with its compiled step and the logits of a decoding."""
    module = small_module(**CASES[request.param])
    params = random_parameters(module, seed=7)

    @jax.jit
    def start(params):
        variables = {"params": params}
        args = (SOURCE, CANDIDATES, LENGTH)
        return module.apply(variables, *args, method=module.start_cache)

    @jax.jit
    def step(params, cache, tokens_BC, position):
        variables = {"params": params}
        args = (cache, tokens_BC, position)
        return module.apply(variables, *args, method=module.step)

    cache = start(params)
    return types.SimpleNamespace(
        module=module,
        params=params,
        cache=cache,
        step=step,
        logits_TBCV=decoded(step, params, cache),
    )


def assert_close(actual, expected):
    """Equal to 1e-5 of the largest: float32 sums of some dozens of terms."""
    highest = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * highest)


def test_step_equals_numpy_of_its_own_history(case):
    """At every position and candidate, also those that die out."""
    numpy_model = NumpyTransformer(case.module.config, case.params)
    expected = np.zeros(case.logits_TBCV.shape)
    for position, now in enumerate(histories()):
        for b, c in np.ndindex(BATCH, CANDIDATES):
            source = SOURCE[b, : SOURCE_LENGTHS[b]]
            target = [*now[b][c][1:], PAD]  # what is predicted is never looked at
            expected[position, b, c] = numpy_model.logits(source, target)[-1]
    assert_close(case.logits_TBCV, expected)


@pytest.mark.parametrize("case", ["post_sinusoidal_3", "pre_learned_3"], indirect=True)
def test_step_equals_the_models_own_teacher_forcing(case):
    """Without numpy between, in two cases, as each costs a compilation more."""
    rows = [now[b][c] for now in histories() for b in range(BATCH) for c in range(3)]
    # What is behind a position is arbitrary: the model is causal.
    targets = np.array([[*row[1:], *[9] * LENGTH][:LENGTH] for row in rows], np.int32)
    sources = np.tile(np.repeat(SOURCE, CANDIDATES, axis=0), (LENGTH, 1))
    forced = jax.jit(case.module.apply)({"params": case.params}, sources, targets)
    forced_TBCTV = np.asarray(forced).reshape(LENGTH, BATCH, CANDIDATES, LENGTH, -1)
    for position in range(LENGTH):
        own_BCV = forced_TBCTV[position, :, :, position]
        assert_close(case.logits_TBCV[position], own_BCV)


def test_step_reads_no_slot_that_is_not_the_candidates_past(case):
    """Rubbish in all slots of the past before the first step changes no bit."""
    generator = np.random.default_rng(8)

    def rubbish(like):
        return jnp.asarray(100 * generator.standard_normal(like.shape), like.dtype)

    cache = case.cache._replace(
        layers=tuple(
            {**kept, "keys": rubbish(kept["keys"]), "values": rubbish(kept["values"])}
            for kept in case.cache.layers
        )
    )
    logits_TBCV = decoded(case.step, case.params, cache)
    np.testing.assert_array_equal(logits_TBCV, case.logits_TBCV)


def test_cache_that_grows_on_the_way_loses_nothing(case):
    """From room for one position on; the same numbers but for the order of sums."""

    def start(params):
        args = (SOURCE, CANDIDATES, 1)
        method = case.module.start_cache
        return case.module.apply({"params": params}, *args, method=method)

    cache = jax.jit(start)(case.params)
    found = decoded(case.step, case.params, cache, grow_at=(1, 3, 5))
    assert_close(found, case.logits_TBCV)


@pytest.mark.parametrize("case", ["post_sinusoidal_3", "pre_learned_3"], indirect=True)
def test_first_step_of_one_candidate_is_that_of_all(case):
    """What it writes is the past of each candidate that follows it."""
    one = case.cache._replace(origin_BCT=case.cache.origin_BCT[:, :1])
    first_B1 = np.full((BATCH, 1), BOS, np.int32)
    logits_B1V, one = case.step(case.params, one, first_B1, np.int32(0))
    assert_close(logits_B1V[:, 0], case.logits_TBCV[0, :, 0])
    one = follow(one, np.zeros((BATCH, CANDIDATES), np.int32))
    chosen = CHOSEN[0]
    logits_BCV, _ = case.step(case.params, one, chosen, np.int32(1))
    # Of the usual start every candidate has the same past, so each may be anyone's.
    assert_close(logits_BCV, case.logits_TBCV[1])


@pytest.mark.parametrize(
    ("width", "expected"),
    [(8, (8,)), (16, (16,)), (24, (16, 24)), (40, (16, 24, 40)), (48, (16, 24, 48))],
)
def test_widths_end_in_the_whole_width(width, expected):
    """16, 24, 40, 64: half as large again, in eights; a quarter less than the whole."""
    assert widths.widths(width) == expected


@pytest.mark.parametrize("longest", [1, 3, 4, 5, 7, 11, 12])
def test_memory_is_the_same_in_any_width(monkeypatch, longest):
    """Widths of 4, 8 and 12; one row is empty, as of a batch that is not full."""
    monkeypatch.setattr(widths, "NARROWEST", 4)
    assert widths.widths(12) == (4, 8, 12)
    module = small_module(num_layers=2)
    params = random_parameters(module, seed=7)
    source = random_sentences((3, 12), (longest, 0, min(2, longest)), seed=5)

    def memory(fitted):
        variables = {"params": params}
        args = (source, CANDIDATES, LENGTH, fitted)
        method = module.start_cache
        cache = jax.jit(lambda: module.apply(variables, *args, method=method))()
        keys = np.stack([kept["memory_keys"] for kept in cache.layers])
        values = np.stack([kept["memory_values"] for kept in cache.layers])
        return np.moveaxis(keys, 4, 2), np.moveaxis(values, 3, 2), cache

    *found, cache = memory(fitted=True)
    *expected, _ = memory(fitted=False)
    np.testing.assert_array_equal(cache.memory_mask_B11S[:, 0, 0], source != PAD)
    for ours, theirs in zip(found, expected, strict=True):  # [N, B, S, H, ...]
        real = source != PAD
        assert_close(ours[:, real], theirs[:, real])
        used = next(width for width in (4, 8, 12) if width >= longest)
        assert (ours[:, :, used:] == 0).all()  # nothing was computed there


def test_step_neither_encodes_nor_projects_the_memory_again(case):
    """Those parameters may be NaN by then."""
    names = {"encoder", "encoder_norm", "source_embedding", "source_positions"}
    params = {
        name: jax.tree.map(lambda x: x * np.nan, part) if name in names else part
        for name, part in case.params.items()
    }

    def without_memory(layer):
        cross = dict(layer["cross_attention"])
        for name in ("key", "value"):
            cross[name] = {"kernel": cross[name]["kernel"] * np.nan}
        return {**layer, "cross_attention": cross}

    cache = case.cache._replace(
        layers=tuple(
            {**kept, "params": without_memory(kept["params"])}
            for kept in case.cache.layers
        )
    )
    logits_TBCV = decoded(case.step, params, cache)
    np.testing.assert_array_equal(logits_TBCV, case.logits_TBCV)


def test_cache_has_room_for_every_candidate_and_position():
    """Slots T * C and memory S for each layer, and 36 small integers of origin."""
    module = small_module(num_layers=4)
    variables = {"params": random_parameters(module)}
    cache = jax.eval_shape(
        lambda: module.apply(variables, SOURCE, 3, 6, method=module.start_cache)
    )
    assert len(cache.layers) == 4
    for kept in cache.layers:
        assert {n: leaf.shape for n, leaf in kept.items() if n != "params"} == {
            "keys": (2, 2, 7, 18),
            "values": (2, 2, 18, 5),
            "memory_keys": (2, 2, 7, 5),
            "memory_values": (2, 2, 5, 5),
        }
    assert cache.origin_BCT.shape == (2, 3, 6)


def test_follow_takes_the_parents_whole_history():
    origin = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    module = small_module()
    variables = {"params": random_parameters(module)}
    shapes = jax.eval_shape(
        lambda: module.apply(variables, SOURCE, 3, 4, method=module.start_cache)
    )
    cache = shapes._replace(origin_BCT=origin)
    followed = follow(cache, np.array([[2, 2, 0], [1, 0, 1]]))
    expected = [
        [origin[0, 2], origin[0, 2], origin[0, 0]],
        [origin[1, 1], origin[1, 0], origin[1, 1]],
    ]
    np.testing.assert_array_equal(followed.origin_BCT, expected)
    assert followed.layers is cache.layers


def test_decoding_beyond_the_learned_table_is_refused():
    module = small_module(positions="learned")
    variables = {"params": random_parameters(module)}

    def first_logits(length):
        cache = module.apply(variables, SOURCE, 1, length, method=module.start_cache)
        tokens_BC = jnp.full((BATCH, 1), BOS)
        return module.apply(variables, cache, tokens_BC, 0, method=module.step)

    logits_BCV, _ = jax.eval_shape(lambda: first_logits(15))
    assert logits_BCV.shape == (BATCH, 1, VOCABULARY)
    with pytest.raises(ValueError, match="a sequence of 16 positions does not fit"):
        jax.eval_shape(lambda: first_logits(16))
