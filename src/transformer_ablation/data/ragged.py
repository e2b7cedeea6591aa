"""Sequences of different lengths in one array, and the files that hold them."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from transformer_ablation.vocabulary import EOS, PAD


@dataclasses.dataclass(frozen=True)
class Ragged:
    """Sequence i is ``ids[starts[i] : starts[i] + lengths[i]]``.

    Attributes:
      ids: int32 or uint16, often of a file; not all need belong to a sequence.
      starts, lengths: integers, one a sequence; of a file as small as they can be.
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> "Ragged":
        """From sequences of ids."""
        arrays = [np.asarray(x, np.int32) for x in sequences]
        ids = np.concatenate([np.zeros(0, np.int32), *arrays])
        return cls.joined(ids, np.array([len(x) for x in arrays], np.int64))

    @classmethod
    def of_lines(cls, encoded: Sequence[Sequence[int]]) -> "Ragged":
        """From the ids of lines, an EOS added to each."""
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded)) + 1
        is_end: np.ndarray = np.zeros(int(lengths.sum()), bool)
        is_end[np.cumsum(lengths) - 1] = True
        ids: np.ndarray = np.full(len(is_end), EOS, np.int32)
        flat = itertools.chain.from_iterable(encoded)
        ids[~is_end] = np.fromiter(flat, np.int32, len(is_end) - len(encoded))
        return cls.joined(ids, lengths)

    @classmethod
    def joined(cls, ids: np.ndarray, lengths: np.ndarray) -> "Ragged":
        """Sequences of these lengths that follow each other from the first id on."""
        return cls(ids, np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> np.ndarray:
        """int32, one sequence."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"sequence {i} of {len(self)}")
        start = self.starts[i]
        return self.ids[start : start + self.lengths[i]].astype(np.int32)

    @property
    def token_count(self) -> int:
        """Ids in all sequences."""
        return int(self.lengths.sum())

    def take(self, indices: np.ndarray) -> "Ragged":
        """The sequences at some indices, in that order; no id is copied."""
        return Ragged(self.ids, self.starts[indices], self.lengths[indices])

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
        # Where the sequences follow each other, id i of all is id i + from_start of
        # `ids`; ids of a row stay together: each moves by the padding before its row.
        place = np.arange(self.token_count)
        from_start = self.starts - (np.cumsum(lengths) - lengths)
        padding = np.arange(rows) * length - (np.cumsum(used) - used)
        result: np.ndarray = np.full(rows * length, PAD, np.int32)
        result[place + np.repeat(padding[row_of], lengths)] = self.ids[
            place + np.repeat(from_start, lengths)
        ]
        return result.reshape(rows, length)


@dataclasses.dataclass(frozen=True)
class TokenizedSplit:
    """Pair i is ``source[i]``, ``target[i]``: ids that end in EOS, without BOS."""

    source: Ragged
    target: Ragged

    def __len__(self) -> int:
        return len(self.source)

    def take(self, indices: np.ndarray) -> "TokenizedSplit":
        """The pairs at some indices, in that order; no id is copied."""
        return TokenizedSplit(self.source.take(indices), self.target.take(indices))


def load_split(folder: Path) -> TokenizedSplit:
    """What a ``SplitWriter`` wrote; ids stay on disk until they are used.

    Memory holds 8 bytes a sequence, 12 where a side has 2**32 ids or more.
    """

    def load(name: str) -> Ragged:
        ids = np.load(folder / f"{name}_ids.npy", mmap_mode="r", allow_pickle=False)
        lengths = np.load(folder / f"{name}_lengths.npy", allow_pickle=False)
        whole = Ragged.joined(ids, lengths)
        small = np.uint32 if len(ids) < 2**32 else np.int64
        return dataclasses.replace(whole, starts=whole.starts.astype(small))

    return TokenizedSplit(load("source"), load("target"))


class SplitWriter:
    """Writes a split part by part into four ``.npy`` files of a folder.

    Memory holds the part at hand. The files are whole once the writer is closed.
    """

    def __init__(self, folder: Path, dtype: type):
        """``dtype`` is that of the ids: np.int32, or np.uint16 where they fit."""
        self._sides = {
            name: (
                _ArrayFile(folder / f"{name}_ids.npy", dtype),
                _ArrayFile(folder / f"{name}_lengths.npy", np.int32),
            )
            for name in ("source", "target")
        }

    def add(self, part: TokenizedSplit) -> None:
        """Appends the pairs of a part, whose ids are all those of its sequences."""
        for name, (ids, lengths) in self._sides.items():
            side = getattr(part, name)
            ids.append(side.ids)
            lengths.append(side.lengths)

    def __enter__(self) -> "SplitWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for files in self._sides.values():
            for file in files:
                file.close()


class _ArrayFile:
    """A ``.npy`` file of one dimension whose length is known only at the end."""

    def __init__(self, path: Path, dtype: Any):
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, values: np.ndarray) -> None:
        """Raises OverflowError for a value that the type of the file cannot hold."""
        limits = np.iinfo(self._dtype)
        if len(values) and not (
            limits.min <= values.min() <= values.max() <= limits.max
        ):
            raise OverflowError(f"{self._file.name}: a value beyond {self._dtype}")
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._length += len(values)

    def close(self) -> None:
        # The format leaves room in the header for a length of any number of digits.
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)
