"""``python -m experiments.translate --run=DIR``: lines on stdin to lines on stdout."""

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

from absl import flags

from experiments import (
    command,
    line_files,
    line_streams,
    line_target,
    line_translation,
    output,
    shared_flags,
    telling,
    translation_flags,
)
from transformer_ablation.config import replace
from transformer_ablation.data import progress
from transformer_ablation.runs import loading
from transformer_ablation.runs.loading import SavedRun
from transformer_ablation.runs.searching import Search


def define(values: flags.FlagValues) -> None:
    """Flags of the translation."""
    shared_flags.define_run(values)
    translation_flags.define(values)
    shared_flags.define_cache(values)


def body(options: flags.FlagValues) -> None:
    """Load the run and translate."""
    folder = shared_flags.run_folder(options)
    if options.input is None and sys.stdin is None:
        raise command.UsageError("there is no standard input to translate from")
    at_terminal = options.input is None and sys.stdin.isatty()
    if at_terminal and options.out is not None:
        raise command.UsageError(
            f"--out={options.out}: what is typed is answered here; name a text with "
            "--input, or pipe one in"
        )
    run = loading.read_run(folder)
    search = translation_flags.chosen(run.config, options)
    if at_terminal:
        alone = replace(search.config, {"decode.sentences_per_batch": 1})
        search = search._replace(config=alone)
    run = run._replace(config=search.config)
    place = translation_flags.attention_folder(options)
    if place is not None:
        loading.check_attention(run.directory, run.config)
    if note := loading.version_note(run):
        telling.complain(note)
    if at_terminal:
        line_streams.prompt(line_translation.ready(run, search, options, place)[1])
    else:
        try:
            _stream(run, search, options, place)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted") from None  # it begins anew


def _stream(
    run: SavedRun, search: Search, options: flags.FlagValues, pictures: Path | None
) -> None:
    """A file or a pipe, with a bar where no line is seen to come."""
    place = output.output_file(options.out, options.format)
    line_target.check_part(place)
    path = line_files.input_file(options.input, place)
    seen = None if path is None else line_files.look_through(path, run)
    written = 0 if seen is None else len(seen.lengths)
    translator, translate = line_translation.ready(
        run, search, options, pictures, written
    )
    many = written > line_streams.LINES_AT_ONCE
    if seen is not None and many:
        translator.expect(seen.lengths)
    start = time.monotonic()
    with line_target.target(place) as target, _bar(seen, place is not None) as done:
        count = line_streams.pipe(
            translate,
            line_files.lines_of(path),
            target,
            one_by_one=search.config.decode.sentences_per_batch == 1,
            all_known=many,
            done=done,
        )
    seconds = time.monotonic() - start
    if place is not None:
        print(f"wrote {place}: {count:,} line{'s' * (count != 1)} in {seconds:.1f} s")


def _bar(seen: line_files.Seen | None, to_file: bool) -> Any:
    if not to_file and sys.stdout.isatty():
        return contextlib.nullcontext(lambda count: None)
    return progress.bar("translating", None if seen is None else seen.lines, 1)


COMMAND = command.Command(
    name="translate",
    summary="Translate lines of stdin or of a file with a trained run; at a terminal, "
    "a prompt.",
    examples=(
        "python -m experiments.translate --run=runs/table3/runs/base/seed0",
        "python -m experiments.translate --run=runs/table3/runs/base/seed0 "
        "--beam_size=8 --n_best=3 --format=tsv < lines.en > lines.tsv",
        "python -m experiments.translate --run=runs/table3/runs/base/seed0 "
        "--sample --temperature=0.7 --seed=1 --input=lines.en --out=lines.de",
    ),
    define=define,
    body=body,
)

if __name__ == "__main__":
    command.main(COMMAND)
