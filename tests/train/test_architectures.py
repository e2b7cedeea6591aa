"""Updates of every other architecture: they learn, on any devices, and can go on."""

import jax
import numpy as np
import pytest

from tests.model.numpy_models import VARIANTS
from tests.train.test_step import KEY, run_updates
from tests.train.tiny_training import (
    SETTINGS,
    VOCABULARY,
    WITH,
    WITHOUT,
    arrange,
    assert_close,
    make_batch,
    make_config,
    same_bits,
)
from transformer_ablation import config as configs
from transformer_ablation import parallel
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate.verification import compare_decoding
from transformer_ablation.model.architectures import new_model
from transformer_ablation.train import norms
from transformer_ablation.train import step as steps
from transformer_ablation.vocabulary import BOS, EOS, PAD

NAMES = ("lstm_attention_2", "dilated_3")
WITH = WITH._replace(attention_dropout=None, activation_dropout=None)
WITHOUT = WITHOUT._replace(attention_dropout=None, activation_dropout=None)


@pytest.fixture(scope="module", params=NAMES)
def built(request):
    """Config, model, update and initial state, as numpy."""
    fields = {f"model.{name}": value for name, value in VARIANTS[request.param].items()}
    settings = {k: v for k, v in SETTINGS.items() if k.startswith(("data", "optim"))}
    changes = {**settings, **configs.of_architecture(fields["model.architecture"])}
    config = make_config({**changes, "model.d_model": 12, **fields})
    model = new_model(config.model, VOCABULARY, pad_id=PAD, bos_id=BOS, eos_id=EOS)
    update = steps.make_update(model, config)
    return config, model, update, jax.device_get(steps.create_state(model, config))


@pytest.fixture(scope="module")
def split():
    """A few pairs for the search."""
    batch = make_batch(5)
    sides = [
        Ragged.of([row[row != PAD].tolist() for row in side])
        for side in (batch.source, batch.target)
    ]
    return TokenizedSplit(*sides)


@pytest.mark.parametrize("rates", [WITHOUT, WITH], ids=["plain", "dropout"])
def test_update_is_one_on_one_device_and_on_four(built, rates):
    """Also where rows are padding, and with every place of dropout."""
    *_, update, start = built
    alone, metrics = run_updates(update, start, rates, KEY, 1)
    found, found_metrics = run_updates(update, start, rates, KEY, 4)
    # The dots that "dilated_3" leaves unscaled make rounding larger; a mask that was
    # missed would differ by hundreds of times this.
    assert_close(found, alone, 3e-4)
    assert_close(found_metrics, metrics, 3e-4)
    moved = jax.tree.map(lambda a, b: abs(a - b).max(), found.params, start.params)
    assert min(jax.tree.leaves(moved)) > 0


def test_dropout_changes_the_update(built):
    *_, update, start = built
    plain, dropped = (
        run_updates(update, start, rates, KEY, 1, number=1)[1]
        for rates in (WITHOUT, WITH)
    )
    assert abs(plain.loss - dropped.loss) > 1e-4 * plain.loss


def test_thirty_updates_learn_a_batch_and_can_be_taken_in_two_parts(built):
    """Bit for bit, from a state that went through numpy. At first nothing is likelier
    than anything else.
    """
    *_, update, start = built
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "device_count", lambda: 1)
        batch, losses = arrange(make_batch(0), 1), []
        rates = WITH._replace(learning_rate=0.01, dropout=0.1)
        state = parallel.replicate(start)
        for number in range(30):
            state, metrics = update(state, batch, KEY, rates)
            losses.append(float(metrics.nll))
            if number == 14:
                half = jax.device_get(state)
        again = parallel.replicate(half)
        for _ in range(15):
            again, _ = update(again, batch, KEY, rates)
    assert abs(losses[0] - np.log(VOCABULARY)) < 0.6
    assert losses[-1] < 0.7 * losses[0]
    assert same_bits(jax.device_get(again), jax.device_get(state))


def test_norms_are_of_the_groups_of_a_transformer(built):
    *_, start = built
    groups = {norms.group_of(name) for name in start.params}
    assert {"embedding", "encoder", "decoder"} <= groups
    assert groups <= {"embedding", "encoder", "decoder", "positions"}


def test_search_finds_the_best_of_all_hypotheses(built, split):
    """And cached logits are those of teacher forcing."""
    config, model, _, start = built
    found = compare_decoding(model, start.params, config.decode, split)
    assert found.equal, found
    assert (found.sentences, found.missed) == (5, 0)
