"""Faults that only two fields together have."""

from transformer_ablation.config.architectures import PUBLISHED, UNREAD
from transformer_ablation.config.data_contradictions import data_contradictions
from transformer_ablation.config.sections import Config, get

# The largest head of cuDNN's fused attention on all GPUs that have it.
LARGEST_CUDNN_HEAD = 128


def contradictions(config: Config) -> list[str]:
    """Faults that only two fields together have."""
    return [
        *_model_contradictions(config),
        *data_contradictions(config),
        *_training_contradictions(config),
    ]


def _model_contradictions(config: Config) -> list[str]:
    model, data = config.model, config.data
    problems = _architecture_contradictions(config)
    sizes = model.d_ff, model.num_heads, model.d_k, model.d_v
    if model.architecture == "transformer" and sizes == (1, 1, 1, 1):
        problems.append(
            "model.architecture: transformer with d_ff, num_heads, d_k and d_v of 1, "
            "which is what models that do not read them have; give it sizes of its own"
        )
    if model.decoder_layers == model.num_layers:
        problems.append(
            f"model.decoder_layers: {model.decoder_layers} is model.num_layers; make "
            "it None, which means the same, so that equal models have equal configs"
        )
    if model.positions == "sinusoidal" and model.d_model % 2:
        problems.append(
            f"model.d_model: {model.d_model} is odd, but sinusoidal positions pair a "
            "sine with a cosine; make it even or set model.positions to learned or none"
        )
    halves = model.positions == "sinusoidal" and model.sinusoids == "halves"
    if halves and model.d_model == 2:
        problems.append(
            "model.sinusoids: 'halves' spaces d_model / 2 wavelengths from end to end, "
            "so it needs two of them; make model.d_model at least 4"
        )
    if model.positions == "learned" and model.max_length <= data.max_train_length:
        problems.append(
            f"model.max_length: {model.max_length} learned positions are too few for "
            f"data.max_train_length = {data.max_train_length} pieces and the end of "
            f"sentence; it must be at least {data.max_train_length + 1}"
        )
    return problems + _attention_contradictions(config)


def _architecture_contradictions(config: Config) -> list[str]:
    """What the architecture has no use for, or cannot be."""
    model, problems = config.model, []
    unread = UNREAD[model.architecture].items()
    wrong = [(path, value) for path, value in unread if get(config, path) != value]
    if wrong:
        told = ", ".join(f"{path} = {get(config, path)!r}" for path, _ in wrong)
        wrong += PUBLISHED.get(model.architecture, {}).items()
        flags = " ".join(f"--config.{path}={value}" for path, value in wrong)
        problems.append(
            f"model.architecture: {model.architecture!r} does not read {told}; set "
            f"{flags} (a row: config.of_architecture), or choose another"
        )
    if model.recurrent_attention != "none" and model.reverse_source:
        problems.append(
            "model.reverse_source: True, but with model.recurrent_attention = "
            f"{model.recurrent_attention!r} the source is read both ways; make it False"
        )
    if model.recurrent_attention != "none" and model.d_model % 2:
        problems.append(
            f"model.d_model: {model.d_model} is odd, but with model.recurrent_attention"
            f" = {model.recurrent_attention!r} each of two directions has half of it; "
            "make it even"
        )
    if model.architecture == "convolutional" and model.compatibility == "additive":
        problems.append(
            "model.compatibility: 'additive', but a convolutional decoder attends by "
            "products; make it scaled_dot or dot"
        )
    return problems


def _attention_contradictions(config: Config) -> list[str]:
    """What banded attention, ``jax.nn.dot_product_attention`` and cuDNN do not do."""
    model, regularization = config.model, config.regularization
    name, problems = model.attention_implementation, []
    path, own = f"model.attention_implementation: {name!r}", "or make it 'own'"
    if name == "own":
        return []
    if name == "banded":
        if model.attention_window is None:
            problems.append(
                f"{path} is of restricted attention, but model.attention_window = None;"
                f" give that a number of positions, {own}"
            )
        return problems
    if model.compatibility == "additive":
        problems.append(
            f"{path} computes products, but model.compatibility = 'additive'; make "
            f"that scaled_dot or dot, {own}"
        )
    if regularization.attention_dropout_rate:
        problems.append(
            f"{path} has no dropout of attention weights, but "
            "regularization.attention_dropout_rate = "
            f"{regularization.attention_dropout_rate:g}; make that 0, {own}"
        )
    if name == "cudnn" and model.dtype == "float32":
        problems.append(
            f"{path} takes half precision, but model.dtype = 'float32'; make that "
            "bfloat16, or the implementation 'own' or 'xla'"
        )
    if name == "cudnn" and (size := max(model.d_k, model.d_v)) > LARGEST_CUDNN_HEAD:
        problems.append(
            f"{path} takes heads of at most {LARGEST_CUDNN_HEAD}, but model.d_k or "
            f"model.d_v is {size}; make them smaller, or the implementation 'own' or "
            "'xla'"
        )
    return problems


def _training_contradictions(config: Config) -> list[str]:
    data, optimizer, train = config.data, config.optimizer, config.train
    problems = []
    row, what = data.max_train_length + 1, "a sentence of data.max_train_length"
    if data.packed_length is not None and data.packed_length < row:
        problems.append(
            f"data.packed_length: a row of {data.packed_length} cannot hold a sentence "
            f"of data.max_train_length = {data.max_train_length} pieces and its end; "
            f"it must be at least {row}"
        )
    elif data.packed_length is not None:
        row, what = data.packed_length, "a row of data.packed_length"
    least = row * optimizer.accumulation_steps
    if data.tokens_per_batch < least:
        problems.append(
            f"data.tokens_per_batch: {data.tokens_per_batch} cannot hold {what} = "
            f"{data.packed_length or data.max_train_length} pieces in each of "
            f"{optimizer.accumulation_steps} accumulation steps; "
            f"it must be at least {least}"
        )
    every, count = train.checkpoint_every_steps, config.decode.average_checkpoints
    made = train.checkpoints_by_steps
    if not train.checkpoints_by_clock and made < count:
        problems.append(
            f"decode.average_checkpoints: {count} are averaged, but "
            f"train.checkpoint_every_steps = {every} makes {made} in "
            f"train.steps = {train.steps}; train with "
            f"--config.train.checkpoint_every_steps={max(1, train.steps // count)}"
        )
    if count > train.keep_checkpoints:
        problems.append(
            f"decode.average_checkpoints: {count} are "
            f"averaged, but train.keep_checkpoints = {train.keep_checkpoints} are "
            f"kept; train with --config.train.keep_checkpoints={count}"
        )
    return problems
