"""Which fields of a config a table shows, and how: the paper's columns, then words.

Configs are nested plain mappings here, as they stand in ``sweep.json``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from transformer_ablation.config import UNREAD

# Columns of Table 3 that describe the model: heading, field.
PAPER_COLUMNS = {
    "N": "model.num_layers",
    "d_model": "model.d_model",
    "d_ff": "model.d_ff",
    "h": "model.num_heads",
    "d_k": "model.d_k",
    "d_v": "model.d_v",
    "P_drop": "regularization.dropout_rate",
    "ε_ls": "regularization.label_smoothing",
    "steps": "train.steps",
}

# What Table 3 of the paper was measured on: its base model (sections 5 and 6.2).
PAPER_SETTING = {
    "data.corpus": "wmt14",
    "data.source_language": "en",
    "data.target_language": "de",
    "data.vocabulary_size": 37_000,
    "data.tokens_per_batch": 25_000,
    "model.num_layers": 6,
    "model.d_model": 512,
    "model.d_ff": 2048,
    "model.num_heads": 8,
    "model.d_k": 64,
    "model.d_v": 64,
    "regularization.dropout_rate": 0.1,
    "regularization.label_smoothing": 0.1,
    "optimizer.warmup_steps": 4000,
    "train.steps": 100_000,
}

# What else the paper's text says of the model and its training (sections 3 and 5).
PAPER_CHOICES = {
    "model.architecture": "transformer",
    "model.positions": "sinusoidal",
    "model.sinusoids": "interleaved",
    "model.norm": "post",
    "model.tied_embeddings": "all",
    "model.scale_embeddings": True,
    "model.scale_logits": False,
    "model.compatibility": "scaled_dot",
    "model.attention_window": None,
    "model.decoder_layers": None,
    "model.projection_biases": False,
    "regularization.attention_dropout_rate": 0.0,
    "regularization.activation_dropout_rate": 0.0,
    "optimizer.learning_rate_scale": 1.0,
    "optimizer.beta1": 0.9,
    "optimizer.beta2": 0.98,
    "optimizer.epsilon": 1e-9,
    "optimizer.clip_norm": None,
    "data.holdout_pairs": None,
    "data.packed_length": None,
    "decode.beam_size": 4,
    "decode.length_penalty": "wu2016",
    "decode.length_penalty_alpha": 0.6,
    "decode.extra_length": 50,
    "decode.average_checkpoints": 1,
}

# What the text leaves open, as this project's configs/base.py has it.
OUR_CHOICES = {
    "model.attention_implementation": "own",
    "model.recurrent_cell": "lstm",
    "model.recurrent_attention": "none",
    "model.reverse_source": False,
    "model.kernel_width": 3,
    "model.kernel_dilation": "none",
    "model.layer_norm_epsilon": 1e-6,
    "model.embedding_stddev": None,
    "regularization.label_smoothing_convention": "all_classes",
    "regularization.label_smoothing_entropy": "kept",
    "data.max_train_length": 255,
    "data.filter_duplicates": False,
    "data.filter_overlap": False,
    "data.filter_copies": False,
    "data.filter_max_length_ratio": None,
    "data.filter_max_words": None,
    "data.filter_characters": False,
}

# Fields that are another run of the same row, or another place of the same data.
NOT_OF_THE_ROW = ("train.seed", "data.directory")

# So many fields that one row each varies still get columns of their own.
FEW_FIELDS = 4

# Changes whose plain reading is clearer than `field = value (base: value)`.
WORDING = {
    "model.positions": "{new} positions instead of {old}",
    "model.norm": "{new}-norm instead of {old}-norm",
    "model.tied_embeddings": "embeddings tied: {new} instead of {old}",
    "model.compatibility": "{new} compatibility instead of {old}",
    "model.attention_window": "attention window {new} instead of {old}",
    "model.decoder_layers": "{new} decoder layers",
    "model.architecture": "{new} instead of {old}",
    "model.recurrent_attention": "attention of the decoder: {new} instead of {old}",
    "decode.average_checkpoints": "average of {new} checkpoints instead of {old}",
}


def flatten(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """``{"section.field": value}``."""
    return {
        f"{section}.{field}": value
        for section, fields in config.items()
        for field, value in fields.items()
    }


def unread(config: Mapping[str, Any]) -> frozenset[str]:
    """Fields that a config's architecture does not read."""
    return frozenset(UNREAD.get(config.get("model", {}).get("architecture"), ()))


def row_differences(
    base: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """``{"section.field": (base's value, the row's value)}`` where they differ.

    A field that the row's architecture does not read is none of them.
    """
    old, new, skipped = flatten(base), flatten(config), unread(config)
    paths = [p for p in [*old, *(p for p in new if p not in old)]]
    return {
        path: (old.get(path), new.get(path))
        for path in paths
        if path not in NOT_OF_THE_ROW
        and path not in skipped
        and old.get(path) != new.get(path)
    }


def shown_columns(
    base: Mapping[str, Any], configs: Iterable[Mapping[str, Any]], paper: bool
) -> dict[str, str]:
    """All the paper's columns beside its numbers; else those that some row varies.

    Behind them stands every other field that two rows vary, under its dotted path. One
    that a single row varies is said in words, unless the table has no paper's numbers
    and few such fields.
    """
    counts: dict[str, int] = {}
    for config in configs:
        for path in row_differences(base, config):
            counts[path] = counts.get(path, 0) + 1
    own = {path: n for path, n in counts.items() if path not in PAPER_COLUMNS.values()}
    single = [path for path, n in own.items() if n == 1 and path not in WORDING]
    few = not paper and len(single) <= FEW_FIELDS
    columns = {
        name: path for name, path in PAPER_COLUMNS.items() if paper or path in counts
    }
    shown = [p for p, n in own.items() if n > 1 or (few and p in single)]
    return {**columns, **{path: path for path in sorted(shown)}}


def cell(path: str, value: Any) -> str:
    """A config value as the paper prints it: 100,000 steps are 100K."""
    if path == "train.steps" and value and value % 1000 == 0:
        return f"{value // 1000}K"
    return word(value)


def word(value: Any) -> str:
    """A config value in words: None is none, True is on."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def counted(number: int | None, thing: str, things: str | None = None) -> str:
    """``1 row``, ``2,000 rows``; ``things`` where an s does not make the plural."""
    if number is None:
        return f"unknown number of {things or thing + 's'}"
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def other_changes(
    base: Mapping[str, Any], config: Mapping[str, Any], columns: Mapping[str, str]
) -> str:
    """What none of the columns says, in words, separated by semicolons."""
    return "; ".join(
        _phrase(path, word(old), word(new))
        for path, (old, new) in row_differences(base, config).items()
        if path not in columns.values()
    )


def _phrase(path: str, old: str, new: str) -> str:
    if path == "model.positions" and new == "none":
        return f"no positions instead of {old}"
    if path in WORDING:
        return WORDING[path].format(new=new, old=old)
    return f"{path} {new} instead of {old}"


def setting_differences(base: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """``{field: (its value there, base's value)}`` where base is not the paper's.

    Of what the paper does not say, ``OUR_CHOICES`` is what base is compared with.
    """
    here, skipped = flatten(base), unread(base)
    known = {**PAPER_SETTING, **PAPER_CHOICES, **OUR_CHOICES}
    return {
        path: (value, here[path])
        for path, value in known.items()
        if path in here and path not in skipped and here[path] != value
    }


def counts_as_the_paper(base: Mapping[str, Any]) -> bool:
    """Whether rows derived from this base have the sizes of the paper's rows."""
    differing = setting_differences(base)
    return not any(path.startswith("model.") for path in differing)
