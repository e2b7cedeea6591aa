"""A run's attention in a few sentences, as PNG sheets and as one page."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
from experiments.figure_folder import writable_folder
from experiments.telling import tell
from transformer_ablation.report import attention_page, attention_sheets
from transformer_ablation.report.cells import plain
from transformer_ablation.report.json_file import write_bytes
from transformer_ablation.report.piece_labels import labels
from transformer_ablation.runs import loading
from transformer_ablation.vocabulary import BOS, Vocabulary


def write(
    folder: Path, asked: Sequence[Text] | range, options: flags.FlagValues
) -> None:
    """Writes and names the files; ``asked`` may be places in the validation split."""
    run = loading.read_run(folder)
    run_data.record_of(run)
    place = Path(options.out or folder / "attention")
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
    pairs = list(_pairs(texts, ids, trained, run.vocabulary))
    first = texts[0].source
    name = place / _name(first, (str(run.directory.absolute()), trained.steps, ids))
    about = f"{run.directory}, update {', '.join(map(str, trained.steps))}."
    for ending, content in _files(first, about, pairs):
        write_bytes(path := name.with_name(name.name + ending), content)
        print(f"wrote {path}")


def _pairs(
    texts: Sequence[Text], ids: Sequence[Ids], trained: Any, vocabulary: Vocabulary
) -> Iterator[attention_page.Pair]:
    """The sentences with their weights."""
    from transformer_ablation import parallel
    from transformer_ablation.evaluate.attention import Recorder

    tell("computing the attention")
    record = Recorder(trained.model)
    pairs = [each.source for each in ids], [each.target for each in ids]
    found = record(parallel.on_one_device(trained.params), *pairs)
    for text, each, weights in zip(texts, ids, found, strict=True):
        read = [BOS, *each.target[:-1]]
        sides = [labels(vocabulary.pieces(x)) for x in (each.source, read, each.target)]
        target = vocabulary.decode(each.target)
        shown = f"  source: {plain(text.source)}\n  target: {plain(target)}\n"
        output.print_text(f"{text.heading}\n{shown}")
        heading = f"{text.heading}: {text.source}"
        yield attention_page.Pair(heading, each.note, *sides, weights._asdict())


def _files(
    first: str, about: str, pairs: Sequence[attention_page.Pair]
) -> Iterator[tuple[str, bytes]]:
    """The end of each file's name, and what is in it."""
    for number, pair in enumerate(pairs, start=1):
        sides = {
            "encoder": (pair.source, pair.source),
            "decoder": (pair.read, pair.read),
            "cross": (pair.read, pair.source),
        }
        among = f"-{number}" if len(pairs) > 1 else ""
        for kind, (queries, keys) in sides.items():
            words = queries.pieces, keys.pieces
            png = attention_sheets.sheet(pair.weights[kind], *words, f"{kind}: {about}")
            yield f"{among}-{kind}.png", png
    more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    html = attention_page.as_html(f"Attention: {first}{more}", [about], pairs)
    yield ".html", html.encode("utf-8")


def _name(first: str, shown: tuple) -> str:
    """Words to know a file by, and a hash: another sentence never takes its place."""
    words = re.sub("[^a-z0-9]+", "_", first.lower()).strip("_")
    digest = hashlib.sha256(repr(shown).encode()).hexdigest()[:8]
    return f"{words[:32].strip('_') or 'sentence'}-{digest}"
