"""A trained run as a Hugging Face Marian model (``transformers.MarianMTModel``).

That is the one widely used implementation of the paper's own layer order. It has
sines and cosines in two halves where the paper has them in turn, which is the same
model with the features of the residual stream in another order: all that reads or
writes the stream is permuted. Its layer norm adds 1e-5 where ours adds 1e-6.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transformer_ablation.config import Config, ModelConfig
from transformer_ablation.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

# Epsilon of its layer norm; ours may be smaller, which moves logits by some 1e-6.
LAYER_NORM_EPSILON = 1e-5
# Parts of a layer here, and there.
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}


class ExportError(ValueError):
    """A run that the format cannot express."""


def differences(model: ModelConfig) -> dict[str, str]:
    """Fields that a Marian model cannot have as they are, and what they must be."""
    if model.architecture != "transformer":
        return {"architecture": "transformer"}
    size = model.d_model / model.num_heads
    needed: dict[str, tuple[bool, str]] = {
        "norm": (model.norm == "post", "post"),
        "positions": (model.positions == "sinusoidal", "sinusoidal"),
        "sinusoids": (model.sinusoids == "interleaved", "interleaved"),
        "tied_embeddings": (model.tied_embeddings == "all", "all"),
        "scale_embeddings": (model.scale_embeddings, "True"),
        "scale_logits": (not model.scale_logits, "False"),
        "compatibility": (model.compatibility == "scaled_dot", "scaled_dot"),
        "attention_window": (model.attention_window is None, "None"),
        "d_k": (model.d_k == size, f"d_model / num_heads = {size:g}"),
        "d_v": (model.d_v == size, f"d_model / num_heads = {size:g}"),
        "layer_norm_epsilon": (
            model.layer_norm_epsilon <= LAYER_NORM_EPSILON,
            f"at most {LAYER_NORM_EPSILON:g}",
        ),
    }
    return {name: wanted for name, (fits, wanted) in needed.items() if not fits}


def check(model: ModelConfig) -> None:
    """Refuses what a Marian model cannot be.

    Raises:
      ExportError: one line a field, with what it would have to be.
    """
    faults = [
        f"model.{name}: {getattr(model, name)!r} cannot be said in the format marian; "
        f"it would have to be {wanted}"
        for name, wanted in differences(model).items()
    ]
    if faults:
        raise ExportError("\n".join(faults))


def check_folder(folder: Path) -> None:
    """Refuses a folder that would be overwritten.

    Raises:
      ExportError: if it holds files, or is no folder.
    """
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"{folder}: is no folder; name a new one")
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder}: is not empty; name a new folder")


def write(
    folder: Path, config: Config, params: Mapping[str, Any], vocabulary: Vocabulary
) -> None:
    """Config, weights and SentencePiece files, into a folder that is made.

    Raises:
      ExportError: for a run that ``check`` refuses, or a folder that holds files.
    """
    from safetensors.numpy import save_file

    check(config.model)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {
        "config.json": model_config(config, vocabulary.size),
        "generation_config.json": generation_config(config),
        "tokenizer_config.json": _tokenizer_config(config),
        "vocab.json": {
            piece: i
            for i, piece in enumerate(vocabulary.pieces(range(vocabulary.size)))
        },
    }.items():
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(vocabulary.model_bytes)
    arrays = state_dict(config.model, params)
    path = folder / "model.safetensors"
    save_file(arrays, path, metadata={"format": "pt"})
    # Made for its owner alone; the user's mask decides, as for the other files.
    path.chmod((folder / "config.json").stat().st_mode)


def model_config(config: Config, vocabulary_size: int) -> dict[str, Any]:
    """``config.json``."""
    model, rates = config.model, config.regularization
    stacks = {
        f"{stack}_{name}": value
        for stack, layers in _stacks(model).items()
        for name, value in (
            ("layers", layers),
            ("ffn_dim", model.d_ff),
            ("attention_heads", model.num_heads),
            ("layerdrop", 0.0),
        )
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": vocabulary_size,
        "decoder_vocab_size": vocabulary_size,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "d_model": model.d_model,
        **stacks,
        "activation_function": "relu",
        "scale_embedding": True,
        "static_position_embeddings": True,
        "max_position_embeddings": model.max_length,
        "normalize_before": False,
        # Read by ``ctranslate2.py``; Transformers always has 1e-5.
        "layer_norm_epsilon": model.layer_norm_epsilon,
        "dropout": rates.dropout_rate,
        "attention_dropout": rates.attention_dropout_rate,
        "activation_dropout": rates.activation_dropout_rate,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "use_cache": True,
        "torch_dtype": "float32",
    }


def generation_config(config: Config) -> dict[str, Any]:
    """``generation_config.json``: the run's beam, in the only penalty it knows.

    There a score is divided by length^alpha; the paper's ((5 + length) / 6)^alpha has
    no counterpart, so runs with it decode a little differently there.
    """
    return {
        "num_beams": config.decode.beam_size,
        "length_penalty": config.decode.length_penalty_alpha,
        "early_stopping": "never",
        "max_length": config.model.max_length,
        "bad_words_ids": [[PAD], [UNK], [BOS]],
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
    }


def done_otherwise(config: Config) -> list[str]:
    """What the folder's own settings do in another way than the run; a line each."""
    decode, found = config.decode, []
    alpha = decode.length_penalty_alpha
    if decode.length_penalty == "wu2016" and alpha:
        found.append(
            f"length penalty: length^{alpha:g} there, ((5 + length) / 6)^{alpha:g} here"
        )
    found.append(
        f"at most {config.model.max_length} pieces there, source + "
        f"{decode.extra_length} here"
    )
    if config.model.dtype != "float32":
        found.append(f"float32 there, {config.model.dtype} here")
    return found


def _tokenizer_config(config: Config) -> dict[str, Any]:
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": config.data.source_language,
        "target_lang": config.data.target_language,
        "model_max_length": config.model.max_length,
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "separate_vocabs": False,
    }


def state_dict(model: ModelConfig, params: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The weights by the names they have there; kernels are [out, in] there."""
    arrays = {
        "model.shared.weight": _stream(params["shared_embedding"]),
        "final_logits_bias": np.zeros((1, len(params["shared_embedding"]))),
    }
    for stack, layers in _stacks(model).items():
        for n in range(layers):
            layer = _layer(params[stack], n)
            arrays |= _layer_arrays(f"model.{stack}.layers.{n}", layer)
    return {
        name: np.ascontiguousarray(x, np.float32) for name, x in sorted(arrays.items())
    }


def _stacks(model: ModelConfig) -> dict[str, int]:
    """Layers of each stack."""
    return {"encoder": model.num_layers, "decoder": model.layers_of_decoder}


def _layer_arrays(name: str, layer: Mapping[str, Any]) -> dict[str, np.ndarray]:
    arrays = {}
    for ours, theirs in ATTENTIONS.items():
        if ours not in layer:
            continue
        part = layer[ours]
        for projection, other in PROJECTIONS.items():
            kernel = _stream(part[projection]["kernel"].T)
            arrays[f"{name}.{theirs}.{other}.weight"] = kernel
            bias = part[projection].get("bias", np.zeros(len(kernel)))
            arrays[f"{name}.{theirs}.{other}.bias"] = bias
        kernel = part["output"]["kernel"]
        arrays[f"{name}.{theirs}.out_proj.weight"] = _stream(kernel).T
        bias = part["output"].get("bias", np.zeros(kernel.shape[1]))
        arrays[f"{name}.{theirs}.out_proj.bias"] = _stream(bias)
        norm = layer[f"{ours}_residual"]["norm"]
        arrays |= _norm_arrays(f"{name}.{theirs}_layer_norm", norm)
    inner, outer = layer["feed_forward"]["inner"], layer["feed_forward"]["outer"]
    arrays[f"{name}.fc1.weight"] = _stream(inner["kernel"].T)
    arrays[f"{name}.fc1.bias"] = inner["bias"]
    arrays[f"{name}.fc2.weight"] = _stream(outer["kernel"]).T
    arrays[f"{name}.fc2.bias"] = _stream(outer["bias"])
    norm = layer["feed_forward_residual"]["norm"]
    return arrays | _norm_arrays(f"{name}.final_layer_norm", norm)


def _norm_arrays(name: str, norm: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {
        f"{name}.weight": _stream(norm["scale"]),
        f"{name}.bias": _stream(norm["bias"]),
    }


def _layer(stack: Mapping[str, Any], n: int) -> Any:
    """Layer ``n`` of a stack whose arrays have a leading axis of layers."""
    if isinstance(stack, Mapping):
        return {name: _layer(part, n) for name, part in stack.items()}
    return np.asarray(stack)[n]


def _stream(x: Any) -> np.ndarray:
    """The last axis, features of the residual stream: even ones, then odd ones."""
    x = np.asarray(x)
    return np.concatenate([x[..., 0::2], x[..., 1::2]], axis=-1)
