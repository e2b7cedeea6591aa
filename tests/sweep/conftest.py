"""Runs of three small rows, for tests of what is done with runs."""

import pytest

from transformer_ablation.config import replace
from transformer_ablation.sweep import runs
from transformer_ablation.sweep.identity import run_identity
from transformer_ablation.sweep.rows import BASE, Row, expand

SMALL = Row("small", "C", "small", lambda b: {"model.num_layers": 1})
WIDE = Row("wide", "C", "wide", lambda b: {"model.d_ff": 24})


@pytest.fixture
def make(tiny_config, tmp_path):
    """Runs of base, small and wide for the seeds given, in a workdir."""

    def make(seeds=(0,), changes=None, manifest="m"):
        base = replace(tiny_config, changes or {})
        return runs.make_runs(
            expand(base, [BASE, SMALL, WIDE]),
            seeds,
            tmp_path,
            lambda config: run_identity(config, manifest, 1),
        )

    return make
