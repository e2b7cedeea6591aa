"""What is logged of an update: its own tokens and padding, counted by hand."""

import types

import numpy as np

from experiments.run_log import Log
from transformer_ablation.data.batches import Batch
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
    metrics = Metrics(loss=2.0, nll=1.0, tokens=11.0, gradient_norm=0.5)
    log = Log(1, 10, written, lambda values: None, meter)
    log.after(Report(3, metrics, rates, batch, 0.1), None)
    ((step, values),) = written
    assert step == 3
    assert values["train/source_tokens"] == 7
    assert values["train/target_tokens"] == 11
    assert values["train/padding_tokens"] == 28 - 18
    assert values["train/source_padding"] == 1 - 7 / 12
    assert values["train/target_padding"] == 1 - 11 / 16
