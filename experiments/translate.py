"""``python -m experiments.translate --run=DIR``: lines on stdin to lines on stdout."""

import sys

from absl import flags

from experiments import (
    command,
    decoding_flags,
    line_streams,
    loading,
    shared_flags,
)
from transformer_ablation.config import Config, replace


def define(values: flags.FlagValues) -> None:
    """Flags of the translation."""
    shared_flags.define_run(values)
    decoding_flags.define(values)
    text = "translations a line, best first, each on a line of its own"
    flags.DEFINE_integer("n_best", 1, text, flag_values=values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues) -> None:
    """Load the run and translate."""
    folder = shared_flags.run_folder(options)
    if sys.stdin is None:
        raise command.UsageError("there is no standard input to translate from")
    run = loading.read_run(folder)
    at_terminal = sys.stdin.isatty()
    config = _config(run.config, options, one_by_one=at_terminal)
    if not 1 <= options.n_best <= config.decode.beam_size:
        raise command.UsageError(
            f"--n_best={options.n_best}: it must be from 1 to the beam size, "
            f"{config.decode.beam_size}"
        )
    from experiments.line_translation import LineTranslator
    from transformer_ablation import parallel

    parallel.set_up(shared_flags.cache_folder(options))
    run = run._replace(config=config)
    trained = loading.load(run, config.decode.average_checkpoints, options.step)
    translator = LineTranslator(trained, config, run.vocabulary, options.n_best)
    if at_terminal:
        line_streams.prompt(translator.translate)
    else:
        one_by_one = config.decode.sentences_per_batch == 1
        line_streams.pipe(translator.translate, one_by_one=one_by_one)


def _config(config: Config, options: flags.FlagValues, one_by_one: bool) -> Config:
    """The run's config with what the flags change."""
    changed = decoding_flags.changed(config, options)
    alone = {"decode.sentences_per_batch": 1} if one_by_one else {}
    return replace(changed, alone)


COMMAND = command.Command(
    name="translate",
    summary="Translate lines on stdin to lines on stdout with a trained run; at a "
    "terminal, a prompt.",
    examples=(
        "python -m experiments.translate --run=runs/table3/runs/base/seed0",
        "python -m experiments.translate --run=runs/table3/runs/base/seed0 "
        "--beam_size=8 --n_best=3 < lines.en > lines.de",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
