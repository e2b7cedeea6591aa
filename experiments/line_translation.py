"""A run made ready to translate lines into lines of a format."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from experiments import line_formats, shared_flags, telling
from transformer_ablation.runs import loading
from transformer_ablation.runs.loading import SavedRun
from transformer_ablation.runs.searching import Search


def ready(
    run: SavedRun,
    search: Search,
    options: flags.FlagValues,
    pictures: Path | None,
    seen: int = 0,
) -> tuple:
    """The translator, and what makes lines of a format with it, and pictures.

    ``seen`` is how many lines there are known to be.

    Raises:
      UsageError: for pictures of too many.
    """
    from experiments import line_attention  # takes a while to import, as does JAX
    from transformer_ablation import parallel
    from transformer_ablation.runs.translating import LineTranslator

    line_attention.check(seen, pictures)
    parallel.set_up(shared_flags.cache_folder(options))
    count, tell = search.config.decode.average_checkpoints, telling.tell
    trained = loading.load(run, count, options.step, tell)
    translator = LineTranslator(
        trained, search.config, run.vocabulary, search.n_best, tell
    )
    written = line_formats.FORMATS[options.format]
    show = line_attention.shower(pictures, run, trained) if pictures else None

    def translate(lines: Sequence[str], first: int, **how: Any) -> list[list[str]]:
        line_attention.check(sum(bool(line.strip()) for line in lines), pictures)
        found = translator.translate(
            lines,
            first,
            sampling=search.sampling,
            token_scores=options.format == "json",
            **how,
        )
        if show is not None:
            show(first, found)
        return [written(n, each, search.n_best) for n, each in enumerate(found, first)]

    return translator, translate
