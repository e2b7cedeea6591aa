"""Rows of several sequences: each is what it would be in a row of its own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    EOS,
    PAD,
    VOCABULARY,
    NumpyTransformer,
    random_parameters,
    random_sentences,
    small_module,
)
from tests.model.test_transformer import CASES, assert_close
from transformer_ablation.model.packed import places, same_sequence
from transformer_ablation.train.loss import loss_sums

# Rows of pairs (source length, target length). The rows are longer than the 15
# learned positions that SMALL has; the last holds padding alone.
ROWS = (((4, 3), (1, 7), (6, 2), (2, 1)), ((5, 8), (8, 5)), ((1, 1),), ())
SOURCE_ROOM, TARGET_ROOM = 18, 17


def sentence(length, seed):
    """Ids that end in EOS."""
    return np.append(random_sentences((1, length), [length], seed)[0, :-1], EOS)


@functools.lru_cache
def pairs():
    """``[row][n] = (source, target)``."""
    return [
        [
            (sentence(s, 31 * row + n), sentence(t, 31 * row + n + 700))
            for n, (s, t) in enumerate(lengths)
        ]
        for row, lengths in enumerate(ROWS)
    ]


def rows_of(side, room):
    """int32 [4, room]: the sequences of each row, one after the other, then PAD."""
    packed = np.full((len(ROWS), room), PAD, np.int32)
    for row, held in zip(packed, pairs(), strict=True):
        ids = [i for pair in held for i in pair[side]]
        row[: len(ids)] = ids
    return packed


SOURCE, TARGET = rows_of(0, SOURCE_ROOM), rows_of(1, TARGET_ROOM)


def test_places_by_hand():
    tokens = jnp.array([[7, 8, EOS, EOS, 9, EOS, PAD, PAD], [5, 6, 7, EOS, 5, 6, 7, 8]])
    found = places(tokens, EOS)
    sequence_BL = found.sequence_BL - found.sequence_BL[:, :1]
    assert sequence_BL.tolist() == [[0, 0, 0, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1]]
    assert found.position_BL.tolist() == [
        [0, 1, 2, 0, 0, 1, 0, 1],
        [0, 1, 2, 3, 0, 1, 2, 3],
    ]


def test_sequences_of_two_sides_meet_by_number():
    target, source = (
        places(jnp.array([row]), EOS) for row in ([5, EOS, EOS, 6], [EOS, 7, 8, EOS, 9])
    )
    assert same_sequence(target, source)[0, 0].astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize("name", CASES)
def test_logits_of_each_sequence_are_those_of_numpy_alone(name):
    module = small_module(**CASES[name])
    params = random_parameters(module, seed=3)
    apply = jax.jit(functools.partial(module.apply, packed=True))
    logits_BTV = np.asarray(apply({"params": params}, SOURCE, TARGET))
    assert np.isfinite(logits_BTV).all()
    for row, held in enumerate(pairs()):
        start = 0
        for source, target in held:
            found_TV = logits_BTV[row, start : start + len(target)]
            alone = NumpyTransformer(module.config, params)
            assert_close(found_TV, alone.logits(source, target))
            start += len(target)


def test_row_of_one_sequence_needs_no_packing():
    module = small_module(num_layers=2, attention_window=3)
    params = random_parameters(module, seed=5)
    source, target = SOURCE[2:3, :4], TARGET[2:3, :4]
    plain = module.apply({"params": params}, source, target)
    packed = module.apply({"params": params}, source, target, packed=True)
    assert_close(np.asarray(packed)[:, :1], np.asarray(plain)[:, :1])


def test_loss_and_gradient_are_those_of_rows_of_one():
    """Sums over the same tokens, however they share rows; learned tables too."""
    module = small_module(num_layers=2, positions="learned")
    params = random_parameters(module, seed=6)
    alone = [pair for held in pairs() for pair in held]
    source = np.full((len(alone), 8), PAD, np.int32)
    target = np.full((len(alone), 8), PAD, np.int32)
    for i, (source_ids, target_ids) in enumerate(alone):
        source[i, : len(source_ids)] = source_ids
        target[i, : len(target_ids)] = target_ids

    def loss(params, source_BS, target_BT, packed):
        logits_BTV = module.apply(
            {"params": params}, source_BS, target_BT, packed=packed
        )
        sums = loss_sums(logits_BTV, target_BT, PAD, 0.1, "all_classes")
        return sums.loss, sums

    run = jax.jit(jax.grad(loss, has_aux=True), static_argnums=3)
    expected, expected_sums = run(params, source, target, False)
    found, found_sums = run(params, SOURCE, TARGET, True)
    assert found_sums.tokens == expected_sums.tokens == (TARGET != PAD).sum() == 27
    np.testing.assert_allclose(found_sums.loss, expected_sums.loss, rtol=1e-6)
    np.testing.assert_allclose(found_sums.nll, expected_sums.nll, rtol=1e-6)
    assert abs(found_sums.nll / 27 - np.log(VOCABULARY)) < 3
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = np.abs(b).max()
        assert scale > 0
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * scale)


def test_padding_of_a_packed_row_gets_no_gradient():
    """Nor does it give one: the last row has no token, so its embedding is unmoved."""
    module = small_module(num_layers=2, tied_embeddings="none")
    params = random_parameters(module, seed=7)

    def loss(params):
        logits_BTV = module.apply({"params": params}, SOURCE, TARGET, packed=True)
        return loss_sums(logits_BTV, TARGET, PAD, 0.1, "all_classes").loss

    gradient = jax.jit(jax.grad(loss))(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert (np.asarray(gradient["source_embedding"])[PAD] == 0).all()
    assert (np.asarray(gradient["target_embedding"])[PAD] == 0).all()
