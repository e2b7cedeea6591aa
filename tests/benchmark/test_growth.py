"""Growth: slopes by hand, sizes around a config, and what cannot be asked for."""

import importlib.util

import numpy as np
import pytest

from experiments import command, figure_file, growth_figure, growth_text
from experiments import growth as cli
from transformer_ablation import parallel
from transformer_ablation.benchmark import growth
from transformer_ablation.config import of_architecture, replace
from transformer_ablation.vocabulary import EOS, PAD


def test_powers_are_slopes_of_logarithms():
    """x^2, then eight times as much for twice the size: (2, 2, 3), least squares."""
    found = growth.growth([1, 2, 4, 8], [1, 4, 16, 128])
    # log2: x = 0..3 about 1.5, y = 0, 2, 4, 7: (1.5*0 ... ) = 11.5 / 5.
    assert found.fitted == pytest.approx(11.5 / 5) and found.last == pytest.approx(3)
    with pytest.raises(ValueError, match="1 points have no slope"):
        growth.growth([1], [1])


def test_only_the_sizes_of_the_axis_move(tiny_config):
    for name, axis in growth.AXES.items():
        found = growth.configs(tiny_config, axis)
        assert len(found) == len(axis.factors), name
        for factor, (size, config) in zip(axis.factors, found, strict=True):
            row = replace(
                tiny_config, {"data.packed_length": 41, "data.length_buckets": 1}
            )
            base = growth._get(row, axis.fields[0])
            assert size == (factor if axis.absolute else factor * base)
            changes = {p: growth._get(config, p) for p in axis.fields}
            assert changes.get("model.decoder_layers") is None
            assert config == replace(row, changes)
    assert tuple(growth.AXES) == cli.NAMES


def test_depths_grow_together(tiny_config):
    base = replace(tiny_config, {"model.num_layers": 2, "model.decoder_layers": 1})
    found = growth.configs(base, growth.AXES["N"])
    depths = [(c.model.num_layers, c.model.decoder_layers) for _, c in found]
    assert depths == [(2, 1), (4, 2), (8, 4)] and [n for n, _ in found] == [2, 4, 8]


def test_search_with_bands_is_one_over_the_whole_past(tiny_config):
    """Its steps have own products."""
    window = {"model.attention_window": 4}
    banded = {**window, "model.attention_implementation": "banded"}
    own, other = (replace(tiny_config, x) for x in (window, banded))
    assert growth.search_flops(own, 640, 40) == growth.search_flops(other, 640, 40)


def test_sizes_that_an_architecture_does_not_read_stay(tiny_config):
    cells = replace(tiny_config, of_architecture("recurrent"))
    widest = growth.configs(cells, growth.AXES["d_model"])[-1][1]
    assert widest == replace(
        cells,
        {
            "model.d_model": 8 * 12,
            "data.packed_length": 41,
            "data.length_buckets": 1,
        },
    )


def test_batch_is_full_of_pieces_and_ends():
    from configs import base
    from transformer_ablation.config import from_mapping

    config = replace(
        from_mapping(base.get_config()),
        {"data.packed_length": 256, "data.length_buckets": 1},
    )
    found = growth.batch(config, 2)
    assert found.target.shape == (2, 1, 48, 256)  # 25,000 / 512
    of_all = growth.batch(config, parallel.device_count())
    assert growth.update_call(config).tokens == of_all.target_tokens
    assert growth.search_call(config).tokens == 16 * 256
    assert found.target_tokens == 2 * 48 * 256 and not (found.source == PAD).any()
    assert (found.source[..., -1] == EOS).all() and found.source.max() < 37_000
    assert not (found.source[..., :-1] == EOS).any()


def test_operations_of_a_search_are_linear_in_the_beam(tiny_config):
    """But for the encoder, which runs once a sentence."""
    one, two, four = (
        growth.search_flops(replace(tiny_config, {"decode.beam_size": n}), 640, 40)
        for n in (1, 2, 4)
    )
    assert four - two == pytest.approx(2 * (two - one)) and one > two - one


def test_what_is_to_go_is_compiling_and_calls():
    """A call of 2 s and 50 operations was one of 4, of 20 s: 12 were compiling.

    One of 100 operations is 12 + 4 * 4, one of 200 is 12 + 4 * 8.
    """
    point = growth.Point(size=1, tokens=10, seconds=0.2, flops=5.0)
    assert growth.to_go([], [], [50.0], 1.0) is None
    assert growth.to_go([point], [20.0], [100.0, 200.0], 1.0) == pytest.approx(72)
    # Rounds of 30 s: 12 + 4 + 34.
    assert growth.to_go([point], [44.0 + 2.0], [100.0], 30.0) == pytest.approx(12 + 38)


def test_each_size_is_heard_of_with_what_is_to_go(tiny_config, monkeypatch):
    """Calls of a second an operation of base's, each after 5 s of compiling."""
    base_flops = growth.update_call(
        growth.configs(tiny_config, growth.AXES["N"])[0][1]
    ).flops
    now = [0.0]

    def update(model, config, size, seconds):
        call = growth.update_call(config)
        spent = call.flops / base_flops
        now[0] += 5 + 4 * spent
        return growth.Point(
            size, call.tokens, spent / call.tokens, call.flops / call.tokens
        )

    monkeypatch.setattr(growth, "measure_update", update)
    heard, axis = [], growth.AXES["N"]
    growth.measure(
        lambda *_: None,
        tiny_config,
        axis,
        0.1,
        lambda size, left: heard.append((size, left)),
        lambda: now[0],
    )
    one, two, three = (
        growth.update_call(config).flops / base_flops
        for _, config in growth.configs(tiny_config, axis)
    )
    layers = tiny_config.model.num_layers
    assert one == 1 and [size for size, _ in heard] == [layers * f for f in (1, 2, 4)]
    assert heard[0][1] is None
    assert heard[1][1] == pytest.approx(5 + 4 * two + 5 + 4 * three)
    assert heard[2][1] == pytest.approx(5 + 4 * three)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--sizes=depth", "--sizes: unknown size 'depth'"),
        ("--seconds=0", "--seconds=0.0: must be a number of seconds above 0, at most"),
        ("--json=", "--json=: is no file; name a file, or leave --json away"),
        ("--figure=growth.gif", "--figure=growth.gif: must be a file that ends in"),
    ],
)
def test_request_that_cannot_be_measured_is_refused(
    flag, message, repository, monkeypatch, capsys
):
    monkeypatch.chdir(repository)
    assert command.run(cli.COMMAND, [flag]) == 2
    assert message in capsys.readouterr().err


def test_text_and_figure_show_every_size(tmp_path):
    points = [
        {"size": n, "tokens": 10, "seconds": 1e-6 * n, "flops": 9.0 * n}
        for n in (1, 2, 4)
    ]
    power = {"fitted": 1.0, "last": 1.0}
    names = cli.NAMES[:4]
    each = {"order": 1, "seconds": power, "flops": power, "points": points}
    found = {"growth": [{"size": name, **each} for name in names], "seconds": 3.0}
    text = growth_text.as_text(found)
    assert all(name in text for name in names) and "1.00 (last 1.00)" in text
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed: pip install -r requirements.txt")
    growth_figure.draw(found, tmp_path / "new" / "growth.svg")
    assert "<svg" in (tmp_path / "new" / "growth.svg").read_text()
    assert np.all([figure_file.check(f"growth{e}") is None for e in (".svg", ".png")])
