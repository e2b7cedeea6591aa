"""What heads attend to in lines as they are translated, written beside them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from experiments import attention_pictures
from experiments.attention_ids import MOST_PIECES, Ids
from experiments.attention_texts import MOST_SENTENCES, Text
from experiments.command import UsageError
from experiments.telling import complain
from transformer_ablation.runs.lines import Translated, best_target
from transformer_ablation.runs.loading import SavedRun, Trained
from transformer_ablation.vocabulary import EOS

# ``show(number of the first, lines with their translations)``
Show = Callable[[int, Sequence[Translated]], None]


def check(written: int, place: Path | None) -> None:
    """Refuses more lines than are drawn; ``written`` are those that are not blank.

    Raises:
      UsageError: naming both numbers.
    """
    if place is not None and written > MOST_SENTENCES:
        raise UsageError(
            f"--attention={place}: pictures are drawn of at most {MOST_SENTENCES} "
            "lines, and there are more; give fewer, or leave it away"
        )


def shower(place: Path, run: SavedRun, trained: Trained) -> Show:
    """Sheets and one page of the best translations of the lines of each call."""

    def show(first: int, lines: Sequence[Translated]) -> None:
        found = [_pair(n, each, run) for n, each in enumerate(lines, first)]
        pairs = [pair for pair in found if pair is not None]
        if not pairs:
            return
        texts, ids = zip(*pairs, strict=True)
        shown = attention_pictures.attended(run, trained, texts, ids)
        key = str(run.directory.absolute()), trained.steps, list(ids)
        for path in attention_pictures.put(place, key, texts[0].source, shown):
            complain(f"wrote {path}")

    return show


def _pair(number: int, line: Translated, run: SavedRun) -> tuple[Text, Ids] | None:
    """None for a blank line, and for one that no picture has room for."""
    if not line.translations:
        return None
    source = [*run.vocabulary.encode(line.source), EOS]
    target, note = best_target(line)
    if max(len(source), len(target)) > MOST_PIECES:
        complain(f"line {number}: has more than {MOST_PIECES} pieces; it is not drawn")
        return None
    return Text(f"line {number}", line.source, None), Ids(source, target, note)
