"""Norms by group: each against numpy, on the parameters before and after an update."""

import jax
import numpy as np
import pytest

from tests.train.tiny_training import VOCABULARY, WITH, arrange, make_batch, make_config
from transformer_ablation import parallel
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.train import norms
from transformer_ablation.train import step as steps
from transformer_ablation.vocabulary import BOS, EOS, PAD

KEY = jax.random.key(5)


def length(trees):
    """The Euclidean norm of all leaves together, in float64."""
    leaves = [np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(trees)]
    return np.linalg.norm(np.concatenate(leaves))


def test_norms_of_an_update_are_those_of_what_changed(update, start):
    batch = arrange(make_batch(), parallel.device_count())
    state, metrics = update(parallel.replicate(start), batch, KEY, WITH)
    found = norms.read(metrics.norms)
    assert set(found) == {"embedding", "encoder", "decoder", "all"}
    after = jax.device_get(state.params)
    change = jax.tree.map(lambda new, old: new - old, after, start.params)
    for group, (parameter, gradient, moved) in found.items():
        names = [n for n in start.params if group in n or group == "all"]
        before = length([start.params[n] for n in names])
        assert np.isclose(parameter, before, rtol=1e-6)
        # The change is a difference of float32 numbers a thousand times larger.
        by = length([change[n] for n in names])
        assert np.isclose(moved, by, rtol=1e-4)
        assert 0 < gradient <= 1.000001 * found["all"].gradient
    assert np.isclose(found["all"].gradient, metrics.gradient_norm, rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model.tied_embeddings": "none"}, {"embedding", "encoder", "decoder"}),
        ({"model.norm": "pre"}, {"embedding", "encoder", "decoder"}),
        (
            {"model.positions": "learned"},
            {"embedding", "positions", "encoder", "decoder"},
        ),
    ],
)
def test_every_parameter_is_of_one_of_four_groups(changes, expected):
    config = make_config(changes)
    model = Transformer(config.model, VOCABULARY, pad_id=PAD, bos_id=BOS, eos_id=EOS)
    params = steps.state_shapes(model, config).params
    assert {norms.group_of(name) for name in params} == expected
    assert "encoder" not in {norms.group_of(n) for n in params if "decoder" in n}
