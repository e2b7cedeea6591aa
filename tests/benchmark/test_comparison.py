"""What a peer is given is our own work; turns alternate; failures are told."""

import dataclasses

import numpy as np
import pytest

from transformer_ablation.benchmark import comparison, marian
from transformer_ablation.benchmark.peer import Peer, PeerError
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.export.marian import ExportError

EOS = 3


def pairs(count=200, seed=1):
    random = np.random.default_rng(seed)
    sides = [
        Ragged.of([[*random.integers(4, 99, n - 1), EOS] for n in lengths])
        for lengths in random.integers(1, 30, (2, count))
    ]
    return TokenizedSplit(*sides)


def rows_of(batches, side):
    """Every row of all batches without its padding, in an order of their own."""
    return sorted(tuple(row[row != 0]) for batch in batches for row in batch[side])


def test_peer_gets_every_pair_once():
    given = pairs()
    found = marian.length_sorted(given, 256)
    for side, ragged in enumerate((given.source, given.target)):
        expected = sorted(tuple(ragged[i]) for i in range(len(ragged)))
        assert rows_of(found, side) == expected


def test_peer_batches_fit_the_budget_and_hardly_pad():
    found = marian.length_sorted(pairs(2000), 256)
    sizes = [target.size for _, target in found]
    assert max(sizes) <= 256 and np.median(sizes) > 220
    real = sum((target != 0).sum() for _, target in found)
    assert real / sum(sizes) > 0.95
    assert all((source != 0).any(axis=0).all() for source, _ in found)


def test_pair_longer_than_the_budget_has_a_batch_of_its_own():
    ragged = Ragged.of([[5] * 9 + [EOS], [EOS]])
    found = marian.length_sorted(TokenizedSplit(ragged, ragged), 4)
    assert sorted(target.shape for _, target in found) == [(1, 1), (1, 10)]


def test_nearest_peer_says_how_it_differs(base_config):
    assert marian.nearest(base_config.model) == []
    model = dataclasses.replace(base_config.model, norm="pre", d_k=16)
    norm, d_k = marian.nearest(model)
    assert norm == "Marian is timed with post for model.norm = 'pre'"
    assert "d_model / num_heads = 64 for model.d_k = 16" in d_k


def test_heads_that_do_not_share_the_model_have_no_peer(base_config):
    model = dataclasses.replace(base_config.model, num_heads=3)
    with pytest.raises(ExportError, match="leave out --peers"):
        marian.nearest(model)


def test_turns_alternate_and_ratios_are_of_one_turn():
    log = []

    def side(name, *rates):
        left = list(rates)
        return lambda count: log.append((name, count)) or left.pop(0)

    found = comparison.in_turns(side("a", 6.0, 9.0), side("b", 3.0, 3.0), 4, turns=2)
    assert log == [("a", 4), ("b", 4), ("a", 4), ("b", 4)]
    assert (found.ours.median, found.theirs.median) == (7.5, 3.0)
    assert (found.ratio.smallest, found.ratio.largest) == (2.0, 3.0)


def test_turn_is_as_long_as_asked_for_on_the_slower_side():
    assert comparison.per_turn(3.0, 0.1, 0.5) == 6
    assert comparison.per_turn(3.0, 0.1, 40.0) == 1


def test_failure_of_the_peer_is_told(base_config):
    """Without threads PyTorch refuses; without PyTorch the process says so."""
    job = marian.Job(base_config, 300, 0, [], [])
    with Peer(job) as peer, pytest.raises(PeerError, match="the peer failed: .*Error"):
        peer.ask("facts")
    assert not peer._process.is_alive()


def test_death_of_the_peer_is_told(base_config):
    with Peer(marian.Job(base_config, 300, 1, [], [])) as peer:
        peer._process.kill()
        with pytest.raises(PeerError, match="died"):
            peer.ask("facts")
