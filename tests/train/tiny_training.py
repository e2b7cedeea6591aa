"""A small model, batches of uneven rows, and comparisons of states."""

import jax
import numpy as np

from configs import base
from transformer_ablation import config as configs
from transformer_ablation.data.batches import Batch, train_batches
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.train.step import Rates
from transformer_ablation.vocabulary import EOS, PAD

VOCABULARY = 23
# Real tokens a row, of 6 source and 7 target positions; four devices get targets of
# 9, 6, 4 and 0 of them.
SOURCE_LENGTHS = (3, 6, 1, 4, 2)
TARGET_LENGTHS = (7, 2, 5, 1, 4)
SETTINGS = {
    "model.num_layers": 2,
    "model.d_model": 12,
    "model.d_ff": 20,
    "model.num_heads": 2,
    "model.d_k": 7,
    "model.d_v": 5,
    "regularization.attention_dropout_rate": 0.2,
    "regularization.activation_dropout_rate": 0.25,
    # With 1e-9 the first direction is the sign of the gradient, so where the
    # gradient all but vanishes the sign of a rounding error would be compared.
    "optimizer.epsilon": 1e-3,
    "optimizer.warmup_steps": 4,
    "data.max_train_length": 6,
    "data.length_buckets": 1,
    "data.tokens_per_batch": 5 * 7,
    "train.checkpoint_every_steps": 1,
}
WITHOUT = Rates(0.05, 0.1, 0.0, 0.0, 0.0)
WITH = Rates(0.05, 0.1, 0.3, 0.2, 0.25)


def make_config(settings=None):
    """configs/base.py with some fields changed."""
    return configs.replace(configs.from_mapping(base.get_config()), settings or {})


def sequences(random, lengths):
    """Random ids that end in EOS."""
    return [[*random.integers(4, VOCABULARY, n - 1), EOS] for n in lengths]


def make_batch(seed=0, targets=TARGET_LENGTHS):
    """Rows of different lengths, not yet spread over devices."""
    random = np.random.default_rng(seed)
    rows = np.arange(len(targets))
    source = Ragged.of(sequences(random, SOURCE_LENGTHS))
    target = Ragged.of(sequences(random, targets))
    return Batch(
        source.padded(rows, len(rows), 6),
        target.padded(rows, len(rows), 7),
        sum(SOURCE_LENGTHS),
        sum(targets),
    )


def joined_rows(first, second):
    """One packed batch: row i of the one, then row i of the other."""

    def join(a, b):
        rows = [[*a[a != PAD], *b[b != PAD]] for a, b in zip(a, b, strict=True)]
        return Ragged.of(rows).padded(np.arange(len(rows)), len(rows), 2 * a.shape[1])

    return _two(join, first, second)


def stacked_rows(first, second):
    """The rows of the one, then those of the other."""
    return _two(lambda a, b: np.concatenate([a, b]), first, second)


def _two(put, first, second):
    return Batch(
        put(first.source, second.source),
        put(first.target, second.target),
        first.source_tokens + second.source_tokens,
        first.target_tokens + second.target_tokens,
    )


def arrange(batch, devices, accumulation=1):
    """The batch as ``TrainBatches`` spreads it."""
    one = TokenizedSplit(Ragged.of([[EOS]]), Ragged.of([[EOS]]))
    config = make_config({"optimizer.accumulation_steps": accumulation})
    return train_batches(config, one).arrange(batch, devices)


def real(ids):
    """Which ids are not padding."""
    return ids != PAD


def leaves(tree):
    """``{path: array}``."""
    flat = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in flat}


def assert_close(found, expected, tolerance=1e-5):
    """Every leaf to a tolerance of its own size."""
    found, expected = leaves(found), leaves(expected)
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_allclose(
            found[path],
            value,
            rtol=tolerance,
            atol=tolerance * np.abs(value).max(),
            err_msg=path,
        )


def same_bits(a, b):
    """Whether two trees hold the same numbers in the same places."""
    a, b = leaves(a), leaves(b)
    return a.keys() == b.keys() and all(
        a[path].dtype == b[path].dtype and np.array_equal(a[path], b[path])
        for path in a
    )
