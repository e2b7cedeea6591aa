"""Times of all rows from those of the smallest and the largest."""

import types
from pathlib import Path

import pytest

from experiments import plan_measure
from transformer_ablation.model.accounting import step_flops
from transformer_ablation.sweep.rows import BASE, Row, expand


def test_time_grows_with_operations_beside_a_fixed_cost():
    """2 s for 10 and 4 s for 30: a tenth of a second each, and one second more."""
    line = plan_measure.Line((10, 2.0), (30, 4.0), "")
    assert [line.seconds(n) for n in (10, 20, 30)] == [2.0, 3.0, 4.0]


@pytest.mark.parametrize("small", [(10, 5.0), (10, 0.5), (30, 4.0)])
def test_line_that_makes_no_sense_leaves_the_largest_alone(small):
    """Slower, or a cost below nothing, or one row: 4 s for 30 is 2 s for 15."""
    assert plan_measure.Line(small, (30, 4.0), "").seconds(15) == pytest.approx(2.0)


def test_smallest_and_largest_row_are_measured_once(tiny_config, monkeypatch):
    wide = Row("wide", "C", "", lambda b: {"model.d_ff": 40})
    wider = Row("wider", "C", "", lambda b: {"model.d_ff": 60})
    rows = expand(tiny_config, [wide, BASE, wider])
    done = []

    def subject(config, cache, seconds, say):
        done.append(config.model.d_ff)
        return types.SimpleNamespace(usual=None, d_ff=config.model.d_ff)

    monkeypatch.setattr(plan_measure, "make_subject", subject)
    found = {"seconds": {"median": 0.5}}
    monkeypatch.setattr(plan_measure, "measure_shape", lambda made, shape: found)
    monkeypatch.setattr(plan_measure.parallel, "set_up", lambda cache: None)
    line = plan_measure.measure(rows, Path("unused"))
    assert done == [20, 60]
    assert line.small == (step_flops(rows[1].config), 0.5)
    assert "0.5 s an update of base and 0.5 s an update of wider" in line.text
    done.clear()
    assert plan_measure.measure(rows[:1], Path("unused")).large[1] == 0.5
    assert done == [40]
