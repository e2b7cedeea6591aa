"""Weights of pairs against plain numpy, whatever they are padded and batched with."""

import numpy as np
import pytest

from configs import base
from tests.evaluate.test_perplexity import (
    HEADS,
    SIZES,
    K,
    NumpyTransformer,
    U,
    V,
    random_params,
    seven_sentences,
    tiny_model,
)
from transformer_ablation import config, parallel
from transformer_ablation.data.ragged import Ragged, TokenizedSplit
from transformer_ablation.evaluate import attention
from transformer_ablation.model.transformer import Transformer
from transformer_ablation.vocabulary import BOS, EOS, PAD

# float32 against float64, through two layers.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


class Weighing(NumpyTransformer):
    """Keeps the weights of each attention in ``kept``, in the order of the layers.

    Of a window of r, the encoder sees r // 2 places back and (r - 1) // 2 on.
    """

    def __init__(self, params, window=None):
        super().__init__(params)
        self.window, self.kept = window, {kind: [] for kind in attention.KINDS}

    def attend(self, p, x, memory, causal):
        kind = "decoder" if causal else "encoder" if memory is x else "cross"
        all_weights, heads = [], []
        for h in range(HEADS):
            q = x @ p["query"]["kernel"][:, h * K : (h + 1) * K]
            k = memory @ p["key"]["kernel"][:, h * K : (h + 1) * K]
            weights = np.zeros((len(x), len(memory)))
            for i, row in enumerate(q @ k.T / np.sqrt(K)):
                seen = [
                    j
                    for j in range(len(memory))
                    if kind == "cross"
                    or (not causal or j <= i)
                    and (
                        self.window is None
                        or i - self.window // 2 <= j <= i + (self.window - 1) // 2
                    )
                ]
                exponentials = np.exp(row[seen])
                weights[i, seen] = exponentials / exponentials.sum()
            v = memory @ p["value"]["kernel"][:, h * U : (h + 1) * U]
            all_weights.append(weights)
            heads.append(weights @ v)
        self.kept[kind].append(all_weights)
        return np.concatenate(heads, axis=1) @ p["output"]["kernel"]


def model_with(changes):
    settings = config.from_mapping(base.get_config())
    settings = config.replace(settings, SIZES | changes)
    return Transformer(settings.model, V, PAD, BOS, EOS)


@pytest.fixture(scope="module")
def params():
    return random_params(tiny_model(), 49)


def ids(split):
    return [[x.tolist() for x in side] for side in (split.source, split.target)]


@pytest.mark.parametrize(
    ("window", "changes"),
    [
        (None, {}),
        (3, {}),
        (4, {"model.attention_implementation": "xla", "model.rematerialize": "layers"}),
    ],
)
def test_weights_are_those_of_a_numpy_transformer(params, window, changes):
    """Padded together; hidden places and padding have exactly 0."""
    model = model_with({"model.attention_window": window, **changes})
    record = attention.Recorder(model)
    sources, targets = ids(seven_sentences())
    found = record(params, sources, targets)
    assert len(found) == 7
    for source, target, ours in zip(sources, targets, found, strict=True):
        reference = Weighing(params, window)
        memory = reference.encode(np.array(source))
        reference.log_probabilities(memory, target[:-1])
        for kind, weights in ours._asdict().items():
            expected = np.array(reference.kept[kind])
            assert weights.dtype == np.float32 and weights.shape == expected.shape
            assert (weights[expected == 0] == 0).all(), kind
            np.testing.assert_allclose(weights, expected, **CLOSE)
            np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)


def test_parameters_on_a_device_do_as_well(params):
    on_device = parallel.on_one_device(parallel.replicate(params))
    record = attention.Recorder(tiny_model())
    sources, targets = ids(seven_sentences())
    first, second = (
        record(p, sources[:1], targets[:1])[0] for p in (params, on_device)
    )
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_are_those_of_training_with_packed_rows(params):
    """Three pairs in one row, as ``data.packed_length`` trains: each has its block."""
    model, split = tiny_model(), seven_sentences().take(np.array([0, 2, 5]))
    row = [np.concatenate([*side])[None] for side in (split.source, split.target)]
    _, sown = model.apply({"params": params}, *row, None, True, mutable=["attention"])
    found = attention.Recorder(model)(params, *ids(split))
    starts = {"source": 0, "target": 0}
    for i, ours in enumerate(found):
        places = {
            side: slice(start, start + int(getattr(split, side).lengths[i]))
            for side, start in starts.items()
        }
        sides = {"encoder": "source source", "decoder": "target target"}
        for kind, (stack, module) in attention.KINDS.items():
            query, key = sides.get(kind, "target source").split()
            packed = sown["attention"][stack][module]["weights"][0]
            block = packed[:, 0, :, places[query], places[key]]
            np.testing.assert_allclose(getattr(ours, kind), block, **CLOSE)
        starts = {side: place.stop for side, place in places.items()}


def test_memory_is_bounded_and_one_program_does_for_all(params):
    """A pair of up to 32 pieces: 3 kinds, 2 layers, 2 heads, 32 x 32, 4 bytes."""
    model = tiny_model()
    assert attention.rows_within(model.config, 32, 4 * 49_152 - 1) == 2
    assert attention.rows_within(model.config, 32, 4 * 49_152) == 4
    assert attention.rows_within(model.config, 64, 4 * 49_152 - 1) == 1
    assert attention.rows_within(model.config, 4096, 1) == 1
    batches = []

    class Watched(attention.Recorder):
        def __init__(self):
            super().__init__(model, 4 * 49_152)
            record = self._record
            self._record = lambda p, b: batches.append(b[0].shape) or record(p, b)

    sources, targets = ids(seven_sentences())
    few = Watched()(params, sources, targets)
    assert batches == [(4, 32), (4, 32)]  # 4 pairs, then 3 and a row of padding
    for ours, theirs in zip(
        few, attention.Recorder(model)(params, sources, targets), strict=True
    ):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, **CLOSE)


def test_pairs_of_all_lengths_share_few_shapes():
    lengths = np.random.default_rng(3).permutation(np.arange(1, 301))
    side = Ragged.of([[EOS] * n for n in lengths])
    short = Ragged.of([[EOS]] * 300)
    for pairs in (TokenizedSplit(side, short), TokenizedSplit(short, side)):
        parts = list(attention.parts(pairs, lambda width: max(1, 512 // width), None))
        assert sorted(np.concatenate([p.indices for p in parts])) == [*range(300)]
        for part in parts:
            assert len(part.indices) <= part.rows <= 512 // part.width
            assert lengths[part.indices].max() <= part.width
            assert part.width == 32 or lengths[part.indices].min() > part.width // 2
        # 32, 32, 64, 128 and 44 pairs by 16, 8, 4, 2 and 1: none leaves a rest.
        assert {(p.rows, p.width) for p in parts} == {
            (16, 32), (8, 64), (4, 128), (2, 256), (1, 512)
        }  # fmt: skip


def test_no_width_is_beyond_the_learned_positions():
    pairs = TokenizedSplit(*[Ragged.of([[EOS] * n for n in (40, 3)])] * 2)
    assert [p.width for p in attention.parts(pairs, lambda width: 8, 48)] == [32, 48]
    with pytest.raises(attention.LengthError, match="pair 1 is 40 pieces long .* 39"):
        list(attention.parts(pairs, lambda width: 8, 39))


@pytest.mark.parametrize(
    ("sources", "targets", "said"),
    [
        ([[7, EOS]], [], "1 sources, but 0 targets"),
        ([[7, EOS]], [[]], "pair 1: the target does not end in the end of sentence"),
        ([[EOS], [7]], [[EOS], [EOS]], "pair 2: the source does not end in"),
        ([[V, EOS]], [[EOS]], f"pair 1: the source has .* not in .0, {V}"),
        ([[PAD, EOS]], [[EOS]], "pair 1: the source has an id that is padding"),
    ],
)
def test_ids_that_are_no_sentence_are_refused(params, sources, targets, said):
    with pytest.raises(ValueError, match=said):
        attention.Recorder(tiny_model())(params, sources, targets)


def test_entropy_is_that_of_each_querys_weights():
    weights_NHLM = np.array([[[[0.25] * 4, [0, 1, 0, 0], [0.5, 0, 0.5, 0]]]])
    found = attention.entropies(weights_NHLM)
    np.testing.assert_allclose(found, [[[np.log(4), 0, np.log(2)]]], rtol=1e-12)
