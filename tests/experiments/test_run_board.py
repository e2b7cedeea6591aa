"""Final scores for TensorBoard: tags that any two sweeps share, each value once."""

from experiments import run_board
from tests.report import written_sweeps as written
from transformer_ablation import config as configs
from transformer_ablation.report.metrics import MetricWriter, read_metrics

SCORES = [
    written.ppl_score(4.5, split="val"),
    written.bleu_score(25.0, split="val"),
    written.bleu_score(24.0, split="val") | {"metric": "bleu_paper"},
    written.bleu_score(26.0, split="flickr"),
]
EXPECTED = {
    "validation/final_perplexity": 4.5,
    "validation/final_bleu": 25.0,
    "validation/final_bleu_paper": 24.0,
    "test/final_bleu": 26.0,
}


def test_scores_of_a_run_that_is_scored_twice_are_written_once(tmp_path, tiny_config):
    splits = {"data.validation_split": "val", "data.test_split": "flickr"}
    config = configs.replace(
        tiny_config, {**splits, "data.corpus": "parallel_files", "data.directory": "d"}
    )
    for resume in (None, 6):
        with MetricWriter(tmp_path, resume) as writer:
            run_board.write_scores(writer, config, SCORES, seconds=3.0)
    found = read_metrics(tmp_path)
    assert {entry["tag"]: entry["value"] for entry in found} == EXPECTED
    assert len(found) == len(EXPECTED) and {e["step"] for e in found} == {6}
