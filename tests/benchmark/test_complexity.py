"""Table 1: operations of layers by hand, powers, and what is left out with a note."""

import csv
import functools
import importlib.util
import io

import numpy as np
import pytest

from experiments import command, complexity_figure, complexity_layers, complexity_text
from experiments import complexity as cli
from transformer_ablation.benchmark import complexity
from transformer_ablation.benchmark.complexity import Budget, power
from transformer_ablation.config import from_mapping
from transformer_ablation.sweep.rows import expand

Size = complexity.Size


@functools.cache
def rows():
    from configs import table1

    return expand(from_mapping(table1.get_config()), table1.get_rows())


@functools.cache
def points():
    """Every line at three sizes."""
    layers = {line.key: line.layer for line in complexity_layers.measured(rows())}
    sizes = [Size(64, 32), Size(128, 64), Size(192, 128)]
    return complexity.measure(layers, sizes, Budget(1e-3, 1e9))


# Products by hand, of n positions and width d: r = 16 is blocks of 16 queries that see
# 8 + 16 + 7 keys; four projections; four gates of input and state; values and gates.
PRODUCTS = {
    "base/attention": lambda n, d: 2 * 2 * n * n * d,
    "base/layer": lambda n, d: 2 * 2 * n * n * d + 4 * 2 * n * d * d,
    "restricted/attention": lambda n, d: 2 * 2 * n * 31 * d,
    "restricted/layer": lambda n, d: 2 * 2 * n * 31 * d + 4 * 2 * n * d * d,
    "recurrent/layer": lambda n, d: 2 * n * 2 * d * 4 * d,
    "convolutional/layer": lambda n, d: 2 * n * 3 * d * 2 * d,
    "dilated/layer": lambda n, d: 2 * n * 3 * d * 2 * d,
}


@pytest.mark.parametrize("key", PRODUCTS)
def test_operations_are_those_of_the_products(key):
    """XLA also counts softmax, masks and gates: some 10 an element, so at most half."""
    for point in points()[key]:
        by_hand = PRODUCTS[key](point.n, point.d)
        assert by_hand < point.flops < 1.5 * by_hand, point
        assert point.seconds > 0 and point.rounds >= complexity.LEAST_ROUNDS


def test_only_recurrent_layers_compute_one_after_the_other():
    found = {key: [p.sequential for p in each] for key, each in points().items()}
    assert found.pop("recurrent/layer") == [64, 128, 192]
    assert set(map(tuple, found.values())) == {(1, 1, 1)}


def test_power_is_the_slope_of_logarithms():
    """n^2, and of n^2 + 100 n the last points are nearer to 2 than all."""
    sizes = [2.0**i for i in range(4, 12)]
    found = power(sizes, [3 * n**2 for n in sizes])
    assert found[:4] == pytest.approx([2.0] * 4) and found.points == 8
    found = power(sizes, [n**2 + 100 * n for n in sizes])
    x = np.log(sizes)
    expected = np.polyfit(x, [np.log(n**2 + 100 * n) for n in sizes], 1)[0]
    assert found.exponent == pytest.approx(expected)
    assert found.low < expected < found.high and expected < found.last < 2
    assert power([1, 2, 4], [1.0, None, 4.0]) is None  # a line through two points


def test_layer_that_takes_too_long_is_named_and_not_run():
    """Each reading of the clock is a second later: every call takes one."""
    (line,) = [x for x in complexity_layers.measured(rows()) if x.row == "recurrent"]
    ticks = iter(range(10_000))
    clock = lambda: float(next(ticks))  # noqa: E731
    found = complexity.measure(
        {"slow": line.layer},
        [Size(8, 8), Size(64, 8)],
        Budget(1e-3, 7.0),
        clocks=(clock, lambda: 0.0),
    )["slow"]
    assert found[0].note is None and found[0].seconds == pytest.approx(1.0)
    assert found[1].seconds is None and found[1].flops > 7 * found[0].flops
    assert "not timed: a call would take some" in found[1].note


def test_every_kind_is_written_and_drawn(tmp_path):
    lines = list(complexity_layers.measured(rows()))
    from experiments.complexity_points import of_line

    by = {"n": points(), "d": points()}
    path = {"n": 16, "layers": 4, "sequential": 1, "path": 4, "bound": 5.333}
    lost = {**path, "n": 32, "path": None}
    known = {"row": "base", "label": "some", "printed": "n/k", "points": [path, lost]}
    found = {
        "layers": [of_line(line, by) for line in lines],
        "paths": [known],
        "seconds": 7.0,
    }
    found["layers"][0]["by_n"]["points"][0]["note"] = "not timed: too long"
    for markdown in (False, True):
        text = complexity_text.as_text(found, markdown)
        assert "64 to 192 (n)" in text and "k n d^2" in text
        assert "4 (5.33)" in text and "none (5.33)" in text
        assert "self-attention, n = 64, d = 32: not timed: too long" in text
    read = list(csv.DictReader(io.StringIO(complexity_text.as_csv(found))))
    assert len(read) == 7 * 6 and read[0]["n"] == "64" and float(read[0]["flops"]) > 0
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")
    complexity_figure.draw(found, tmp_path / "new" / "table1.svg")
    assert b"</svg>" in (tmp_path / "new" / "table1.svg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n=16,32"], "--n=16,32: must be at least 3 different whole numbers"),
        (["--d=64,128,wide"], "--d=64,128,wide: must be at least 3"),
        (["--path_n=512"], "--path_n=512: must be at most 256"),
        (["--d=64,128,129"], "row base has model.num_heads = 4, of which 129 is no"),
        (["--seconds=0"], "--seconds=0.0: must be a number above 0"),
        (["--most=-1"], "--most=-1.0: must be a number above 0"),
        (["--figure=t.gif"], "--figure=t.gif: must be a file that ends in"),
        (["--rows=basis"], "unknown row 'basis'"),
    ],
)
def test_request_that_cannot_be_measured_is_refused(
    arguments, message, repository, monkeypatch, capsys
):
    monkeypatch.chdir(repository)
    assert command.run(cli.COMMAND, arguments) == 2
    assert message in capsys.readouterr().err


def test_command_measures_what_is_asked(repository, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(repository)
    arguments = (
        "--rows=restricted --n=8,16,32 --d=8,16,32 --fixed_n=8 --fixed_d=8 --path_n=8 "
        f"--seconds=1e-3 --format=csv --out={tmp_path}/x.csv --cache={tmp_path}"
    )
    assert command.run(cli.COMMAND, arguments.split()) == 0
    assert "2 layers at 6 sizes: about" in capsys.readouterr().err
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 1 + 2 * 6
