"""Pairs taken out of the training text to be scored: a function of text and seed."""

import hashlib
import heapq
from collections.abc import Iterable
from typing import NamedTuple

from transformer_ablation.config import DataConfig
from transformer_ablation.data.parallel_files.files import Located
from transformer_ablation.data.parallel_text import CorpusError

Pair = tuple[str, str]


class Holdout(NamedTuple):
    """What is to be held out of a split: so many ``pairs`` for each of ``splits``."""

    train: str
    splits: tuple[str, ...]
    pairs: int
    seed: int

    def facts(self, located: Located) -> dict:
        """What a manifest says of it."""
        return {
            "from_split": self.train,
            "from_pairs": located.lines[self.train],
            "splits": list(self.splits),
            "pairs": self.pairs,
            "seed": self.seed,
        }


class Drawn(NamedTuple):
    """What was held out.

    Attributes:
      splits: the pairs of each split, in the order of the text.
      lines: numbers of the lines, from 0, that leave the training split.
    """

    splits: dict[str, list[Pair]]
    lines: frozenset[int]


class _Candidate(NamedTuple):
    pair: Pair
    lines: list[int]


def asked(data: DataConfig, located: Located) -> Holdout | None:
    """What the config wants to be held out; a split that has files keeps them.

    Raises:
      CorpusError: if every split has files, or the training text is too short.
    """
    if data.holdout_pairs is None:
        return None
    scored = [s for s in (data.validation_split, data.test_split) if s is not None]
    missing = tuple(split for split in scored if split not in located.texts)
    if not missing:
        raise CorpusError(
            f"data.holdout_pairs: {data.holdout_pairs}, but {data.directory} has files "
            f"of {' and '.join(scored)}, and nothing is left to hold out; make it "
            "None, or move those files away"
        )
    holdout = Holdout(data.train_split, missing, data.holdout_pairs, data.holdout_seed)
    count = located.lines[data.train_split]
    if count <= data.holdout_pairs * len(missing):
        raise _too_few(holdout, located, f"{count} pairs")
    return holdout


def splits(
    located: Located, holdout: Holdout | None
) -> dict[str, tuple[int, Iterable[Pair]]]:
    """Number of pairs and the pairs of every split, to be read once.

    Raises:
      CorpusError: as ``draw``.
    """
    found: dict[str, tuple[int, Iterable[Pair]]] = {
        split: (located.lines[split], text.pairs())
        for split, text in located.texts.items()
    }
    if holdout is not None:
        drawn = draw(located, holdout)
        length, pairs = found[holdout.train]
        left = (pair for i, pair in enumerate(pairs) if i not in drawn.lines)
        found[holdout.train] = (length - len(drawn.lines), left)
        found |= {split: (len(held), held) for split, held in drawn.splits.items()}
    return found


def draw(located: Located, holdout: Holdout) -> Drawn:
    r"""Draws the pairs of lowest rank, where a pair's rank is a hash.

    The rank is SHA-256 of "SEED\nFIRST\nSECOND" in UTF-8, FIRST being the side whose
    language comes first in the alphabet: it depends neither on the order of the text
    nor on the direction. The lowest ranks go to the first split, the next to the
    second. A pair that stands in the text several times is held out once and all its
    copies leave the training split. Pairs with a blank side are not drawn.

    Raises:
      CorpusError: if there are too few different pairs.
    """
    wanted = holdout.pairs * len(holdout.splits)
    candidates: dict[int, _Candidate] = {}
    heap: list[int] = []  # of negative ranks: the highest of the candidates first
    total = 0
    for line, pair in enumerate(located.texts[holdout.train].pairs()):
        total += 1
        rank = _rank(pair, holdout.seed)
        if rank in candidates:
            candidates[rank].lines.append(line)
        elif len(heap) == wanted and rank > -heap[0]:
            continue
        elif pair[0].strip() and pair[1].strip():
            candidates[rank] = _Candidate(pair, [line])
            heapq.heappush(heap, -rank)
            if len(heap) > wanted:
                del candidates[-heapq.heappop(heap)]
    lines = frozenset(line for each in candidates.values() for line in each.lines)
    if len(candidates) < wanted or len(lines) == total:
        count = f"{len(candidates)} different pairs with text on both sides"
        raise _too_few(holdout, located, count)
    ordered = [candidates[rank] for rank in sorted(candidates)]
    found = {}
    for i, split in enumerate(holdout.splits):
        chosen = ordered[i * holdout.pairs : (i + 1) * holdout.pairs]
        chosen.sort(key=lambda candidate: candidate.lines[0])
        found[split] = [candidate.pair for candidate in chosen]
    return Drawn(found, lines)


def _too_few(holdout: Holdout, located: Located, count: str) -> CorpusError:
    paths = located.texts[holdout.train].paths
    return CorpusError(
        f"data.holdout_pairs: {holdout.pairs} for each of "
        f"{' and '.join(holdout.splits)} cannot be held out of "
        f"{' and '.join(map(str, paths))} with {count}, as some must be left to train "
        "on; lower it"
    )


def _rank(pair: Pair, seed: int) -> int:
    text = f"{seed}\n{pair[0]}\n{pair[1]}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
