"""Table 1: operations of layers by hand, powers, and what is left out with a note."""

import csv
import functools
import importlib.util
import io

import numpy as np
import pytest

from experiments import (
    command,
    complexity_figure,
    complexity_flags,
    complexity_layers,
    complexity_needs,
    complexity_text,
)
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
    upper = np.polyfit(x[4:], [np.log(n**2 + 100 * n) for n in sizes[4:]], 1)[0]
    assert found.last == pytest.approx(upper)
    # Of three points the upper half is the last two: 1, 2, 8 at 1, 2, 4.
    assert power([1, 2, 4], [1, 2, 8]).last == pytest.approx(2)
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


def test_costs_of_several_sequences_are_of_one():
    """A call of four takes one second, 0.25 each; at eight times the operations, 8."""
    (line,) = [x for x in complexity_layers.measured(rows()) if x.row == "recurrent"]
    ticks = iter(range(10_000))
    clock = lambda: float(next(ticks))  # noqa: E731
    sizes = [Size(8, 64), Size(64, 64)]
    for most, timed in ((7.0, False), (9.0, True)):
        first, last = complexity.measure(
            {"four": line.layer},
            sizes,
            Budget(1e-3, most),
            batch=4,
            clocks=(clock, lambda: 0.0),
        )["four"]
        assert first.seconds == pytest.approx(0.25)
        for point in (first, last):
            by_hand = 2 * point.n * 2 * 64 * 4 * 64
            assert by_hand < point.flops < 1.5 * by_hand
        assert (last.note is None) == timed


def test_program_that_needs_too_much_memory_is_not_run():
    """Input and output of 512 places and width 8 are 16 KiB each; of 8, 256 bytes."""
    (line,) = [x for x in complexity_layers.measured(rows()) if x.row == "dilated"]
    first, last = complexity.measure(
        {"some": line.layer}, [Size(8, 8), Size(512, 8)], Budget(1e-3, 9.0, 2.0**15)
    )["some"]
    assert first.note is None and first.seconds > 0
    assert last.seconds is None and last.flops > 60 * first.flops
    assert "not timed: a call would take 0.0 GiB of memory, over 0.0" in last.note
    # Weights of 4 heads and 512 * 512 pairs are 4 MiB; nothing was timed before.
    (line,) = [x for x in complexity_layers.measured(rows()) if x.key == "base/layer"]
    (point,) = complexity.measure(
        {"all": line.layer}, [Size(512, 8)], Budget(1e-3, 9.0, 2.0**21)
    )["all"]
    assert "of memory" in point.note and point.seconds is None


def test_time_is_told_at_most():
    """16 n d^2 of an LSTM: 20 s a call, of which 10 are allowed; 4 calls of each."""
    (line,) = [x for x in complexity_layers.measured(rows()) if x.row == "recurrent"]
    needs = complexity_needs
    assert needs.operations(line, Size(10_000, 1000)) == 16e10
    assert needs.RATE == 8e9 and (needs.START, needs.COMPILE, needs.PATHS) == (
        10,
        1,
        12,
    )
    axes = {"n": [Size(10_000, 1000)], "d": []}
    asked = complexity_flags.Asked(axes, [16, 32])
    # 10 + 2 * 12 + 1 + 4 * 10 = 75; with batches of a hundredth 10 + 24 + 1 + 0.8.
    told = needs.estimate(asked, [line], Budget(0.1, 10.0), 1)
    assert (
        told
        == "1 layers at 1 sizes, paths at 2 lengths: 80 seconds at most on free cores"
    )
    assert "40 seconds" in needs.estimate(
        complexity_flags.Asked({"n": [Size(100, 1000)]}, [16, 32]),
        [line],
        Budget(0.1, 10.0),
        1,
    )


@pytest.mark.parametrize(
    ("row", "part", "expected"),
    [
        ("base", "attention", 4 * 64 * 64 * 32),
        ("base", "layer", 4 * 64 * 64 * 32 + 8 * 64 * 32**2),
        # Blocks of 16 queries that see 8 before and 7 behind: 31 keys.
        ("restricted", "attention", 4 * 64 * 31 * 32),
        ("convolutional", "layer", 4 * 3 * 64 * 32**2),
    ],
)
def test_operations_by_hand_are_those_of_the_formulas(row, part, expected):
    (line,) = [
        x for x in complexity_layers.measured(rows()) if (x.row, x.part) == (row, part)
    ]
    assert complexity_needs.operations(line, Size(64, 32)) == expected


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
        (["--seconds=0"], "--seconds=0.0: must be a number of seconds above 0, at mos"),
        (["--most=-1"], "--most=-1.0: must be a number of seconds above 0, at most 86"),
        (["--n=16,32,64,99999999999999999999"], "99999: must be at most 1048576\n"),
        (["--d=64,128,2000000"], "--d=2000000: must be at most 1048576\n"),
        # A kernel of 3 * d * 2 d numbers of 4 bytes, biases 2 d, an input of 256 d.
        (
            ["--quick", "--fixed_d=1000000", "--rows=convolutional"],
            "--n, --fixed_d, --batch: at n = 256, d = 1,000,000 and 1 sequences, "
            "parameters and inputs of row convolutional take 22,352.7 GiB; half of",
        ),
        # An input of 256 * 512 * 4 bytes is 0.5 MiB.
        (
            ["--quick", "--batch=1000000", "--rows=convolutional"],
            "d = 512 and 1,000,000 sequences, parameters and inputs of row "
            "convolutional take 488.3 GiB",
        ),
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
    assert "2 layers at 6 sizes, paths at 1 lengths: 40 s" in capsys.readouterr().err
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 1 + 2 * 6
