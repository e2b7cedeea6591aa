"""Packed rows: every pair once an epoch, whole, in rows that are nearly full."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.test_batches import (
    LENGTHS,
    MAX_LENGTH,
    PACKED,
    make,
    order,
    random_lengths,
)
from tests.data.test_batches import split_of as pairs_of
from transformer_ablation import config
from transformer_ablation.data.packing import PackedRows, _ascending
from transformer_ablation.data.row_plan import pack, plan_rows, stored_plan
from transformer_ablation.data.tokens import prepare
from transformer_ablation.vocabulary import EOS, PAD


def make_packed(split, **changes):
    return make(split, **(PACKED | changes))


def sequences(row):
    """The sequences of a row, EOS included, and what is behind the last."""
    ends = np.flatnonzero(row == EOS) + 1
    return [part.tolist() for part in np.split(row, ends)]


def pairs_in(batch, lengths):
    """Numbers of the pairs of a batch, each found whole on both sides of one row."""
    found = []
    for source_row, target_row in zip(batch.source, batch.target, strict=True):
        *sources, source_rest = sequences(source_row)
        *targets, target_rest = sequences(target_row)
        assert set(source_rest + target_rest) <= {PAD}
        for source, target in zip(sources, targets, strict=True):
            i = lengths_number(source, target, lengths)
            found.append(i)
    return found


def lengths_number(source, target, lengths):
    """The pair whose ids these are, by its first id; one of EOS alone has none."""
    i = source[0] - 1000 if len(source) > 1 else target[0] - 5000
    source_length, target_length = lengths[i]
    assert source == [1000 + i] * (source_length - 1) + [EOS]
    assert target == [5000 + i] * (target_length - 1) + [EOS]
    return i


@settings(max_examples=60)
@given(LENGTHS, st.integers(MAX_LENGTH + 1, 40), st.integers(1, 3), st.integers(0, 200))
def test_epoch_holds_every_pair_once(lengths, room, accumulation, extra):
    batches = make_packed(
        pairs_of(lengths),
        packed_length=room,
        accumulation_steps=accumulation,
        tokens_per_batch=room * accumulation + extra,
    )
    updates = batches.updates_per_epoch
    assert len(batches.shapes) == 1
    for epoch in (0, 1):
        seen = []
        for update in range(epoch * updates, (epoch + 1) * updates):
            batch = batches.batch(update)
            assert batch.target.shape == (batches.shapes[0].rows, room)
            assert batch.target.size <= room * accumulation + extra
            here = pairs_in(batch, lengths)
            assert sorted(here) == sorted(batches.indices(update).tolist())
            assert batch.source_tokens == sum(lengths[i][0] for i in here)
            assert batch.target_tokens == sum(lengths[i][1] for i in here)
            assert (batch.target != PAD).sum() == batch.target_tokens
            seen += here
        assert sorted(seen) == list(range(len(lengths)))


def test_best_fit_by_hand():
    """Rooms of 5 and 5. The 4 stands alone but for the 1; each 3 takes a 2."""
    kinds = np.array([[1, 1], [2, 2], [3, 3], [4, 4]])
    slots = pack(kinds, np.array([1, 3, 2, 1]), 5, 5).slots()
    rows = [slots.kinds[slots.rows == row].tolist() for row in range(slots.row_count)]
    assert sorted(map(sorted, rows)) == [[0, 3], [1], [1, 2], [1, 2]]


def test_both_sides_bound_a_row():
    """Of lengths (1, 4) and (4, 1), one of each fills a row of (5, 5); no two alike."""
    slots = pack(np.array([[1, 4], [4, 1]]), np.array([6, 6]), 5, 5).slots()
    assert slots.row_count == 6
    assert all(set(slots.kinds[slots.rows == row]) == {0, 1} for row in range(6))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(9, 14),
)
def test_rows_are_not_many_more_than_any_packing_needs(lengths, room):
    """Against trying every way of putting up to five pairs into rows."""
    kinds, counts = np.unique(np.array(lengths), axis=0, return_counts=True)
    slots = pack(kinds, counts, room, room).slots()
    for row in range(slots.row_count):
        assert (kinds[slots.kinds[slots.rows == row]].sum(axis=0) <= room).all()
    assert np.bincount(slots.kinds, minlength=len(kinds)).tolist() == counts.tolist()
    best = min(
        len(set(places))
        for places in itertools.product(range(len(lengths)), repeat=len(lengths))
        if all(
            (np.array(lengths)[np.array(places) == row].sum(axis=0) <= room).all()
            for row in set(places)
        )
    )
    assert best <= slots.row_count <= best + 1


def test_pairs_of_a_row_are_others_in_the_next_epoch():
    batches = make_packed(pairs_of([(5, 5)] * 400))

    def rows(epoch):
        updates = batches.updates_per_epoch
        for update in range(epoch * updates, (epoch + 1) * updates):
            for row in batches.batch(update).source:
                yield frozenset(row[row >= 1000].tolist())

    # The last batch ends in rows of padding.
    first, second = set(rows(0)) - {frozenset()}, set(rows(1)) - {frozenset()}
    assert {len(row) for row in first} == {4}
    # Two pairs meet again by chance, four at once hardly ever.
    assert len(first & second) <= 1


def test_rows_of_a_batch_go_to_devices_whole():
    batches = make_packed(pairs_of(random_lengths(100)), accumulation_steps=2)
    whole = batches.batch(0)
    shared = batches.arrange(whole, 3)
    assert shared.target.shape[:2] == (3, 2)
    rows = [row.tolist() for row in shared.target.reshape(-1, 20)]
    assert [row for row in rows if any(row)] == whole.target.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_many_pairs_leave_little_padding(seed):
    """Mean target 7.5 of 20: even halves of rows that nothing fits would be 10%."""
    split = pairs_of(random_lengths(2000, seed))
    padding = make_packed(split, tokens_per_batch=320).padding()
    assert padding["target"] < 0.06 and padding["source"] < 0.15


def test_a_corpus_a_thousand_times_over_needs_so_many_rows():
    """The same lengths with greater counts; greedy filling may differ a little."""
    kinds, counts = np.unique(np.array(random_lengths(500)), axis=0, return_counts=True)
    once = pack(kinds, counts, 26, 26)
    often = pack(kinds, counts * 1000, 26, 26)
    assert once.row_count * 950 <= often.row_count <= once.row_count * 1050
    assert np.bincount(often.slots().kinds).tolist() == (counts * 1000).tolist()


def test_pair_longer_than_a_row_is_refused():
    with pytest.raises(ValueError, match="13 ids .* rows of packed_length = 12"):
        make_packed(pairs_of([(13, 5)]), packed_length=12)


@settings(max_examples=40)
@given(LENGTHS, st.integers(0, 99))
def test_epoch_is_drawn_as_by_sorting(lengths, seed):
    """The order of numpy's sorts: by lengths, then by chance; then by row."""
    source, target = np.array(lengths).T
    rows = PackedRows(
        source, target, tokens_per_batch=80, packed_length=20, accumulation_steps=1
    )
    random = np.random.default_rng(seed)
    kind = np.unique(source * 100 + target, return_inverse=True)[1]
    by_kind = np.lexsort((random.random(len(kind)), kind))
    pairs = np.empty(len(kind), np.int64)
    pairs[np.argsort(rows._slots.kinds, kind="stable")] = by_kind
    place = random.permutation(rows._slots.row_count)[rows._slots.rows]
    order = np.argsort(place, kind="stable")
    found = rows.epoch(np.random.default_rng(seed))
    assert [i for part in found for i in part.pairs] == pairs[order].tolist()
    size = rows.shapes[0].rows
    expected = [(int(n) // size, int(n) % size) for n in place[order]]
    assert [
        (i, int(row)) for i, part in enumerate(found) for row in part.rows
    ] == expected


@given(st.lists(st.integers(0, 5), max_size=300))
def test_equal_draws_keep_their_order(values):
    """On every machine: the fast sort's order of equal values is the machine's own."""
    expected = sorted(range(len(values)), key=lambda i: values[i])
    assert _ascending(np.array(values, float)).tolist() == expected


def test_plan_is_made_once_and_gives_the_same_batches(tmp_path, monkeypatch):
    lengths = random_lengths(300)
    source, target = np.array(lengths).T
    plan = stored_plan(source, target, 20, tmp_path)
    monkeypatch.setattr("transformer_ablation.data.row_plan.plan_rows", None)
    again = stored_plan(source[::-1], target[::-1], 20, tmp_path)
    split = pairs_of(lengths)
    for each in (plan, again):
        assert order(make_packed(split, plan=each), 1) == order(make_packed(split), 1)
    with pytest.raises(TypeError):  # another length of row is another plan
        stored_plan(source, target, 21, tmp_path)


def test_plan_of_other_pairs_is_refused():
    split = pairs_of(random_lengths(300))
    other = pairs_of(random_lengths(300, seed=1))
    lengths = other.source.lengths, other.target.lengths
    for plan in (plan_rows(*lengths, 20), plan_rows(*np.array([[5], [5]]), 20)):
        with pytest.raises(ValueError, match="made for other pairs"):
            make_packed(split, plan=plan)


def test_prepared_rows_are_the_plan_of_the_pairs_kept(base_config, tmp_path):
    changes = {
        "data.corpus": "grammar",
        "data.test_split": None,
        "data.vocabulary_size": 600,
        "data.max_train_length": 30,
        "data.length_buckets": 1,
        "data.packed_length": 40,
    }
    data = config.replace(base_config, changes).data
    prepared = prepare(data, tmp_path)
    assert 0 < prepared.filters["too_long"] < prepared.filters["kept"]
    lengths = prepared.train.source.lengths, prepared.train.target.lengths
    for found, expected in zip(prepared.plan, plan_rows(*lengths, 40), strict=True):
        assert np.array_equal(found, expected)
    without = {"data.length_buckets": 8, "data.packed_length": None}
    data = config.replace(base_config, changes | without).data
    assert prepare(data, tmp_path).plan is None


def test_padding_of_multi30k(base_config, multi30k_directory, tmp_path):
    """8,000 pieces, 4,096 positions in rows of 128: asked for is at most 8%."""
    changes = {
        "data.corpus": "multi30k",
        "data.directory": str(multi30k_directory),
        "data.test_split": None,
        "data.vocabulary_size": 8000,
        "data.max_train_length": 100,
    }
    data = config.replace(base_config, changes).data
    train = prepare(data, tmp_path).train
    batches = make_packed(
        train, tokens_per_batch=4096, packed_length=128, max_train_length=100
    )
    assert batches.padding()["target"] < 0.05
    assert batches.padding()["source"] < 0.08
    assert batches.shapes[0].rows == 32
