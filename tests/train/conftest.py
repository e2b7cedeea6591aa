"""One small model whose update is compiled once a shape, for all tests here."""

import jax
import pytest

from tests.train.tiny_training import SETTINGS, VOCABULARY, make_config
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.train import step as steps
from transformer_ablation.vocabulary import BOS, EOS, PAD


@pytest.fixture(scope="session")
def config():
    return make_config(SETTINGS)


@pytest.fixture(scope="session")
def model(config):
    return Transformer(config.model, VOCABULARY, pad_id=PAD, bos_id=BOS, eos_id=EOS)


@pytest.fixture(scope="session")
def start(model, config):
    """The initial state as numpy; ``parallel.replicate`` gives devices their own."""
    return jax.device_get(steps.create_state(model, config))


@pytest.fixture(scope="session")
def update(model, config):
    return steps.make_update(model, config)


@pytest.fixture(scope="session")
def compilations():
    """The names of JAX's events of tracing and compiling, as they come."""
    events = []

    def listen(event, duration, **_):
        if event.startswith("/jax/core/compile/"):
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return events
