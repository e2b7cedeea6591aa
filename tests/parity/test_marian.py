"""An exported run says in PyTorch, and in CTranslate2, what it says here."""

import jax
import numpy as np
import pytest

from configs import table3
from transformer_ablation import parallel
from transformer_ablation.config import from_mapping, replace
from transformer_ablation.data.tokens import prepare
from transformer_ablation.evaluate.translation import Translator
from transformer_ablation.export import ctranslate2 as converter
from transformer_ablation.export import marian
from transformer_ablation.runs.building import build_model, train_batches
from transformer_ablation.train import step as steps
from transformer_ablation.train.loop import train
from transformer_ablation.vocabulary import EOS, PAD

pytestmark = pytest.mark.parity

UPDATES = 300
SENTENCES = 200
EXTRA = 50


# Marian knows no length penalty but length^alpha.
CHANGES = {
    "train.steps": UPDATES,
    "optimizer.warmup_steps": 200,
    "decode.length_penalty": "power",
    "decode.extra_length": EXTRA,
}
CASES = ("trained", "random", "random with biases", "trained on Multi30k")


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def updated(config, prepared, model):
    """Parameters after some hundred updates."""
    state = train(
        steps.create_state(model, config),
        steps.make_update(model, config),
        train_batches(config, prepared).iterate(0, UPDATES, parallel.device_count()),
        key=steps.purpose_key(0, steps.DROPOUT),
        rates_at=lambda number: steps.rates_at(config, number),
        hooks=[],
    )
    return jax.device_get(state.params)


def scattered(config, model):
    """Random parameters of which none is zero or one, biases and gains included."""
    generator = np.random.default_rng(5)

    def draw(path, leaf):
        noise = generator.standard_normal(leaf.shape)
        if path[-1].key in ("scale", "bias"):
            noise = (path[-1].key == "scale") + 0.2 * noise
        else:
            noise *= leaf.shape[-2 if path[-1].key == "kernel" else -1] ** -0.5
        return noise.astype(np.float32)

    shapes = steps.state_shapes(model, config).params
    return jax.tree_util.tree_map_with_path(draw, shapes)


@pytest.fixture(scope="module", params=CASES)
def given(request, cache):
    """(config, prepared data): the grammar scale's base, or that on real sentences."""
    config = replace(from_mapping(table3.get_config("grammar")), CHANGES)
    config = replace(
        config, {"model.projection_biases": request.param.endswith("biases")}
    )
    if request.param.endswith("Multi30k"):
        folder = request.getfixturevalue("multi30k_directory")
        changes = {"data.corpus": "multi30k", "data.directory": str(folder)}
        config = replace(config, changes)
    return config, prepare(config.data, cache), request.param


@pytest.fixture(scope="module")
def config(given):
    return given[0]


@pytest.fixture(scope="module")
def prepared(given):
    return given[1]


@pytest.fixture(scope="module")
def case(given):
    """(config, model, params)."""
    config, prepared, name = given
    model = build_model(config, prepared.vocabulary.size)
    if name.startswith("trained"):
        return config, model, updated(config, prepared, model)
    return config, model, scattered(config, model)


@pytest.fixture(scope="module")
def folder(case, prepared, tmp_path_factory):
    config, _, params = case
    path = tmp_path_factory.mktemp("export") / "marian"
    marian.write(path, config, params, prepared.vocabulary)
    return path


@pytest.fixture(scope="module")
def theirs(folder):
    """The Marian model, its layer norms with our epsilon: the one known difference."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    return model


def test_logits_are_equal(case, prepared, theirs):
    import torch

    _, model, params = case
    rows = np.arange(32)
    source_BS = prepared.validation.source.padded(rows, 32, 80)
    target_BT = prepared.validation.target.padded(rows, 32, 80)
    ours_BTV = jax.jit(model.apply)({"params": params}, source_BS, target_BT)
    first_B1 = np.full((32, 1), model.bos_id)
    inputs_BT = np.concatenate([first_B1, target_BT[:, :-1]], axis=1)
    with torch.no_grad():
        theirs_BTV = theirs(
            input_ids=torch.tensor(source_BS).long(),
            attention_mask=torch.tensor(source_BS != model.pad_id).long(),
            decoder_input_ids=torch.tensor(inputs_BT).long(),
        ).logits.numpy()
    real_BT = target_BT != model.pad_id
    difference = np.abs(np.asarray(ours_BTV) - theirs_BTV)[real_BT].max()
    assert difference < 1e-4
    # Not because all logits are small.
    assert theirs_BTV[real_BT].std() > 0.5


@pytest.fixture(scope="module")
def translations(case, prepared):
    config, model, params = case
    sources = prepared.validation.source.take(np.arange(SENTENCES))
    found = Translator(model, config.decode).translate(
        parallel.replicate(params), sources
    )
    return sources, [best for (best,) in found]


def test_beam_outputs_and_scores_are_equal(case, translations, theirs):
    import torch

    config, model, _ = case
    sources, ours = translations
    for number, expected in enumerate(ours):
        source_1S = torch.tensor(np.asarray(sources[number]))[None].long()
        found = theirs.generate(
            source_1S,
            num_beams=config.decode.beam_size,
            length_penalty=config.decode.length_penalty_alpha,
            early_stopping="never",
            max_new_tokens=source_1S.shape[1] + EXTRA,
            max_length=None,
            output_scores=True,
            return_dict_in_generate=True,
        )
        ids = found.sequences[0, 1:].tolist()
        ids = ids[: ids.index(3)] if 3 in ids else ids
        assert ids == expected.ids, number
        if not expected.unfinished:
            score = float(found.sequences_scores[0])
            assert score == pytest.approx(expected.score, abs=1e-3)


def test_tokenizer_gives_the_same_ids(folder, prepared):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    pairs = list(prepared.corpus.splits["validation"])[:SENTENCES]
    for source, _ in pairs:
        ids = tokenizer(source).input_ids
        assert ids == [*prepared.vocabulary.encode(source), 3]


@pytest.fixture(scope="module")
def our_score(case):
    """``our_score(source ids, ids, ended)``: what our search ranks a hypothesis by."""
    config, model, params = case
    longest = 128

    @jax.jit
    def log_probabilities(source_1S, target_1T):
        logits_1TV = model.apply({"params": params}, source_1S, target_1T)
        return jax.nn.log_softmax(logits_1TV)[0]

    def score(source, ids, ended):
        target = [*ids, EOS] if ended else ids
        both = np.full((2, 1, longest), PAD, np.int32)
        both[0, 0, : len(source)], both[1, 0, : len(target)] = source, target
        log_TV = np.asarray(log_probabilities(*both), np.float64)
        total = log_TV[np.arange(len(target)), target].sum()
        return total / len(target) ** config.decode.length_penalty_alpha

    return score


def test_ctranslate2_outputs_are_equal(
    case, folder, translations, prepared, our_score, tmp_path
):
    """Or worse: its search ends once as many hypotheses as the beam are found, best
    or not, so what it gives instead has a lower score, by our own model."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    config, _, _ = case
    vocabulary = prepared.vocabulary
    numbers = {p: i for i, p in enumerate(vocabulary.pieces(range(vocabulary.size)))}
    converter.convert(folder, tmp_path / "ct2")
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), device="cpu")
    sources, ours = translations
    different = 0
    for number, expected in enumerate(ours):
        ids = np.asarray(sources[number]).tolist()
        found = translator.translate_batch(
            [prepared.vocabulary.pieces(ids)],
            beam_size=config.decode.beam_size,
            length_penalty=config.decode.length_penalty_alpha,
            max_decoding_length=len(ids) + EXTRA,
            suppress_sequences=[["<pad>"], ["<unk>"], ["<s>"]],
        )
        theirs = [numbers[piece] for piece in found[0].hypotheses[0]]
        if theirs == expected.ids:
            continue
        different += 1
        ended = len(theirs) < len(ids) + EXTRA
        # 1e-4 is how far two programs are apart that compute one score.
        assert our_score(ids, theirs, ended) < expected.score + 1e-4, number
    assert different <= SENTENCES // 20
    ids, best = np.asarray(sources[0]).tolist(), ours[0]
    found = our_score(ids, best.ids, not best.unfinished)
    assert found == pytest.approx(best.score, abs=1e-3)
