"""The schema of a run: one frozen dataclass a section, and the function that
turns a ``ConfigDict`` (or any nested mapping) into them.

No field has a default here: every default stands once, in ``configs/base.py``.
"""

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class ConfigError(ValueError):
    """A config that cannot be run; the message has one line a fault."""

    def __init__(self, problems: str | Iterable[str]):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclasses.dataclass(frozen=True)
class Rule:
    """What one field may hold: ``check`` returns True for an allowed value."""

    types: tuple[type, ...]
    allowed: str
    check: Callable[[Any], bool]


def _field(types: type | tuple[type, ...], allowed: str, check: Callable) -> Any:
    types = types if isinstance(types, tuple) else (types,)
    return dataclasses.field(metadata={"rule": Rule(types, allowed, check)})


# More than any size or count can be; products of two still fit a float.
LARGEST = 10**15


def integer(minimum: int, maximum: int | None = None, optional: bool = False) -> Any:
    """A whole number from ``minimum`` to ``maximum`` (inclusive)."""
    upper = LARGEST if maximum is None else maximum
    allowed = f"a whole number of at least {minimum}"
    if maximum is not None:
        allowed = f"a whole number from {minimum} to {maximum}"
    if optional:
        allowed += ", or None"
    types = (int, type(None)) if optional else (int,)
    return _field(types, allowed, lambda x: x is None or minimum <= x <= upper)


def real(
    minimum: float, maximum: float, includes: str = "[]", optional: bool = False
) -> Any:
    """A finite number of an interval; ``includes`` gives its two brackets."""

    def check(x: Any) -> bool:
        if x is None:
            return True
        try:
            x = float(x)
        except OverflowError:  # a whole number beyond the largest float
            return False
        low = x >= minimum if includes[0] == "[" else x > minimum
        high = x <= maximum if includes[1] == "]" else x < maximum
        return math.isfinite(x) and low and high

    allowed = f"a number in {includes[0]}{minimum:g}, {maximum:g}{includes[1]}"
    if math.isinf(maximum):
        allowed = f"a finite number {'>=' if includes[0] == '[' else '>'} {minimum:g}"
        if math.isinf(minimum):
            allowed = "a finite number"
    if optional:
        allowed += ", or None"
    types = (float, int, type(None)) if optional else (float, int)
    return _field(types, allowed, check)


def choice(*values: str) -> Any:
    """One of a few words."""
    return _field(str, "one of " + ", ".join(values), lambda x: x in values)


def flag() -> Any:
    """True or False."""
    return _field(bool, "True or False", lambda x: True)


def text(optional: bool = False) -> Any:
    """Any non-empty string."""
    types = (str, type(None)) if optional else (str,)
    allowed = "a non-empty string" + (", or None" if optional else "")
    return _field(types, allowed, lambda x: x is None or x != "")


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The network (section 3 of the paper). ``d_k`` and ``d_v`` are per head.

    ``num_layers`` are those of either stack, or of the encoder where the decoder has
    ``decoder_layers``. A field that the architecture does not read stands at its value
    in ``UNREAD``.
    """

    architecture: str = choice("transformer", "recurrent", "convolutional")
    num_layers: int = integer(1)
    decoder_layers: int | None = integer(1, optional=True)
    d_model: int = integer(1)
    d_ff: int = integer(1)
    num_heads: int = integer(1)
    d_k: int = integer(1)
    d_v: int = integer(1)
    positions: str = choice("sinusoidal", "learned", "none")
    sinusoids: str = choice("interleaved", "halves")
    max_length: int = integer(2)
    norm: str = choice("post", "pre")
    layer_norm_epsilon: float = real(0, 1, "()")
    tied_embeddings: str = choice("all", "decoder", "none")
    scale_embeddings: bool = flag()
    embedding_stddev: float | None = real(0, math.inf, "()", optional=True)
    scale_logits: bool = flag()
    compatibility: str = choice("scaled_dot", "dot", "additive")
    attention_window: int | None = integer(1, optional=True)
    projection_biases: bool = flag()
    attention_implementation: str = choice("own", "banded", "xla", "cudnn")
    rematerialize: str = choice("none", "cheap", "layers")
    recurrent_cell: str = choice("lstm", "gru")
    recurrent_attention: str = choice("none", "additive")
    reverse_source: bool = flag()
    kernel_width: int = integer(1)
    kernel_dilation: str = choice("none", "doubling")
    dtype: str = choice("float32", "bfloat16", "float16")

    @property
    def layers_of_decoder(self) -> int:
        """Layers of the decoder's stack; the encoder's are ``num_layers``."""
        return self.num_layers if self.decoder_layers is None else self.decoder_layers


@dataclasses.dataclass(frozen=True)
class RegularizationConfig:
    """Section 5.4. The paper drops residual and embedding sums only."""

    dropout_rate: float = real(0, 1, "[)")
    attention_dropout_rate: float = real(0, 1, "[)")
    activation_dropout_rate: float = real(0, 1, "[)")
    label_smoothing: float = real(0, 1, "[)")
    label_smoothing_convention: str = choice(
        "all_classes", "other_classes", "other_pieces"
    )
    label_smoothing_entropy: str = choice("kept", "subtracted")


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """Section 5.3. ``accumulation_steps`` splits an update, it adds none."""

    warmup_steps: int = integer(1)
    learning_rate_scale: float = real(0, math.inf, "(]")
    beta1: float = real(0, 1, "[)")
    beta2: float = real(0, 1, "[)")
    epsilon: float = real(0, math.inf, "(]")
    clip_norm: float | None = real(0, math.inf, "(]", optional=True)
    accumulation_steps: int = integer(1)


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Corpus, vocabulary and batches (section 5.1).

    ``tokens_per_batch`` counts padded target positions of one update over all
    devices; ``max_train_length`` counts the pieces of one side of a training
    pair, without the end of sentence. ``packed_length`` is the length of rows
    that hold several pairs; None gives each pair a row of its own.
    ``holdout_pairs`` are taken out of the training file for each other split
    that has no file; ``holdout_seed`` decides which. The filters leave training
    pairs out, by their text; docs/data.md says which.
    """

    corpus: str = choice("grammar", "multi30k", "wmt14", "parallel_files")
    directory: str | None = text(optional=True)
    source_language: str = text()
    target_language: str = text()
    train_split: str = text()
    validation_split: str = text()
    test_split: str | None = text(optional=True)
    holdout_pairs: int | None = integer(1, optional=True)
    holdout_seed: int = integer(0, 2**31 - 1)
    vocabulary_size: int = integer(300, 1_000_000)
    max_train_length: int = integer(1)
    filter_duplicates: bool = flag()
    filter_overlap: bool = flag()
    filter_copies: bool = flag()
    filter_max_length_ratio: float | None = real(1, math.inf, "(]", optional=True)
    filter_max_words: int | None = integer(1, optional=True)
    filter_characters: bool = flag()
    length_buckets: int = integer(1, 64)
    packed_length: int | None = integer(1, optional=True)
    tokens_per_batch: int = integer(1)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How long and how often; ``steps`` are updates of the parameters.

    At every evaluation TensorBoard is given translations of ``sample_sentences``
    validation sentences, and with ``attention_images`` pictures of attention.
    """

    steps: int = integer(1)
    seed: int = integer(0, 2**31 - 1)
    evaluate_every_steps: int | None = integer(1, optional=True)
    checkpoint_every_steps: int | None = integer(1, optional=True)
    checkpoint_every_minutes: float | None = real(0, math.inf, "(]", optional=True)
    keep_checkpoints: int = integer(1)
    log_every_steps: int = integer(1)
    sample_sentences: int = integer(0, 64)
    attention_images: bool = flag()


@dataclasses.dataclass(frozen=True)
class DecodeConfig:
    """Beam search (section 6.1); at most source pieces + ``extra_length`` pieces."""

    beam_size: int = integer(1, 1024)
    length_penalty: str = choice("wu2016", "power")
    length_penalty_alpha: float = real(-math.inf, math.inf)
    extra_length: int = integer(1)
    average_checkpoints: int = integer(1)
    sentences_per_batch: int = integer(1)


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that defines a run."""

    model: ModelConfig
    regularization: RegularizationConfig
    optimizer: OptimizerConfig
    data: DataConfig
    train: TrainConfig
    decode: DecodeConfig


SECTIONS: dict[str, Any] = {
    f.name: f.type for f in dataclasses.fields(Config) if isinstance(f.type, type)
}
FIELDS: dict[str, dataclasses.Field] = {
    f"{name}.{f.name}": f
    for name, section in SECTIONS.items()
    for f in dataclasses.fields(section)
}

_OF_TRANSFORMERS = {
    "model.decoder_layers": None,
    "model.d_ff": 1,
    "model.num_heads": 1,
    "model.d_k": 1,
    "model.d_v": 1,
    "model.norm": "post",
    "model.layer_norm_epsilon": 1e-6,
    "model.attention_window": None,
    "model.projection_biases": False,
    "model.attention_implementation": "own",
    "model.rematerialize": "none",
    "regularization.activation_dropout_rate": 0.0,
}
_OF_RECURRENT = {
    "model.recurrent_cell": "lstm",
    "model.recurrent_attention": "none",
    "model.reverse_source": False,
}
_OF_CONVOLUTIONAL = {"model.kernel_width": 3, "model.kernel_dilation": "none"}
# Fields that an architecture does not read, and the only value they may then have: so
# two configs of one model are equal, and no field is varied that changes nothing.
UNREAD: dict[str, dict[str, Any]] = {
    "transformer": {**_OF_RECURRENT, **_OF_CONVOLUTIONAL},
    "recurrent": {
        **_OF_TRANSFORMERS,
        "model.positions": "none",
        "model.compatibility": "scaled_dot",
        "regularization.attention_dropout_rate": 0.0,
        **_OF_CONVOLUTIONAL,
    },
    "convolutional": {**_OF_TRANSFORMERS, **_OF_RECURRENT},
}


# What an architecture was published with and hardly learns without: scores of products
# that are not divided need embeddings as small as these.
PUBLISHED: dict[str, dict[str, Any]] = {
    "convolutional": {
        "model.positions": "learned",
        "model.scale_embeddings": False,
        "model.compatibility": "dot",
    }
}


def of_architecture(name: str) -> dict[str, Any]:
    """``{"section.field": value}`` that makes any config one of an architecture.

    What it does not read, and what it was published with; all else stays as it is. For
    a row, or for ``replace``.
    """
    return {"model.architecture": name, **UNREAD[name], **PUBLISHED.get(name, {})}


# Languages and splits of each corpus; a user's own files have any.
LANGUAGES = {
    "grammar": ("en", "de"),
    "multi30k": ("en", "de", "fr"),
    "wmt14": ("en", "de", "fr"),
}
SPLITS = {
    "grammar": ("train", "validation", "test"),
    "multi30k": ("train", "validation", "test_2016_flickr", "test_2017_flickr"),
    "wmt14": ("train", "validation", "test"),
}
# The largest head of cuDNN's fused attention on all GPUs that have it.
LARGEST_CUDNN_HEAD = 128
# What names a user's own files: NAME.LANGUAGE or NAME.LANGUAGE-LANGUAGE.tsv.
FILE_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
# Words with another meaning in the names of files or in what is written of them.
RESERVED_LANGUAGES = ("gz", "pair", "pairs", "checks")
RESERVED_SPLITS = ("all",)


def from_mapping(mapping: Mapping[str, Any]) -> Config:
    """The frozen config of a nested mapping or ``ConfigDict``.

    Raises:
      ConfigError: with every fault at once, each with its path, its value and
        what is allowed there.
    """
    if not hasattr(mapping, "items"):
        sections_text = ", ".join(SECTIONS)
        raise ConfigError(f"{mapping!r} is not a config; it must hold {sections_text}")
    problems: list[str] = []
    sections = {}
    for name in mapping:
        if name not in SECTIONS:
            problems.append(f"{name}: unknown section{suggestion(str(name))}")
    for name, section in SECTIONS.items():
        given = mapping.get(name)
        if name not in mapping:
            problems.append(f"{name}: missing section")
            continue
        if not hasattr(given, "items"):
            problems.append(f"{name}: {given!r} is not a section; it must hold fields")
            continue
        sections[name] = _section(name, section, given, problems)
    if problems:
        raise ConfigError(problems)
    config = Config(**sections)
    problems = contradictions(config)
    if problems:
        raise ConfigError(problems)
    return config


def _section(name: str, section: Any, given: Any, problems: list[str]) -> Any:
    """One section as a dataclass; faults are appended to ``problems``."""
    values = {}
    for key in given:
        if f"{name}.{key}" not in FIELDS:
            problems.append(f"{name}.{key}: unknown field{suggestion(f'{name}.{key}')}")
    for f in dataclasses.fields(section):
        path = f"{name}.{f.name}"
        if f.name not in given:
            problems.append(f"{path}: missing; {f.metadata['rule'].allowed}")
            continue
        value = given[f.name]
        fault = field_fault(path, value)
        if fault:
            problems.append(fault)
        else:
            values[f.name] = _canonical(f, value)
    return None if problems else section(**values)


def _canonical(f: dataclasses.Field, value: Any) -> Any:
    """Whole numbers given for a real field become floats, so hashes agree."""
    takes_float = float in f.metadata["rule"].types
    if takes_float and type(value) is int:
        return float(value)
    return value


def field_fault(path: str, value: Any) -> str | None:
    """What is wrong with a value at a path, or None."""
    rule: Rule = FIELDS[path].metadata["rule"]
    # bool is an int in Python; here it is not.
    if type(value) not in rule.types:
        return f"{path}: {value!r} is not allowed; it must be {rule.allowed}"
    if not rule.check(value):
        return f"{path}: {value!r} is not allowed; it must be {rule.allowed}"
    return None


def suggestion(path: str) -> str:
    """`; did you mean X?` with the nearest known path, else what there is."""
    section, _, name = path.rpartition(".")
    known = list(FIELDS) if section else list(SECTIONS) + list(FIELDS)
    by_name = {p.rpartition(".")[2]: p for p in reversed(known)}
    near = difflib.get_close_matches(name, by_name, n=1)
    if near:
        return f"; did you mean {by_name[near[0]]}?"
    if section in SECTIONS:
        names = [p.rpartition(".")[2] for p in FIELDS if p.startswith(f"{section}.")]
        return f"; {section} has {', '.join(names)}"
    return f"; there are {', '.join(SECTIONS)}"


def unknown_name(kind: str, name: str, known: Iterable[str], nearest: int = 1) -> str:
    """``unknown KIND 'x'; did you mean y? The KINDs are: ...``."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=nearest)
    start = f"did you mean {' or '.join(near)}? The" if near else "the"
    return f"unknown {kind} {name!r}; {start} {kind}s are: {', '.join(known)}"


def contradictions(config: Config) -> list[str]:
    """Faults that only two fields together have."""
    return [
        *_model_contradictions(config),
        *_data_contradictions(config),
        *_training_contradictions(config),
    ]


def _model_contradictions(config: Config) -> list[str]:
    model, data = config.model, config.data
    problems = _architecture_contradictions(config)
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
            f"{flags} (a row: of_architecture of config.py), or choose another"
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


def _data_contradictions(config: Config) -> list[str]:
    data = config.data
    named = _file_names if data.corpus == "parallel_files" else _corpus_names
    problems = named(data)
    if data.source_language == data.target_language:
        problems.append(
            f"data.target_language: {data.target_language!r} is the source language too"
        )
    if data.train_split in (data.validation_split, data.test_split):
        problems.append(
            f"data.train_split: {data.train_split!r} is also scored; "
            "train on one split and score others"
        )
    if data.packed_length is not None and data.length_buckets != 1:
        problems.append(
            f"data.length_buckets: {data.length_buckets} buckets, but packed rows "
            f"(data.packed_length = {data.packed_length}) have one shape; make it 1, "
            "or data.packed_length None"
        )
    if data.validation_split == data.test_split:
        problems.append(
            f"data.test_split: {data.test_split!r} is the validation split too; "
            "name another or None"
        )
    return problems


def _splits_of(data: DataConfig) -> list[tuple[str, str]]:
    """(field, name) of every split that the config uses."""
    fields = ("train_split", "validation_split", "test_split")
    named = [(field, getattr(data, field)) for field in fields]
    return [(field, name) for field, name in named if name is not None]


def _corpus_names(data: DataConfig) -> list[str]:
    """Languages and splits that a corpus of fixed ones does not have."""
    problems = []
    languages = (data.source_language, data.target_language)
    known = LANGUAGES[data.corpus]
    for field in ("source_language", "target_language"):
        if getattr(data, field) not in known:
            problems.append(
                f"data.{field}: corpus {data.corpus!r} has no "
                f"{getattr(data, field)!r}; it has {', '.join(known)}"
            )
    if len(set(languages)) == 2 and "en" not in languages and not problems:
        problems.append(
            f"data.target_language: corpus {data.corpus!r} pairs every language with "
            f"English; {'-'.join(languages)} is not in it"
        )
    for field, split in _splits_of(data):
        if split not in SPLITS[data.corpus]:
            problems.append(
                f"data.{field}: corpus {data.corpus!r} has no split {split!r}; "
                f"it has {', '.join(SPLITS[data.corpus])}"
            )
    if data.holdout_pairs is not None:
        problems.append(
            f"data.holdout_pairs: {data.holdout_pairs}, but corpus {data.corpus!r} has "
            "splits of its own; make it None (it is of 'parallel_files' alone)"
        )
    return problems


def _file_names(data: DataConfig) -> list[str]:
    """Languages and splits that cannot be part of the name of a file."""
    problems = []
    if data.directory is None:
        problems.append(
            "data.directory: corpus 'parallel_files' is text of your own; name its "
            "folder, as in --config.data.directory=DIR"
        )
    languages = (
        (field, getattr(data, field), RESERVED_LANGUAGES)
        for field in ("source_language", "target_language")
    )
    splits = ((field, name, RESERVED_SPLITS) for field, name in _splits_of(data))
    for field, name, reserved in (*languages, *splits):
        if not FILE_WORD.fullmatch(name) or name.lower() in reserved:
            problems.append(
                f"data.{field}: {name!r} cannot name files of corpus 'parallel_files'; "
                "it must be at most 64 ASCII letters, digits, _ and -, "
                f"not begin with - and not be any of {', '.join(reserved)}"
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
    made = 1 if every is None else -(-train.steps // every)
    if train.checkpoint_every_minutes is None and made < count:
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


def to_mapping(config: Config) -> dict[str, dict[str, Any]]:
    """The config as nested plain values, ready for JSON."""
    return dataclasses.asdict(config)


def get(config: Config, path: str) -> Any:
    """The value at ``section.field``."""
    section, _, name = path.partition(".")
    return getattr(getattr(config, section), name)


def replace(config: Config, changes: Mapping[str, Any]) -> Config:
    """The config with ``{"section.field": value}`` changed and checked again."""
    mapping = to_mapping(config)
    unknown = [p for p in changes if p not in FIELDS]
    if unknown:
        raise ConfigError(f"{p}: unknown field{suggestion(p)}" for p in unknown)
    for path, value in changes.items():
        section, _, name = path.partition(".")
        mapping[section][name] = value
    return from_mapping(mapping)


def differences(a: Config, b: Config) -> dict[str, tuple[Any, Any]]:
    """``{"section.field": (value in a, value in b)}`` where the two differ."""
    pairs = {path: (get(a, path), get(b, path)) for path in FIELDS}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
