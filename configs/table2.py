"""Table 2 of the paper: the Transformer beside the models that it replaced.

``--config=configs/table2.py:SCALE`` trains all rows with as many updates as base,
``SCALE,flops`` with as many FLOPs; the scales are those of table3, and multi30k_fr and
multi30k_small_fr. A sweep has one language pair; ``python -m experiments.table2
--workdirs=A,B`` puts two beside each other as the paper does.

As in section 6.1 BLEU is of the test set, by parameters averaged over the last 5
checkpoints, of big's the last 20, where the paper saved every ten minutes: base's 12
hours are 72 such intervals, big's 3.5 days 504. Other rows save and average as base.
Learning rates are those of ``RATES``. Rows have base's N, d_model and dropout. The
recurrent and convolutional ones are of the kind of the paper's competitors, not these
systems, which were deeper, had residual sums, and GNMT reinforcement: their printed
numbers stand beside the row of their kind.
"""

from collections.abc import Callable
from typing import Any

import ml_collections

from configs import table3
from transformer_ablation.config import (
    Config,
    ConfigError,
    of_architecture,
    replace,
    unknown_name,
)
from transformer_ablation.model.accounting import step_flops
from transformer_ablation.sweep.rows import BASE, PaperResult, Row

TITLE = 'Table 2 of "Attention Is All You Need": architectures'

# Checkpoints every ten minutes (section 6.1), of 12 hours and of 3.5 days, and how
# many of the last ones are averaged.
INTERVALS, INTERVALS_OF_BIG = 72, 504
AVERAGED, AVERAGED_OF_BIG = 5, 20
SCALES = {
    **table3.SCALES,
    "grammar": {**table3.SCALES["grammar"], "data.test_split": "test"},
    **{
        f"{scale}_fr": {**table3.SCALES[scale], "data.target_language": "fr"}
        for scale in ("multi30k", "multi30k_small")
    },
}
# Each row's rate over the scale's, where they have been compared: the best of half to
# eight times, by BLEU of the validation set (configs/questions/rates.py).
RATES: dict[str, dict[str, float]] = {
    "grammar": {
        "base": 2.0,
        "recurrent": 2.0,
        "recurrent_attention": 4.0,
        "recurrent_gru": 2.0,
        "convolutional": 2.0,
        "convolutional_dilated": 2.0,
    }
}
RATE = "optimizer.learning_rate_scale"
# Test BLEU and FLOPs of training that the paper prints, by languages.
PRINTED: dict[tuple[str, str], dict[str, tuple[float | None, float | None]]] = {
    ("en", "de"): {
        "base": (27.3, 3.3e18),
        "big": (28.4, 2.3e19),
        "recurrent_attention": (24.6, 2.3e19),  # GNMT + RL
        "convolutional": (25.16, 9.6e18),  # ConvS2S
        "convolutional_dilated": (23.75, None),  # ByteNet
    },
    ("en", "fr"): {
        "base": (38.1, 3.3e18),
        "big": (41.8, 2.3e19),
        "recurrent_attention": (39.92, 1.4e20),
        "convolutional": (40.46, 1.5e20),
    },
}

Changes = Callable[[Config], dict[str, Any]]


def model(architecture: str, **fields: Any) -> Changes:
    """A model of an architecture with these fields of ``model``."""
    own = {f"model.{name}": value for name, value in fields.items()}
    return lambda base: {**of_architecture(architecture), **own}


# Rows beside the Transformer: what they are called and what they change.
ARCHITECTURES: dict[str, tuple[str, Changes]] = {
    "recurrent": ("LSTM, source reversed", model("recurrent", reverse_source=True)),
    "recurrent_attention": (
        "LSTM with additive attention",
        model("recurrent", recurrent_attention="additive"),
    ),
    "recurrent_gru": (
        "GRU with additive attention",
        model("recurrent", recurrent_attention="additive", recurrent_cell="gru"),
    ),
    "convolutional": ("gated convolutions", model("convolutional")),
    "convolutional_dilated": (
        "gated convolutions, dilated",
        model("convolutional", kernel_dilation="doubling"),
    ),
}


def get_config(argument: str = "grammar") -> ml_collections.ConfigDict:
    """The base model at a scale, which saves and averages as the paper did."""
    scale, _ = _parts(argument)
    config = table3.at_scale(SCALES[scale])
    config.train.checkpoint_every_steps = max(1, config.train.steps // INTERVALS)
    config.train.keep_checkpoints = AVERAGED
    config.decode.average_checkpoints = AVERAGED
    config.optimizer.learning_rate_scale *= RATES.get(scale, {}).get("base", 1.0)
    return config


def get_rows(argument: str = "grammar") -> list[Row]:
    """The Transformers, then recurrent and convolutional models."""
    scale, by_flops = _parts(argument)
    rates = RATES.get(scale, {})
    base_rate = rates.get("base", 1.0)

    def row(name: str, label: str, changes: Changes) -> Row:
        def complete(base: Config) -> dict[str, Any]:
            changed = changes(base)
            if by_flops:
                changed["train.steps"] = _affordable(base, changed)
            rate = rates.get(name, 1.0) / base_rate
            return {
                **changed,
                **_schedule(base, changed, rate, by_flops),
                **_interval(base, changed, name),
                **(_averaged_of_big(base) if name == "big" else {}),
            }

        reason = "as the paper's big model" if name == "big" else None
        if by_flops:
            reason = "as many FLOPs as base"
        group = "transformer" if name == "big" else name.partition("_")[0]
        return Row(name, group, label, complete, _printed(name), reason)

    return [
        Row(
            "base",
            "transformer",
            "Transformer (base)",
            BASE.changes,
            _printed("base"),
        ),
        row("big", "Transformer (big)", table3.big),
        *(row(name, *kind) for name, kind in ARCHITECTURES.items()),
    ]


def _printed(name: str) -> Callable[[Config], PaperResult | None]:
    """What the paper prints for a row, by the languages of base."""

    def printed(base: Config) -> PaperResult | None:
        pair = base.data.source_language, base.data.target_language
        if pair not in PRINTED or name not in PRINTED[pair]:
            return None
        bleu, flops = PRINTED[pair][name]
        return PaperResult(bleu_test=bleu, training_flops=flops)

    return printed


def _parts(argument: str) -> tuple[str, bool]:
    """``SCALE`` or ``SCALE,flops``."""
    scale, comma, budget = argument.partition(",")
    if scale not in SCALES:
        raise ConfigError(unknown_name("scale", scale, SCALES))
    if comma and budget != "flops":
        raise ConfigError(
            f"{argument!r}: a scale may be followed by ',flops' alone, for as many "
            "FLOPs a row as base has"
        )
    return scale, bool(comma)


def _affordable(base: Config, changed: dict[str, Any]) -> int:
    """Updates of a row that take the FLOPs of all of base's."""
    config = replace(base, {k: v for k, v in changed.items() if k != "train.steps"})
    return max(1, round(base.train.steps * step_flops(base) / step_flops(config)))


def _schedule(
    base: Config, changed: dict[str, Any], rate: float, stretched: bool
) -> dict[str, Any]:
    """A multiple of base's rate; with ``stretched`` the warm-up is the same share.

    Section 5.3's rate at its peak depends on the warm-up; the scale keeps that equal.
    """
    optimizer, found = base.optimizer, {}
    if stretched:
        share = changed["train.steps"] / base.train.steps
        warmup = max(1, round(optimizer.warmup_steps * share))
        found["optimizer.warmup_steps"] = warmup
        rate *= (warmup / optimizer.warmup_steps) ** 0.5
    if rate != 1:
        found[RATE] = optimizer.learning_rate_scale * rate
    return found


def _interval(base: Config, changed: dict[str, Any], name: str) -> dict[str, Any]:
    """Checkpoints as close in a training as base's; big's are 72 / 504 of it apart."""
    train = base.train
    if train.checkpoint_every_steps is None:
        return {}
    share = changed.get("train.steps", train.steps) / train.steps
    if name == "big":
        share *= INTERVALS / INTERVALS_OF_BIG
    every = max(1, round(train.checkpoint_every_steps * share))
    return {"train.checkpoint_every_steps": every}


def _averaged_of_big(base: Config) -> dict[str, Any]:
    """As many times base's checkpoints as in the paper, kept and averaged."""
    factor = AVERAGED_OF_BIG // AVERAGED
    return {
        "train.keep_checkpoints": factor * base.train.keep_checkpoints,
        "decode.average_checkpoints": factor * base.decode.average_checkpoints,
    }
