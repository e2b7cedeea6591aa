"""Table 2 of the paper: the Transformer beside the models that it replaced.

``--config=configs/table2.py:SCALE`` trains all rows with as many updates as base,
``SCALE,flops`` with as many FLOPs; the scales are those of table3, and multi30k_fr. A
sweep has one language pair; ``python -m experiments.table2 --workdirs=A,B`` puts
two beside each other as the paper does.

As in section 6.1 BLEU is of the test set, by parameters averaged over the last 5
checkpoints, of big's the last 20, where the paper saved every ten minutes: base's 12
hours are 72 such intervals. Learning rates are those of ``RATES``. Rows have base's N,
d_model and dropout. The recurrent and convolutional ones are of the kind of the paper's
competitors, not these systems, which were deeper, had residual sums, and GNMT
reinforcement: their printed numbers stand beside the row of their kind.
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
from transformer_ablation.sweep.rows import PaperResult, Row

TITLE = 'Table 2 of "Attention Is All You Need": architectures'

INTERVALS = 72
AVERAGED, AVERAGED_OF_BIG = 5, 20
MULTI30K = table3.SCALES["multi30k"]
SCALES = {
    **table3.SCALES,
    "grammar": {**table3.SCALES["grammar"], "data.test_split": "test"},
    "multi30k_fr": {**MULTI30K, "data.target_language": "fr"},
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
# Test BLEU and FLOPs of training that the paper prints, English to German and French.
PRINTED = {
    "base": ((27.3, 3.3e18), (38.1, 3.3e18)),
    "big": ((28.4, 2.3e19), (41.8, 2.3e19)),
    "recurrent_attention": ((24.6, 2.3e19), (39.92, 1.4e20)),  # GNMT + RL
    "convolutional": ((25.16, 9.6e18), (40.46, 1.5e20)),  # ConvS2S
    "convolutional_dilated": ((23.75, None), (None, None)),  # ByteNet
}

Changes = Callable[[Config], dict[str, Any]]


def recurrent(**fields: Any) -> Changes:
    """A recurrent model with these fields of ``model``."""
    own = {f"model.{name}": value for name, value in fields.items()}
    return lambda base: {**of_architecture("recurrent"), **own}


def convolutional(**fields: Any) -> Changes:
    """A convolutional model with these fields of ``model``."""
    own = {f"model.{name}": value for name, value in fields.items()}
    return lambda base: {**of_architecture("convolutional"), **own}


# Rows beside the Transformer: what they are called and what they change.
ARCHITECTURES: dict[str, tuple[str, Changes]] = {
    "recurrent": ("LSTM, source reversed", recurrent(reverse_source=True)),
    "recurrent_attention": (
        "LSTM with additive attention",
        recurrent(recurrent_attention="additive"),
    ),
    "recurrent_gru": (
        "GRU with additive attention",
        recurrent(recurrent_attention="additive", recurrent_cell="gru"),
    ),
    "convolutional": ("gated convolutions", convolutional()),
    "convolutional_dilated": (
        "gated convolutions, dilated",
        convolutional(kernel_dilation="doubling"),
    ),
}


def get_config(argument: str = "grammar") -> ml_collections.ConfigDict:
    """The base model at a scale, which saves and averages as the paper did."""
    scale, _ = _parts(argument)
    config = table3.at_scale(SCALES[scale])
    for path, value in _averaged(config.train.steps, AVERAGED).items():
        section, name = path.split(".")
        config[section][name] = value
    config.optimizer.learning_rate_scale *= RATES.get(scale, {}).get("base", 1.0)
    return config


def get_rows(argument: str = "grammar") -> list[Row]:
    """The Transformers, then recurrent and convolutional models."""
    scale, by_flops = _parts(argument)
    french = scale.endswith("_fr")
    rates = RATES.get(scale, {})

    def row(name: str, label: str, changes: Changes, averaged: int = AVERAGED) -> Row:
        printed = PRINTED.get(name)
        paper = None
        if printed is not None:
            bleu, flops = printed[french]
            paper = PaperResult(bleu_test=bleu, training_flops=flops)
        reason = "as the paper's big model" if name == "big" else None
        if by_flops and name != "base":
            reason = "as many FLOPs as base"

        def complete(base: Config) -> dict[str, Any]:
            changed = changes(base)
            if not changed:
                return changed
            if (rate := rates.get(name, 1.0)) != (own := rates.get("base", 1.0)):
                changed[RATE] = base.optimizer.learning_rate_scale * rate / own
            if by_flops:
                changed["train.steps"] = _affordable(base, changed)
            steps = changed.get("train.steps", base.train.steps)
            return {**changed, **_averaged(steps, averaged)}

        group = name.partition("_")[0] if name not in ("base", "big") else "transformer"
        return Row(name, group, label, complete, paper, reason)

    return [
        row("base", "Transformer (base)", lambda base: {}),
        row("big", "Transformer (big)", table3.big, AVERAGED_OF_BIG),
        *(row(name, *kind) for name, kind in ARCHITECTURES.items()),
    ]


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


def _averaged(steps: int, count: int) -> dict[str, Any]:
    """The last ``count`` checkpoints, ``INTERVALS`` of them in a whole training."""
    return {
        "train.checkpoint_every_steps": max(1, steps // INTERVALS),
        "train.keep_checkpoints": count,
        "decode.average_checkpoints": count,
    }
