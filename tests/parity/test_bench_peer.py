"""``bench --peers`` with PyTorch: the peer does the work it is timed for."""

import numpy as np
import pytest

from experiments import bench, command
from tests.benchmark.test_comparison import pairs
from tests.experiments.tiny_sweeps import folder_of
from transformer_ablation.benchmark import marian
from transformer_ablation.config import replace
from transformer_ablation.model.accounting import parameter_counts
from transformer_ablation.report.json_file import read_json

pytestmark = pytest.mark.parity

VOCABULARY = 99
SIZES = {
    "model.num_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 20,
    "model.num_heads": 2,
    "model.d_k": 8,
    "model.d_v": 8,
    "model.max_length": 64,
    "model.projection_biases": True,
    "decode.beam_size": 3,
}


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("transformers")
    return pytest.importorskip("torch")


def make_worker(base_config, given):
    config = replace(base_config, SIZES)
    batches = marian.length_sorted(given, 200)
    return config, marian.Worker(
        marian.Job(config, VOCABULARY, 1, batches, [batches[0][0]])
    )


def test_peer_has_our_parameters(torch, base_config):
    config, worker = make_worker(base_config, pairs(20))
    expected = parameter_counts(config.model, VOCABULARY)["total"]
    assert worker.facts()["parameters"] == expected


def test_update_trains_on_the_tokens_it_counts(torch, base_config):
    given = pairs(20)
    _, worker = make_worker(base_config, given)
    before = [p.detach().clone() for p in worker._model.parameters() if p.requires_grad]
    count = len(worker._batches)
    tokens, seconds = worker.updates(count)
    assert tokens == given.target.token_count and seconds > 0
    after = [p for p in worker._model.parameters() if p.requires_grad]
    changed = [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    # All but a bias of keys, which no probability of attention depends on.
    assert np.mean(changed) > 0.8


def test_search_of_the_peer_takes_its_time(torch, base_config):
    _, worker = make_worker(base_config, pairs(20))
    assert worker.search(9) > 0  # it raises where a sentence has another length


def test_both_are_compared(torch, tmp_path_factory, tmp_path):
    folder, path = folder_of(tmp_path_factory), tmp_path / "bench.json"
    code = command.run(
        bench.COMMAND,
        [
            f"--config={folder / 'tiny.py'}",
            f"--config.data.directory={folder / 'corpus'}",
            f"--cache={folder / 'cache'}",
            "--seconds=0.01",
            "--config.model.norm=pre",
            "--peers",
            f"--json={path}",
        ],
    )
    assert code == 0
    found = read_json(path)["rows"][0]["peers"]
    named = [text.partition("model.")[2].split()[0] for text in found["differences"]]
    assert named == ["norm", "d_k", "d_v"]
    assert found["memory_bytes"] > 2**20 and found["decode"]["target_tokens"] > 1
    for part in ("training", "decode"):
        assert found[part]["ratio"]["count"] == 5
        assert found[part]["ours"]["median"] > 0 < found[part]["theirs"]["median"]
