"""Sequences of different lengths, one after another in one array."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from transformer_ablation.vocabulary import PAD


@dataclasses.dataclass(frozen=True)
class Ragged:
    """Sequence i is ``ids[offsets[i]:offsets[i + 1]]``.

    Attributes:
      ids: int32, all sequences joined.
      offsets: int64, one more than there are sequences, from 0.
    """

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> "Ragged":
        """From sequences of ids."""
        arrays = [np.asarray(x, np.int32) for x in sequences]
        ids = np.concatenate([np.zeros(0, np.int32), *arrays])
        return cls(ids, _offsets(np.array([len(x) for x in arrays], np.int64)))

    @classmethod
    def joined(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """The sequences of all parts, in order."""
        ids = np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)])
        lengths = [np.zeros(0, np.int64), *(part.lengths for part in parts)]
        return cls(ids, _offsets(np.concatenate(lengths)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        if not -len(self) <= i < len(self):
            raise IndexError(f"sequence {i} of {len(self)}")
        i %= len(self)
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """int64, one length a sequence."""
        return np.diff(self.offsets)

    def take(self, indices: np.ndarray) -> "Ragged":
        """The sequences at some indices, in that order."""
        lengths = self.lengths[indices]
        offsets = _offsets(lengths)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        positions = np.repeat(self.offsets[:-1][indices], lengths) + within
        return Ragged(self.ids[positions], offsets)

    def padded(self, indices: np.ndarray, rows: int, length: int) -> np.ndarray:
        """int32 [rows, length]: the sequences at some indices, then rows of PAD.

        Raises:
          ValueError: if there are too many or they are too long.
        """
        taken = self.take(np.asarray(indices, np.int64))
        return taken.laid_out(np.arange(len(taken)), rows, length)

    def laid_out(self, row_of: np.ndarray, rows: int, length: int) -> np.ndarray:
        """int32 [rows, length]: sequence i in row ``row_of[i]``, then PAD.

        ``row_of`` ascends; sequences of one row follow each other.

        Raises:
          ValueError: if there are too many or they are too long.
        """
        lengths = self.lengths
        used = np.bincount(row_of, lengths, minlength=rows).astype(np.int64)
        if len(used) > rows or used.max(initial=0) > length:
            raise ValueError(
                f"{len(self)} sequences of up to {lengths.max(initial=0)} ids do not "
                f"fit into {rows} rows of {length}"
            )
        # The ids of a row stay together: each moves by the padding before its row.
        shift = np.arange(rows) * length - (np.cumsum(used) - used)
        result: np.ndarray = np.full(rows * length, PAD, np.int32)
        result[np.arange(len(self.ids)) + np.repeat(shift[row_of], lengths)] = self.ids
        return result.reshape(rows, length)


@dataclasses.dataclass(frozen=True)
class TokenizedSplit:
    """Pair i is ``source[i]``, ``target[i]``: ids that end in EOS, without BOS."""

    source: Ragged
    target: Ragged

    def __len__(self) -> int:
        return len(self.source)

    def take(self, indices: np.ndarray) -> "TokenizedSplit":
        """The pairs at some indices, in that order."""
        return TokenizedSplit(self.source.take(indices), self.target.take(indices))


def save_split(split: TokenizedSplit, folder: Path) -> None:
    """Writes four ``.npy`` files into a folder."""
    for name in ("source", "target"):
        ragged = getattr(split, name)
        np.save(folder / f"{name}_ids.npy", ragged.ids, allow_pickle=False)
        np.save(folder / f"{name}_offsets.npy", ragged.offsets, allow_pickle=False)


def load_split(folder: Path) -> TokenizedSplit:
    """What ``save_split`` wrote; ids stay on disk until they are used."""

    def load(name: str) -> Ragged:
        ids = np.load(folder / f"{name}_ids.npy", mmap_mode="r", allow_pickle=False)
        return Ragged(ids, np.load(folder / f"{name}_offsets.npy", allow_pickle=False))

    return TokenizedSplit(load("source"), load("target"))


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
