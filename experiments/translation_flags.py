"""Flags of a translation: how to search or draw, and what to write."""

from pathlib import Path

from absl import flags

from experiments import decoding_flags, line_formats, shared_flags
from experiments.figure_folder import need_matplotlib, writable_folder
from transformer_ablation.config import Config
from transformer_ablation.runs import searching


def define(values: flags.FlagValues) -> None:
    """Where from and to, in which format, and how to search or draw."""
    text = "file of lines to translate, plain or .gz; stdin by default"
    flags.DEFINE_string("input", None, text, flag_values=values)
    text = "file to write, whole or not at all; stdout by default"
    flags.DEFINE_string("out", None, text, flag_values=values)
    shared_flags.define_format(values, tuple(line_formats.FORMATS))
    text = "folder for pictures of what heads attend to, of at most 20 lines"
    flags.DEFINE_string("attention", None, text, flag_values=values)
    decoding_flags.define(values)
    text = "translations a line, best first; each has a line in text and tsv"
    flags.DEFINE_integer("n_best", 1, text, flag_values=values)
    text = "take the most probable piece each time; the same as --beam_size=1"
    flags.DEFINE_boolean("greedy", False, text, flag_values=values)
    text = "draw pieces at random, --n_best times a line"
    flags.DEFINE_boolean("sample", False, text, flag_values=values)
    text = "of --sample: divides the logits; 1 by default, near 0 as --greedy"
    flags.DEFINE_float("temperature", None, text, flag_values=values)
    text = "of --sample: only so many most probable pieces; all by default"
    flags.DEFINE_integer("top_k", None, text, flag_values=values)
    text = (
        "of --sample: what is drawn for line n is a function of the seed, n and the "
        "line; 0 by default"
    )
    flags.DEFINE_integer("seed", None, text, flag_values=values)


def chosen(config: Config, options: flags.FlagValues) -> searching.Search:
    """The search that the flags ask for.

    Raises:
      RunError, ConfigError: for flags that contradict each other, or a value that
        may not be.
    """
    return searching.choose(
        decoding_flags.changed(config, options),
        beam_size=options.beam_size,
        n_best=options.n_best,
        greedy=options.greedy,
        sample=options.sample,
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
        dash="--",
    )


def attention_folder(options: flags.FlagValues) -> Path | None:
    """The folder of --attention, made and tried, or None.

    Raises:
      UsageError: if no file can be written there, or matplotlib is missing.
    """
    if options.attention is None:
        return None
    need_matplotlib("--attention")
    return writable_folder(options.attention, "attention")
