"""The clocks of a run over several sessions."""

import types

import pytest

from experiments import run_meter
from transformer_ablation import parallel


def test_each_session_counts_with_its_own_devices(monkeypatch):
    """10 s of 4 devices with 3 s of compiling among them, then 10 s and 1 s of 2."""
    saved = {}
    monkeypatch.setattr(
        run_meter.record,
        "update_record",
        lambda directory, **found: saved.update(found),
    )
    run, notes = types.SimpleNamespace(directory=None), {}
    for devices, compiling in ((4, 3.0), (2, 1.0)):
        with parallel.at_most(devices):
            clock = types.SimpleNamespace(seconds=0.0)
            meter = run_meter.Meter(run, notes, clock)
            clock.seconds += compiling
            meter.add_update(10.0, compiling, 5, 7)
            notes = meter.notes
            meter.save(step=1)
    assert saved["seconds"] == {"compile": 4.0, "train": 16.0, "evaluate": 0.0}
    assert saved["device"]["seconds"] == pytest.approx(10 * 4 + 10 * 2)
    assert saved["device"]["count"] == 2


def test_compiling_of_the_next_update_is_not_taken_off_this_one():
    """Where dispatch waits, update 2 has compiled before update 1 is reported: all 2 s
    of that are its own, and 1 s of update 2's 4 s."""
    clock = types.SimpleNamespace(seconds=3.0)  # before 1 is reported
    meter = run_meter.Meter(None, {}, types.SimpleNamespace(seconds=0.0))
    meter._clock = clock
    meter.add_update(2.0, 0.0, 5, 7)
    assert meter.train_seconds == 2.0
    meter.add_update(4.0, 3.0, 5, 7)
    assert meter.train_seconds == 3.0 and meter._seconds["compile"] == 3.0
