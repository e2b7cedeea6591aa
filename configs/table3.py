"""Table 3 of "Attention Is All You Need": twenty variations of the base model.

Varies, one at a time: (A) the number of attention heads at a constant h * d_k,
(B) the size of the keys, (C) depth and width, (D) dropout and label smoothing,
(E) the kind of positions; and ``big``, several at once with three times the steps.

Every row is a function of base, so the same table exists at every scale:

    python -m experiments.sweep --config=configs/table3.py:grammar --workdir=runs/t3

    scale           corpus                        cost of all rows, one seed
    grammar         embedded, made by a grammar   6.7e13 FLOPs: 22 minutes on two cores
    multi30k_small  29,000 image captions         1.1e15 FLOPs: about 4 hours
    multi30k        the same                      5.7e16 FLOPs
    wmt14           the paper's English-German    2.8e19 FLOPs
    wmt14_fr        the paper's English-French    2.7e19 FLOPs

``python -m experiments.plan`` with the same --config prints the exact cost of every
row. At ``wmt14`` each row has the paper's numbers; what the other scales change
stands in ``SCALES``.

Outcome in the paper (newstest2013, PPL and BLEU stand beside each row below): one
head loses 0.9 BLEU and 32 heads lose 0.4; smaller keys hurt; deeper and wider is
better; no dropout loses 1.2; no smoothing improves PPL and costs 0.5 BLEU; learned
positions lose 0.1; big gains 0.6. Thirteen of the nineteen differences are
at most 0.5 BLEU, so one seed does not rank them.
"""

from collections.abc import Callable
from typing import Any

import ml_collections
from ml_collections.config_dict import placeholder

from configs import base as base_model
from transformer_ablation.config import Config, ConfigError, unknown_name
from transformer_ablation.sweep.rows import BASE, PaperResult, Row, fraction

TITLE = 'Table 3 of "Attention Is All You Need": variations on the Transformer'

Changes = Callable[[Config], dict[str, Any]]

# Differs from the paper: each block but wmt14 shrinks model, data and schedule.
MULTI30K: dict[str, Any] = {
    "data.corpus": "multi30k",
    "data.test_split": "test_2016_flickr",
    "data.vocabulary_size": 8000,
    "data.max_train_length": 63,  # no pair of Multi30k is longer
    "data.length_buckets": 1,
    "data.packed_length": 64,
    "data.tokens_per_batch": 4096,
    "model.num_layers": 3,
    "model.d_model": 256,
    "model.d_ff": 1024,
    "model.num_heads": 8,
    "model.d_k": 32,
    "model.d_v": 32,
    "model.max_length": 512,
    "model.rematerialize": "none",
    "optimizer.warmup_steps": 2000,
    "train.steps": 10_000,
    "train.evaluate_every_steps": 1000,
    "train.checkpoint_every_steps": 1000,
    "train.keep_checkpoints": 2,
    "train.log_every_steps": 50,
}
SCALES: dict[str, dict[str, Any]] = {
    "grammar": {
        "data.corpus": "grammar",
        "data.test_split": None,  # Table 3 is of the validation set
        "data.vocabulary_size": 3000,
        "data.max_train_length": 47,
        "data.length_buckets": 1,
        "data.packed_length": 48,
        "data.tokens_per_batch": 768,
        "model.num_layers": 3,
        "model.d_model": 64,
        "model.d_ff": 256,
        "model.num_heads": 4,
        "model.d_k": 16,
        "model.d_v": 16,
        "model.max_length": 256,
        "model.rematerialize": "none",  # an update of this size needs little memory
        "optimizer.warmup_steps": 450,
        "optimizer.learning_rate_scale": 0.68,
        "train.steps": 850,
        "train.evaluate_every_steps": 425,
        "train.checkpoint_every_steps": None,  # at the end only
        "train.keep_checkpoints": 1,
        "train.log_every_steps": 25,
        "train.sample_sentences": 0,  # a search to compile is long for a run of minutes
        "decode.sentences_per_batch": 128,
    },
    "multi30k": MULTI30K,
    "multi30k_small": {
        **MULTI30K,
        "data.vocabulary_size": 4000,
        "data.tokens_per_batch": 1024,
        "model.d_model": 128,
        "model.d_ff": 512,
        "model.num_heads": 4,
        "optimizer.warmup_steps": 1000,
        "train.steps": 3000,
        "train.keep_checkpoints": 1,
    },
    "wmt14": {},
    "wmt14_fr": {"data.target_language": "fr", "data.vocabulary_size": 32_000},
}


def get_config(scale: str = "grammar") -> ml_collections.ConfigDict:
    """The base model at a scale of ``SCALES``."""
    if scale not in SCALES:
        raise ConfigError(unknown_name("scale", scale, SCALES))
    return at_scale(SCALES[scale])


def at_scale(changes: dict[str, Any]) -> ml_collections.ConfigDict:
    """The paper's base with these fields changed."""
    config = base_model.get_config()
    for path, value in changes.items():
        section, name = path.split(".")
        if value is None:
            value = placeholder(config[section].get_type(name))
        config[section][name] = value
    return config


def heads(base: Config, num_heads: int) -> dict[str, Any]:
    """h heads of d_k = d_v = d_model / h, at a constant cost."""
    try:
        size = fraction(base, "model.d_model", 1, num_heads)
    except ConfigError as error:
        why = f"{num_heads} heads, where model.num_heads = {base.model.num_heads}"
        raise ConfigError([f"{why}: {text}" for text in error.problems]) from None
    return {"model.num_heads": num_heads, "model.d_k": size, "model.d_v": size}


def times_heads(numerator: int, denominator: int = 1) -> Changes:
    """Row A, as a multiple of base's heads."""
    factor = (numerator, denominator)
    return lambda base: heads(base, fraction(base, "model.num_heads", *factor))


def times(path: str, numerator: int, denominator: int = 1) -> Changes:
    """A multiple of one size, all else as in base."""
    return lambda base: {path: fraction(base, path, numerator, denominator)}


def depth(base: Config, numerator: int, denominator: int = 1) -> dict[str, Any]:
    """A multiple of the layers of both stacks."""
    fields = ["model.num_layers"]
    if base.model.decoder_layers is not None:
        fields.append("model.decoder_layers")
    return {path: fraction(base, path, numerator, denominator) for path in fields}


def layers(numerator: int, denominator: int) -> Changes:
    """``depth``, all else as in base."""
    return lambda base: depth(base, numerator, denominator)


def width(base: Config, numerator: int, denominator: int) -> dict[str, Any]:
    """d_model, d_k and d_v together; h and d_ff stay."""
    paths = ("model.d_model", "model.d_k", "model.d_v")
    return {path: fraction(base, path, numerator, denominator) for path in paths}


def learned_positions(base: Config) -> dict[str, Any]:
    """A trained vector for each of model.max_length positions."""
    return {"model.positions": "learned"}


def big(base: Config) -> dict[str, Any]:
    """Twice d_model, d_ff and h (d_k and d_v stay), more dropout, longer training."""
    # Section 6.1: the paper's English-French big model has dropout 0.1.
    french = base.data.corpus == "wmt14" and base.data.target_language == "fr"
    return {
        "model.d_model": 2 * base.model.d_model,
        "model.d_ff": 2 * base.model.d_ff,
        "model.num_heads": 2 * base.model.num_heads,
        "regularization.dropout_rate": 0.1 if french else 0.3,
        "train.steps": 3 * base.train.steps,
    }


def get_rows() -> list[Row]:
    """The rows in the paper's order."""
    dropout, smoothing = "regularization.dropout_rate", "regularization.label_smoothing"
    d_ff, d_k = "model.d_ff", "model.d_k"

    def row(name: str, label: str, changes: Changes, *printed: float) -> Row:
        """``printed``: the paper's PPL, BLEU and, where not blank, parameters."""
        ppl, bleu, *millions = printed
        result = PaperResult(ppl, bleu, millions[0] if millions else None)
        group = "big" if name == "big" else name.partition("_")[0]
        reason = "as the paper's big model" if name == "big" else None
        return Row(name, group, label, changes, result, reason)

    return [
        row("base", "base", BASE.changes, 4.92, 25.8, 65),
        row("A_h1", "one head", lambda b: heads(b, 1), 5.29, 24.9),
        row("A_h4", "half the heads", times_heads(1, 2), 5.00, 25.5),
        row("A_h16", "twice the heads", times_heads(2), 4.91, 25.8),
        row("A_h32", "four times the heads", times_heads(4), 5.01, 25.4),
        row("B_dk16", "keys of a quarter", times(d_k, 1, 4), 5.16, 25.1, 58),
        row("B_dk32", "keys of half", times(d_k, 1, 2), 5.01, 25.4, 60),
        row("C_N2", "a third of the layers", layers(1, 3), 6.11, 23.7, 36),
        row("C_N4", "two thirds of the layers", layers(2, 3), 5.19, 25.3, 50),
        row(
            "C_N8",
            "four thirds of the layers",
            layers(4, 3),
            4.88,
            25.5,
            80,
        ),
        row("C_d256", "half the width", lambda b: width(b, 1, 2), 5.75, 24.5, 28),
        row("C_d1024", "twice the width", lambda b: width(b, 2, 1), 4.66, 26.0, 168),
        row("C_ff1024", "half of d_ff", times(d_ff, 1, 2), 5.12, 25.4, 53),
        row("C_ff4096", "twice d_ff", times(d_ff, 2), 4.75, 26.2, 90),
        row("D_drop0.0", "no dropout", lambda b: {dropout: 0.0}, 5.77, 24.6),
        row("D_drop0.2", "dropout 0.2", lambda b: {dropout: 0.2}, 4.95, 25.5),
        row("D_ls0.0", "no label smoothing", lambda b: {smoothing: 0.0}, 4.67, 25.3),
        row("D_ls0.2", "label smoothing 0.2", lambda b: {smoothing: 0.2}, 5.47, 25.7),
        row("E_learned_pos", "learned positions", learned_positions, 4.92, 25.7),
        row("big", "big", big, 4.33, 26.4, 213),
    ]
