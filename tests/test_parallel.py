"""What is sharded, what is replicated, and what the host gets back."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_ablation import parallel

DEVICES = 4  # tests/conftest.py


def test_tests_run_on_four_devices():
    assert parallel.device_count() == DEVICES
    assert parallel.device_description() == {
        "kind": jax.devices()[0].device_kind,
        "platform": "cpu",
        "count": DEVICES,
    }


def test_replicated_tree_is_whole_on_every_device():
    tree = {"w": np.arange(6.0, dtype=np.float32).reshape(2, 3), "n": np.int32(5)}
    found = parallel.replicate(tree)
    for name, value in tree.items():
        assert found[name].dtype == value.dtype
        shards = found[name].addressable_shards
        assert {shard.device for shard in shards} == set(jax.local_devices())
        for shard in shards:
            np.testing.assert_array_equal(np.asarray(shard.data), value)


def test_update_sums_over_devices_and_returns_one_state():
    def update(state, batch, factor):
        local = {"sum": batch["x"].sum(), "first": batch["x"][0]}
        total = parallel.sum_over_devices(local)
        return state + factor * total["sum"], total["first"]

    batch = {"x": np.array([[1, 2, 3], [10, 20, 30], [0, 0, 0], [7, 0, 0]], np.float32)}
    state = parallel.replicate(np.float32(0.5))
    state, first = parallel.map_update(update)(state, batch, np.float32(2))
    assert float(state) == 0.5 + 2 * (6 + 60 + 0 + 7)
    assert float(first) == 1 + 10 + 0 + 7


def test_device_index_is_the_row_of_the_shard():
    def update(state, batch):
        here = parallel.device_index()
        return state, parallel.sum_over_devices(here * batch)

    _, found = parallel.map_update(update)(
        parallel.replicate(np.float32(0)), np.array([1, 10, 100, 1000], np.int32)
    )
    assert int(found) == 0 * 1 + 1 * 10 + 2 * 100 + 3 * 1000


@pytest.mark.parametrize("count", [1, 3, 8])
def test_leading_axis_that_is_not_the_device_count_is_refused(count):
    call = parallel.map_update(lambda state, batch: (state, batch["x"]))
    batch = {"x": np.zeros((count, 2, 5))}
    with pytest.raises(
        ValueError,
        match=f"the leading axis of a batch is {count}, but there are 4 devices",
    ):
        call(np.float32(0), batch)


def test_every_leaf_of_a_batch_is_checked():
    call = parallel.map_update(lambda state, batch: (state, batch[0]))
    with pytest.raises(ValueError, match="leading axis of a batch is 3"):
        call(np.float32(0), (np.zeros((4, 2)), np.zeros((3, 2))))


def test_mapped_batch_returns_its_rows_in_order():
    def function(params, batch):
        x_BL, scale_B = batch
        return {"sum": (x_BL * scale_B[:, None]).sum(axis=1) * params, "row": x_BL}

    x_RL = np.arange(8 * 3, dtype=np.float32).reshape(8, 3)
    scale_R = np.array([1, -1, 2, -2, 3, -3, 4, -4], np.float32)
    found = parallel.map_batch(function)(np.float32(10), (x_RL, scale_R))
    assert all(type(x) is np.ndarray for x in found.values())
    np.testing.assert_array_equal(found["row"], x_RL)
    # Small whole numbers: exact in float32.
    np.testing.assert_array_equal(found["sum"], 10 * x_RL.sum(axis=1) * scale_R)


def test_batches_that_have_begun_together_have_their_own_results():
    begin = parallel.begin_batch(lambda params, x_B: x_B * params)
    begun = [begin(np.float32(n), np.arange(8, dtype=np.float32)) for n in (2, 3)]
    assert [found().tolist() for found in reversed(begun)] == [
        [0, 3, 6, 9, 12, 15, 18, 21],
        [0, 2, 4, 6, 8, 10, 12, 14],
    ]


def test_mapped_batch_runs_rows_on_all_devices():
    def function(params, x_B1):
        return x_B1 + parallel.device_index()

    found = parallel.map_batch(function)(0, np.zeros((8, 1), np.int32))
    assert found[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("rows", [1, 3, 6])
def test_mapped_batch_of_rows_that_do_not_divide_is_refused(rows):
    with pytest.raises(ValueError):
        parallel.map_batch(lambda params, x: x)(0, np.zeros((rows, 5)))


def test_update_compiles_once_for_replicated_and_returned_states():
    traced = []

    def update(state, batch):
        traced.append(batch.shape)
        return jax.tree.map(lambda x: x + batch.sum(), state), jnp.max(batch)

    call = parallel.map_update(update)
    state = parallel.replicate({"w": np.zeros((2, 3), np.float32), "n": np.float32(1)})
    clock = parallel.CompileClock()
    assert clock.seconds == 0
    state, _ = call(state, np.ones((DEVICES, 2), np.float32))
    once = clock.seconds
    assert once > 0 and len(traced) == 1
    state, _ = call(state, np.ones((DEVICES, 2), np.float32))
    restored = parallel.replicate(jax.device_get(state))
    before = clock.seconds
    call(restored, np.ones((DEVICES, 2), np.float32))
    assert clock.seconds == before and len(traced) == 1


def test_users_compilation_cache_is_left_alone(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(jax.config, "update", lambda *given: calls.append(given))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    parallel.use_compilation_cache(tmp_path / "ours")
    assert calls == []
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    parallel.use_compilation_cache(tmp_path / "ours")
    assert ("jax_compilation_cache_dir", str(tmp_path / "ours")) in calls


def test_cache_without_a_place_is_told_before_anything_compiles(monkeypatch, tmp_path):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setattr(jax.config, "update", lambda *given: None)
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "compiled"
    said = f"{folder}: not a directory; programs compiled now are compiled again"
    with pytest.warns(parallel.CacheWarning, match=re.escape(said)):
        parallel.use_compilation_cache(folder)


def test_compile_clock_counts_what_is_inside_an_event_once():
    clock = parallel.CompileClock()
    before = clock.seconds
    clock.add(end=10.0, seconds=1.0)  # 9 to 10
    clock.add(end=12.0, seconds=1.0)  # 11 to 12
    clock.add(end=13.0, seconds=5.0)  # 8 to 13, around both
    clock.add(end=20.0, seconds=2.0)  # 18 to 20, alone
    assert clock.seconds - before == pytest.approx(5 + 2)


def test_at_most_spreads_a_batch_over_fewer_devices():
    count = parallel.device_count()
    with parallel.at_most(1):
        assert parallel.device_count() == 1
        with parallel.at_most(count + 5):
            assert parallel.device_count() == 1
    assert parallel.device_count() == count
