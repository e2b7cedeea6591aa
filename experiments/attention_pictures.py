"""A run's attention in a few sentences, as PNG sheets and as one page."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from experiments import (
    attention_texts,
    decoding_flags,
    output,
    run_data,
    shared_flags,
)
from experiments.attention_ids import Ids, encoded
from experiments.attention_texts import Text
from experiments.figure_folder import need_matplotlib, writable_folder
from experiments.telling import tell
from transformer_ablation.report.cells import plain
from transformer_ablation.report.json_file import write_bytes, write_text
from transformer_ablation.runs import loading
from transformer_ablation.runs.loading import SavedRun, Trained

if TYPE_CHECKING:  # it loads JAX
    from transformer_ablation.runs.attending import Attended


def write(
    folder: Path, asked: Sequence[Text] | range, options: flags.FlagValues
) -> None:
    """Writes and names the files; ``asked`` may be places in the validation split."""
    run = loading.read_run(folder)
    run_data.record_of(run)
    loading.check_attention(run.directory, run.config)
    place = Path(options.out or folder / "attention")
    need_matplotlib("attention of a sentence")
    writable_folder(place, "out")
    config = decoding_flags.changed(run.config, options)
    from transformer_ablation import parallel

    parallel.set_up(cache := shared_flags.cache_folder(options))
    texts = asked
    if isinstance(asked, range):
        splits = run_data.prepared_of(run, cache).corpus.splits
        every = list(splits[config.data.validation_split])
        texts = attention_texts.of_split(every, asked)
    count = config.decode.average_checkpoints
    trained = loading.load(run, count, options.step, tell)
    ids = encoded(texts, trained, config, run.vocabulary)
    shown = attended(run, trained, texts, ids)
    for text, each in zip(texts, ids, strict=True):
        target = plain(run.vocabulary.decode(each.target))
        sides = f"  source: {plain(text.source)}\n  target: {target}\n"
        output.print_text(f"{text.heading}\n{sides}")
    key = str(run.directory.absolute()), trained.steps, ids
    for path in put(place, key, texts[0].source, shown):
        print(f"wrote {path}")


def attended(
    run: SavedRun, trained: Trained, texts: Sequence[Text], ids: Sequence[Ids]
) -> "list[Attended]":
    """The sentences with their weights.

    Raises:
      LoadError: for parameters of a run that has diverged.
    """
    from transformer_ablation.runs.attending import attend

    tell("computing the attention")
    about = f"{run.directory}, update {', '.join(map(str, trained.steps))}."
    pairs = [
        (f"{text.heading}: {text.source}", each.note, each.source, each.target)
        for text, each in zip(texts, ids, strict=True)
    ]
    return list(attend(trained, run.vocabulary, about, pairs))


def put(
    place: Path, key: tuple, first: str, shown: "Sequence[Attended]"
) -> Iterator[Path]:
    """Writes sheets and a page into a folder, named by the first source and a key."""
    from transformer_ablation.runs import attending

    name = place / _name(first, key)
    for ending, png in attending.sheets(shown):
        write_bytes(path := name.with_name(f"{name.name}-{ending}.png"), png)
        yield path
    more = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
    html = attending.page(shown, f"Attention: {first}{more}")
    write_text(path := name.with_name(f"{name.name}.html"), html)
    yield path


def _name(first: str, shown: tuple) -> str:
    """Words to know a file by, and a hash: another sentence never takes its place."""
    words = re.sub("[^a-z0-9]+", "_", first.lower()).strip("_")
    digest = hashlib.sha256(repr(shown).encode()).hexdigest()[:8]
    return f"{words[:32].strip('_') or 'sentence'}-{digest}"
