"""Flags that stand for fields of a run's decoding."""

from collections.abc import Iterable

from absl import flags

from transformer_ablation.config import Config, ConfigError, replace
from transformer_ablation.runs.loading import check_average

# Name of the flag: field of the run's config, help.
FIELDS = {
    "beam_size": ("decode.beam_size", "candidates of the beam search"),
    "length_penalty": ("decode.length_penalty", "wu2016 or power"),
    "length_penalty_alpha": ("decode.length_penalty_alpha", "0: no length penalty"),
    "extra_length": ("decode.extra_length", "pieces beyond the source's, at most"),
    "average": ("decode.average_checkpoints", "newest checkpoints to average"),
    "sentences_per_batch": (
        "decode.sentences_per_batch",
        "sentences searched together; 1 answers each line as it comes",
    ),
}


def define(values: flags.FlagValues, names: Iterable[str] = tuple(FIELDS)) -> None:
    """A flag a field of ``names``, and --step."""
    kinds = {
        "length_penalty": flags.DEFINE_string,
        "length_penalty_alpha": flags.DEFINE_float,
    }
    for name in names:
        path, text = FIELDS[name]
        make = kinds.get(name, flags.DEFINE_integer)
        make(name, None, f"{text}; else the run's {path}", flag_values=values)
    text = "use the checkpoint of this update; the newest by default"
    flags.DEFINE_integer("step", None, text, flag_values=values)


def changed(config: Config, options: flags.FlagValues) -> Config:
    """The config with what the flags say.

    Raises:
      ConfigError: for a value that its field may not have.
      LoadError: for an average of more checkpoints than the run keeps.
    """
    if "average" in options and options.average is not None:
        check_average(config, options.average, "--average")
    given = {
        path: options[name].value
        for name, (path, _) in FIELDS.items()
        if name in options
    }
    try:
        return replace(config, {p: v for p, v in given.items() if v is not None})
    except ConfigError as error:
        problems = error.problems
        for name, (path, _) in FIELDS.items():
            problems = [p.replace(f"{path}: ", f"--{name}: ") for p in problems]
        raise ConfigError(problems) from None
