"""configs/table2.py: the paper's numbers, its averaging, and equal budgets."""

import pytest

from configs import table2, table3
from transformer_ablation.config import ConfigError, from_mapping
from transformer_ablation.model.accounting import step_flops
from transformer_ablation.sweep import file
from transformer_ablation.sweep.rows import expand

# Table 2 of the paper: test BLEU and training FLOPs of the systems that rows stand
# for, English to German and English to French; None where its cell is blank.
PRINTED = {
    "base": (27.3, 3.3e18, 38.1, 3.3e18),
    "big": (28.4, 2.3e19, 41.8, 2.3e19),
    "recurrent_attention": (24.6, 2.3e19, 39.92, 1.4e20),
    "convolutional": (25.16, 9.6e18, 40.46, 1.5e20),
    "convolutional_dilated": (23.75, None, None, None),
}


def expanded(argument):
    base = from_mapping(table2.get_config(argument))
    return {item.row.name: item for item in expand(base, table2.get_rows(argument))}


@pytest.mark.parametrize("scale", table2.SCALES)
@pytest.mark.parametrize("budget", ["", ",flops"])
def test_every_row_loads_at_every_scale(scale, budget):
    found = expanded(scale + budget)
    assert set(PRINTED) <= set(found) and next(iter(found)) == "base"
    for item in found.values():
        assert item.config.data.test_split is not None


@pytest.mark.parametrize("place", [0, 1])
def test_papers_numbers_are_those_of_the_language(place):
    found = expanded(("wmt14", "wmt14_fr")[place])
    printed = {
        n: (i.paper.bleu_test, i.paper.training_flops)
        for n, i in found.items()
        if i.paper
    }
    wanted = {n: x[2 * place : 2 * place + 2] for n, x in PRINTED.items()}
    assert printed == {n: x for n, x in wanted.items() if x != (None, None)}
    assert all(i.paper is None or i.paper.bleu is None for i in found.values())


@pytest.mark.parametrize(
    ("languages", "bleu"),
    [(("en", "de"), 27.3), (("en", "fr"), 38.1), (("de", "en"), None)],
)
def test_papers_numbers_are_those_of_the_languages_trained(languages, bleu):
    """Whatever the scale is called: another direction has no number in the paper."""
    config = table2.get_config("multi30k")
    config.data.source_language, config.data.target_language = languages
    rows = expand(from_mapping(config), table2.get_rows("multi30k"))
    assert (rows[0].paper and rows[0].paper.bleu_test) == bleu
    assert all(row.paper is None for row in rows) == (bleu is None)


def test_averages_are_the_papers():
    """Section 6.1: 5 checkpoints written every 10 minutes, big's 20; 12 h are 72."""
    found = expanded("wmt14")
    base, big = found["base"].config, found["big"].config
    assert base.decode.average_checkpoints == base.train.keep_checkpoints == 5
    assert big.decode.average_checkpoints == big.train.keep_checkpoints == 20
    assert base.train.checkpoint_every_steps == 100_000 // 72
    # 3.5 days are 3.5 x 24 x 6 = 504 intervals: 300,000 / 504 = 595.2 updates each.
    assert big.train.checkpoint_every_steps == 595
    recurrent = found["recurrent"].config
    assert recurrent.decode.average_checkpoints == 5
    assert recurrent.train.checkpoint_every_steps == 100_000 // 72


@pytest.mark.parametrize("budget", ["", ",flops"])
def test_rows_follow_a_training_of_base_that_is_changed(budget):
    """Of 2,000 updates, with a checkpoint every 100, an interval is a twentieth; of
    big's, which takes more or fewer, 504 / 72 = 7 times as short, and 4 times as many
    are averaged."""
    config = table2.get_config("grammar" + budget)
    config.train.steps, config.train.checkpoint_every_steps = 2000, 100
    config.decode.average_checkpoints = 3
    for item in expand(from_mapping(config), table2.get_rows("grammar" + budget)):
        train, count = item.config.train, item.config.decode.average_checkpoints
        factor, shorter = (4, 7) if item.row.name == "big" else (1, 1)
        assert count == 3 * factor and train.keep_checkpoints == 5 * factor
        wanted = train.steps / 20 / shorter  # in updates, rounded to a whole one
        assert train.checkpoint_every_steps == pytest.approx(wanted, abs=0.5)


def test_interval_is_an_update_at_least():
    """Of 269 updates of big, 504 intervals are less than one each."""
    assert expanded("grammar,flops")["big"].config.train.checkpoint_every_steps == 1


def test_equal_flops_stretch_the_schedule():
    """The warm-up is the same share of the updates, and the rate at its peak, d_model
    ** -0.5 * warm-up ** -0.5 times the scale, that of the row with equal updates."""
    same, flops = expanded("grammar"), expanded("grammar,flops")
    for name, item in flops.items():
        found, other = item.config, same[name].config
        steps = found.train.steps / same["base"].config.train.steps
        assert found.optimizer.warmup_steps == pytest.approx(450 * steps, abs=0.5)

        def peak(config):
            optimizer = config.optimizer
            return optimizer.learning_rate_scale * optimizer.warmup_steps**-0.5

        assert peak(found) == pytest.approx(peak(other))


def test_budgets():
    same = {n: i.config.train.steps for n, i in expanded("grammar").items()}
    assert {n for n, steps in same.items() if steps != same["base"]} == {"big"}
    assert same["big"] == 3 * same["base"]
    found = expanded("grammar,flops")
    base = found["base"].config
    whole = base.train.steps * step_flops(base)
    for item in found.values():
        one = step_flops(item.config)
        assert abs(item.config.train.steps * one - whole) <= one / 2
        assert item.row.name == "base" or item.row.budget_reason


def test_rates_are_multiples_of_the_scales_own():
    """Where they were compared, each row's own; elsewhere all have the paper's."""
    own = table3.get_config("grammar").optimizer.learning_rate_scale
    found = {
        name: item.config.optimizer.learning_rate_scale / own
        for name, item in expanded("grammar").items()
    }
    assert found == pytest.approx({**table2.RATES["grammar"], "big": 1.0})
    rates = {i.config.optimizer.learning_rate_scale for i in expanded("wmt14").values()}
    assert rates == {1.0}


def test_rows_are_the_architectures_they_say():
    found = {n: i.config.model for n, i in expanded("grammar").items()}
    kinds = {n: m.architecture for n, m in found.items()}
    assert kinds["base"] == kinds["big"] == "transformer"
    assert kinds["recurrent"] == "recurrent" and found["recurrent"].reverse_source
    assert found["recurrent_attention"].recurrent_attention == "additive"
    assert found["recurrent_gru"].recurrent_cell == "gru"
    assert kinds["convolutional"] == "convolutional"
    assert found["convolutional_dilated"].kernel_dilation == "doubling"
    assert len({(m.num_layers, m.d_model) for m in found.values()} - {(3, 128)}) == 1


@pytest.mark.parametrize("argument", ["grammar,x", "gramar", "grammar,flops,2", ""])
def test_argument_that_is_none_is_refused(argument):
    with pytest.raises(ConfigError):
        table2.get_config(argument)


def test_file_passes_its_argument_to_the_rows(repository, monkeypatch):
    monkeypatch.chdir(repository)
    load = lambda argument: file.load(argument, lambda config: [])  # noqa: E731
    french = load("configs/table2.py:wmt14_fr,flops")
    assert french.base.data.target_language == "fr"
    assert french.rows[1].budget_reason == "as many FLOPs as base"
    assert load("configs/table2.py").rows[1].budget_reason != "as many FLOPs as base"
    assert len(load("configs/table3.py:grammar").rows) == len(table3.get_rows())
