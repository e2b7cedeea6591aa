"""What is logged of an update: its own tokens and padding, counted by hand."""

import math
import threading
import types

import numpy as np

from experiments import run_hooks
from experiments.run_log import Log, lack
from transformer_ablation.data.batches import Batch
from transformer_ablation.evaluate.perplexity import Perplexity
from transformer_ablation.train.loop import Report
from transformer_ablation.train.step import Metrics
from transformer_ablation.vocabulary import PAD


class Written(list):
    """A metric writer that keeps what it is given."""

    def write(self, step, values, seconds):
        self.append((step, values))


def test_tokens_and_padding_of_an_update_are_logged():
    """2 devices, 1 step, 2 rows: of 12 source positions 7 are real, of 16 target 11."""
    source = np.array([[[[5, 6, 3], [5, 3, PAD]]], [[[7, 3, PAD], [PAD] * 3]]])
    target = np.full((2, 1, 2, 4), PAD)
    target[0, 0] = 9
    target[1, 0, 0, :3] = 9
    batch = Batch(source, target, 7, 11)
    assert (source != PAD).sum() == 7 and (target != PAD).sum() == 11
    meter = types.SimpleNamespace(train_seconds=0.0, add_update=lambda *_: None)
    written, rates = Written(), types.SimpleNamespace(learning_rate=0.1)
    norms = {"encoder": np.array([3.0, 0.6, 0.3]), "decoder": np.array([4.0, 0.8, 1])}
    metrics = Metrics(loss=2.0, nll=1.0, tokens=11.0, gradient_norm=1.0, norms=norms)
    log = Log(2, 10, written, lambda values: None, meter)
    log.after(Report(3, metrics, rates, batch, 0.1, 0.0, waited=0.25), None)
    log.after(Report(4, metrics, rates, batch, 0.1, 0.0, waited=0.5), None)
    ((step, values),) = written
    assert step == 4
    assert values["train/input_wait_seconds"] == 0.375  # the mean of both updates
    assert values["parameter_norm/all"] == 5.0
    assert math.isclose(values["gradient_norm/all"], 1.0)
    ratios = [values[f"update_ratio/{name}"] for name in ("encoder", "decoder", "all")]
    assert np.allclose(ratios, [0.1, 0.25, math.sqrt(0.09 + 1) / 5], rtol=1e-12)
    assert values["train/source_tokens"] == 7
    assert values["train/target_tokens"] == 11
    assert values["train/padding_tokens"] == 28 - 18
    assert values["train/source_padding"] == 1 - 7 / 12
    assert values["train/target_padding"] == 1 - 11 / 16


def test_update_that_was_compiled_tells_no_speed():
    """What is left of its time, once compiling is taken off, is hardly its own."""
    batch = Batch(np.full((1, 1, 2, 3), 9), np.full((1, 1, 2, 4), 9), 6, 8)
    meter = types.SimpleNamespace(train_seconds=0.0)

    def add_update(seconds, compiled, *tokens):
        meter.train_seconds += seconds - compiled

    meter.add_update = add_update

    rates = types.SimpleNamespace(learning_rate=0.1)
    norms = {"encoder": np.array([3.0, 0.6, 0.3])}
    metrics = Metrics(loss=2.0, nll=1.0, tokens=8.0, gradient_norm=1.0, norms=norms)
    written = Written()
    log = Log(2, 10, written, lambda values: None, meter)
    for step, (compiling, seconds) in enumerate([(9.0, 9.001), (0, 4), (0, 2)], 1):
        report = Report(step, metrics, rates, batch, seconds, compiling, waited=0.0)
        log.after(report, None)
    log.after(Report(4, metrics, rates, batch, 2.0, 0.0, waited=0.0), None)
    rates = {step: v.get("train/tokens_per_second") for step, v in written}
    assert rates == {1: None, 2: 8 / 4, 4: (8 + 8) / (2 + 2)}


def validating(found, config):
    """What is written by the validation hook at update 3, given its result."""
    written, told = Written(), []
    written.flush = lambda: None
    meter = types.SimpleNamespace(
        train_seconds=0.0, add_evaluation=lambda seconds: told.append("timed")
    )
    looked = lambda step, state: told.append(f"looked {step}")  # noqa: E731
    given = config, lambda state: found, None, written, told.append, meter, looked
    run_hooks.hooks(*given)[1].act(3, None)
    look = [] if found is None else ["looked 3"]
    ends = ["timed", {"phase": "training"}]
    assert told == [{"phase": "validation"}, *look, *ends]
    return list(written)


def test_validation_that_is_given_up_writes_nothing(tiny_config):
    assert validating(None, tiny_config) == []
    found = Perplexity(value=7.0, nll=6.0, target_tokens=3, sentences=2)
    expected = {"validation/nll": 2.0, "validation/perplexity": 7.0}
    assert validating(found, tiny_config) == [(3, expected)]


def test_validation_is_given_up_once_it_is_told_to_stop(monkeypatch, tiny_config):
    stop, scored = threading.Event(), []

    def perplexity(scorer, params, split, rows, before):
        for batch in range(3):
            before()
            scored.append(batch)
            if batch == 1:
                stop.set()

    monkeypatch.setattr(run_hooks, "perplexity", perplexity)
    prepared = types.SimpleNamespace(validation=None)
    state = types.SimpleNamespace(params=None)
    given = tiny_config, prepared, None, state, stop
    assert run_hooks.validated(*given) is None and scored == [0, 1]


def test_metrics_that_end_before_the_checkpoint_are_told():
    """Logged every 10 updates: after a kill up to 10 are missing, and no more."""
    assert lack(last=0, start=0, every=10) is None
    assert lack(last=40, start=50, every=10) is None
    assert lack(last=50, start=50, every=10) is None
    told = lack(last=400, start=1500, every=10)
    assert "ends at update 400, before checkpoint 1,500" in told
