"""The whole update against Adam written out in numpy, on a model of two tables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train.tiny_training import (
    TARGET_LENGTHS,
    VOCABULARY,
    arrange,
    assert_close,
    leaves,
    make_batch,
    make_config,
    real,
)
from transformer_ablation.train import step as steps
from transformer_ablation.vocabulary import BOS, PAD

KEY = steps.purpose_key(0, steps.DROPOUT)


class Tables:
    """Logits are ``bias_V + table_VV[first source id]``: gradients in closed form."""

    pad_id, bos_id = PAD, BOS

    def init(self, key, source, target):
        # From zero, float32 shows even an update of 1e-7 to seven digits.
        return {"params": jax.tree.map(jnp.float32, zeros())}

    def apply(self, variables, source, target, noise, packed, method):
        params = variables["params"]
        rows_BV = params["table"][source[:, 0]] + params["bias"][None]
        logits_BTV = jnp.broadcast_to(rows_BV[:, None], (*target.shape, VOCABULARY))
        return logits_BTV, jnp.eye(VOCABULARY)


def zeros():
    return {
        "bias": np.zeros(VOCABULARY),
        "table": np.zeros((VOCABULARY, VOCABULARY)),
    }


def gradient_of_mean(params, batch, smoothing):
    """Gradient of the mean smoothed loss over the batch's real target tokens."""
    total = zeros()
    for source, target in zip(batch.source, batch.target, strict=True):
        exponentials_V = np.exp(params["bias"] + params["table"][source[0]])
        for token in target[real(target)]:
            wanted_V = np.full(VOCABULARY, smoothing / VOCABULARY)
            wanted_V[token] += 1 - smoothing
            gradient_V = exponentials_V / exponentials_V.sum() - wanted_V
            total["bias"] += gradient_V
            total["table"][source[0]] += gradient_V
    return {name: leaf / real(batch.target).sum() for name, leaf in total.items()}


def norm(tree):
    """Of all leaves as one vector."""
    return np.sqrt(sum((leaf**2).sum() for leaf in tree.values()))


def adam_step(t, theta, m, v, gradient, rate, epsilon):
    """Algorithm 1 of Kingma and Ba with the betas of section 5.3, in place."""
    for name, g in gradient.items():
        m[name] = 0.9 * m[name] + 0.1 * g
        v[name] = 0.98 * v[name] + 0.02 * g**2
        m_hat, v_hat = m[name] / (1 - 0.9**t), v[name] / (1 - 0.98**t)
        theta[name] = theta[name] - rate * m_hat / (np.sqrt(v_hat) + epsilon)


SCALE = "optimizer.learning_rate_scale"
CASES = {
    "paper": {},
    # Large beside the gradients, so that its place outside the root is seen.
    "epsilon": {"optimizer.epsilon": 0.02, SCALE: 1e6},
    "clipped": {"optimizer.clip_norm": 0.4, SCALE: 1e6},
    "accumulated": {"optimizer.accumulation_steps": 3, SCALE: 1e6},
}


@pytest.mark.parametrize("case", CASES)
def test_three_updates_are_adam_with_the_papers_rates(case):
    config = make_config(CASES[case])
    settings = config.optimizer
    model = Tables()
    state, update = steps.create_state(model, config), steps.make_update(model, config)
    theta, m, v, norms = zeros(), zeros(), zeros(), []
    for t in (1, 2, 3):
        batch = make_batch(t, TARGET_LENGTHS[t:] + (t,) * t)
        gradient = gradient_of_mean(theta, batch, 0.1)
        norms.append(norm(gradient))
        if settings.clip_norm:
            clip = min(1, settings.clip_norm / norms[-1])
            gradient = {name: clip * g for name, g in gradient.items()}
        # Section 5.3, eq. 3: the second of its two branches.
        rate = settings.learning_rate_scale * 512**-0.5 * t * 4000**-1.5
        adam_step(t, theta, m, v, gradient, rate, settings.epsilon)

        arranged = arrange(batch, 4, settings.accumulation_steps)
        state, metrics = update(state, arranged, KEY, steps.rates_at(config, t))
        assert_close(jax.device_get(state.params), theta)
        assert int(state.step) == t
        # Before clipping: what one wants to see in a curve.
        np.testing.assert_allclose(metrics.gradient_norm, norms[-1], rtol=1e-5)
    # Nothing that moved moved by less than can be seen; some norms are clipped.
    assert np.abs(theta["bias"]).min() > 0
    assert not settings.clip_norm or min(norms) < settings.clip_norm < max(norms)


def test_batch_without_a_real_token_moves_nothing():
    config, model = make_config(), Tables()
    batch = make_batch()
    batch = arrange(batch._replace(target=np.zeros_like(batch.target)), 4)
    state = steps.create_state(model, config)
    update = steps.make_update(model, config)
    state, metrics = update(state, batch, KEY, steps.rates_at(config, 1))
    assert [float(x) for x in metrics[:-1]] == [0.0, 0.0, 0.0, 0.0]
    gradients = [norms[1] for norms in jax.device_get(metrics.norms).values()]
    assert gradients and not any(gradients)
    assert not any(x.any() for x in leaves(jax.device_get(state.params)).values())
