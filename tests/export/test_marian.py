"""The Marian folder: its arrays run by a plain reading of that model's layers."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from tests.model.numpy_transformer import (
    BOS,
    VOCABULARY,
    random_parameters,
    random_sentences,
    small_module,
)
from transformer_ablation.config import replace
from transformer_ablation.export import marian
from transformer_ablation.vocabulary import Vocabulary

FITS = {"num_layers": 2, "num_heads": 3, "d_k": 4, "d_v": 4}


def linear(arrays, name, x_LD):
    return x_LD @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]


def norm(arrays, name, x_LD):
    centred_LD = x_LD - x_LD.mean(axis=1, keepdims=True)
    root_L1 = np.sqrt((centred_LD**2).mean(axis=1, keepdims=True) + 1e-6)
    return centred_LD / root_L1 * arrays[f"{name}.weight"] + arrays[f"{name}.bias"]


def softmax(scores_LM):
    odds_LM = np.exp(scores_LM - scores_LM.max(axis=1, keepdims=True))
    return odds_LM / odds_LM.sum(axis=1, keepdims=True)


def attend(arrays, name, heads, x_LD, memory_MD, causal):
    q_LD = linear(arrays, f"{name}.q_proj", x_LD)
    k_MD = linear(arrays, f"{name}.k_proj", memory_MD)
    v_MD = linear(arrays, f"{name}.v_proj", memory_MD)
    size, out = x_LD.shape[1] // heads, []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores_LM = q_LD[:, part] @ k_MD[:, part].T / np.sqrt(size)
        if causal:
            scores_LM[np.triu_indices(len(x_LD), 1)] = -np.inf
        out.append(softmax(scores_LM) @ v_MD[:, part])
    return linear(arrays, f"{name}.out_proj", np.concatenate(out, axis=1))


def embed(arrays, ids):
    """Marian's sinusoids: sines in the first half, cosines in the second."""
    table_VD = arrays["model.shared.weight"]
    d = table_VD.shape[1]
    x_LD = table_VD[ids] * np.sqrt(d)
    for place in range(len(ids)):
        for i in range(d // 2):
            angle = place / 10_000 ** (2 * i / d)
            x_LD[place, i] += np.sin(angle)
            x_LD[place, d // 2 + i] += np.cos(angle)
    return x_LD


def stack(arrays, name, settings, x_LD, memory_MD):
    heads = settings[f"{name}_attention_heads"]
    for n in range(settings[f"{name}_layers"]):
        at = f"model.{name}.layers.{n}"
        y_LD = attend(
            arrays, f"{at}.self_attn", heads, x_LD, x_LD, causal=memory_MD is not None
        )
        x_LD = norm(arrays, f"{at}.self_attn_layer_norm", x_LD + y_LD)
        if memory_MD is not None:
            y_LD = attend(arrays, f"{at}.encoder_attn", heads, x_LD, memory_MD, False)
            x_LD = norm(arrays, f"{at}.encoder_attn_layer_norm", x_LD + y_LD)
        hidden_LF = np.maximum(0, linear(arrays, f"{at}.fc1", x_LD))
        y_LD = linear(arrays, f"{at}.fc2", hidden_LF)
        x_LD = norm(arrays, f"{at}.final_layer_norm", x_LD + y_LD)
    return x_LD


@pytest.mark.parametrize("biases, decoder_layers", [(False, None), (True, 1)])
def test_exported_arrays_give_our_logits(biases, decoder_layers, base_config):
    module = small_module(
        **FITS, projection_biases=biases, decoder_layers=decoder_layers
    )
    params = random_parameters(module, seed=4)
    config = dataclasses.replace(base_config, model=module.config)
    settings = marian.model_config(config, VOCABULARY)
    arrays = {
        name: x.astype(np.float64)
        for name, x in marian.state_dict(module.config, params).items()
    }
    source = random_sentences((1, 6), (6,), seed=5)
    target = random_sentences((1, 4), (4,), seed=6)
    memory_SD = stack(arrays, "encoder", settings, embed(arrays, source[0]), None)
    inputs = np.array([BOS, *target[0][:-1]])
    x_TD = stack(arrays, "decoder", settings, embed(arrays, inputs), memory_SD)
    found_TV = x_TD @ arrays["model.shared.weight"].T + arrays["final_logits_bias"]
    expected = jax.jit(module.apply)({"params": params}, source, target)[0]
    np.testing.assert_allclose(found_TV, expected, rtol=1e-4, atol=1e-5)


REFUSED = [
    ("norm", "pre"),
    ("positions", "learned"),
    ("sinusoids", "halves"),
    ("tied_embeddings", "none"),
    ("tied_embeddings", "decoder"),
    ("scale_embeddings", False),
    ("scale_logits", True),
    ("compatibility", "dot"),
    ("attention_window", 3),
    ("d_k", 7),
    ("d_v", 5),
    ("layer_norm_epsilon", 1e-3),
]


@pytest.mark.parametrize("field, value", REFUSED)
def test_what_marian_cannot_say_is_refused_by_name(field, value):
    model = small_module(**{**FITS, field: value}).config
    with pytest.raises(marian.ExportError) as error:
        marian.check(model)
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"model.{field}: {value!r} cannot be said")


def test_every_fault_is_named_at_once():
    model = small_module(**FITS, norm="pre", sinusoids="halves").config
    with pytest.raises(marian.ExportError) as error:
        marian.check(model)
    assert len(str(error.value).splitlines()) == 2


@pytest.fixture(scope="module")
def vocabulary():
    lines = [f"the {a} sees a {b} ." for a in "dog cat man".split() for b in "ox emu"]
    return Vocabulary.train(lines, 280)


def test_folder_holds_config_weights_and_pieces(tmp_path, vocabulary, base_config):
    from safetensors.numpy import load_file

    module = small_module(**FITS)
    module = module.clone(vocabulary_size=vocabulary.size, pad_id=0, bos_id=2, eos_id=3)
    params = random_parameters(module, seed=4)
    config = dataclasses.replace(base_config, model=module.config)
    config = replace(config, {"decode.length_penalty_alpha": 0.8})
    folder = tmp_path / "out"
    marian.write(folder, config, params, vocabulary)
    found = json.loads((folder / "config.json").read_text())
    assert (found["d_model"], found["encoder_ffn_dim"]) == (12, 20)
    assert (found["decoder_layers"], found["decoder_attention_heads"]) == (2, 3)
    assert found["decoder_start_token_id"] == 2 and found["vocab_size"] == 280
    generation = json.loads((folder / "generation_config.json").read_text())
    assert (generation["num_beams"], generation["length_penalty"]) == (4, 0.8)
    pieces = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    assert [pieces[p] for p in ("<pad>", "<unk>", "<s>", "</s>")] == [0, 1, 2, 3]
    assert sorted(pieces.values()) == list(range(280))
    for side in ("source", "target"):
        assert Vocabulary((folder / f"{side}.spm").read_bytes()).size == 280
    arrays = load_file(folder / "model.safetensors")
    assert arrays["model.shared.weight"].shape == (280, 12)
    assert all(x.dtype == np.float32 for x in arrays.values())
    # Whoever may read one file may read all.
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    with pytest.raises(marian.ExportError, match="is not empty; name a new folder"):
        marian.write(folder, config, params, vocabulary)


def test_what_is_done_otherwise_there_is_told(base_config):
    config = replace(base_config, {"decode.extra_length": 40, "model.dtype": "float16"})
    assert marian.done_otherwise(config) == [
        "length penalty: length^0.6 there, ((5 + length) / 6)^0.6 here",
        f"at most {config.model.max_length} pieces there, source + 40 here",
        "float32 there, float16 here",
    ]
    plain = {"decode.length_penalty": "power", "model.dtype": "float32"}
    (cap,) = marian.done_otherwise(replace(config, plain))
    assert cap.startswith("at most ")
    none = {"decode.length_penalty_alpha": 0.0, "model.dtype": "float32"}
    assert marian.done_otherwise(replace(config, none)) == [cap]
