"""Summaries of heads by loops over a numpy model's weights, query by query."""

import numpy as np
import pytest

from tests.evaluate.test_attention import Weighing, ids, model_with
from tests.evaluate.test_perplexity import (
    HEADS,
    random_params,
    seven_sentences,
    tiny_model,
)
from transformer_ablation import parallel
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate import attention
from transformer_ablation.evaluate.head_summary import MEASURES, summarize
from transformer_ablation.vocabulary import EOS


@pytest.fixture(scope="module")
def params():
    return random_params(tiny_model(), 49)


def of_query(weights, kind, q, length, window):
    """Every measure of one query's weights; the share is None where one key is seen."""
    keys = range(len(weights))
    centre = q
    if kind == "cross":
        centre = q * (len(weights) - 1) / (length - 1) if length > 1 else 0
    seen = [
        k
        for k in keys
        if kind == "cross"
        or not (kind == "decoder" and k > q)
        and (window is None or -(window // 2) <= k - q <= (window - 1) // 2)
    ]
    entropy = -sum(weights[k] * np.log(weights[k]) for k in seen if weights[k] > 0)
    nearest = int(np.floor(centre + 0.5))

    def on(k):
        return weights[k] if k in keys else 0.0

    return {
        "entropy": entropy,
        "entropy_share": entropy / np.log(len(seen)) if len(seen) > 1 else None,
        "distance": sum(weights[k] * abs(k - centre) for k in keys),
        "diagonal": on(nearest),
        "previous": on(nearest - 1),
        "next": on(nearest + 1),
        "first": on(0),
        "last": on(len(weights) - 1),
        "maximum": max(weights),
    }


@pytest.mark.parametrize("window", [None, 3])
def test_means_are_over_every_query_of_every_sentence(params, window):
    """In batches of 4, a row of padding among them; nothing counts twice."""
    pairs = seven_sentences()
    model = model_with({"model.attention_window": window})
    found = summarize(model, parallel.replicate(params), pairs, most_bytes=1)
    rows = {kind: {} for kind in attention.KINDS}
    for source, target in zip(*ids(pairs), strict=True):
        reference = Weighing(params, window)
        memory = reference.encode(np.array(source))
        reference.log_probabilities(memory, target[:-1])
        for kind, layers in reference.kept.items():
            length = len(source) if kind == "encoder" else len(target)
            for layer, head in np.ndindex(2, HEADS):
                for q, weights in enumerate(layers[layer][head]):
                    row = of_query(weights, kind, q, length, window)
                    rows[kind].setdefault((layer, head), []).append(row)
    # Targets have 4 + 2 + 9 + 1 + 5 + 7 + 3 pieces, sources 27.
    assert found.queries == {"encoder": 27, "decoder": 31, "cross": 31}
    assert found.sentences == 7
    without = {"decoder": {"next", "last"}}
    for kind, by_head in rows.items():
        assert set(found.means[kind]) == set(MEASURES) - without.get(kind, set())
        for name, means in found.means[kind].items():
            for head, measured in by_head.items():
                values = [m[name] for m in measured if m[name] is not None]
                expected = np.mean(values)
                np.testing.assert_allclose(
                    means[head],
                    expected,
                    rtol=2e-4,
                    atol=1e-6,
                    err_msg=f"{kind} {name}",
                )


def test_end_of_sentence_alone_is_seen_whole(params):
    pairs = TokenizedSplit(Ragged.of([[EOS]]), Ragged.of([[EOS]]))
    found = summarize(tiny_model(), parallel.replicate(params), pairs)
    for means in found.means.values():
        for name, mean in means.items():
            # There is nothing to choose from, so no share of it.
            nothing = {"entropy": 0, "distance": 0, "previous": 0, "next": 0}
            expected = np.nan if name == "entropy_share" else nothing.get(name, 1)
            np.testing.assert_allclose(mean, np.full((2, 2), expected), rtol=1e-6)


def test_no_pair_is_refused(params):
    pairs = TokenizedSplit(Ragged.of([]), Ragged.of([]))
    with pytest.raises(ValueError, match="no pair"):
        summarize(tiny_model(), parallel.replicate(params), pairs)
