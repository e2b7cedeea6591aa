"""Large splits of TFDS builders, put in order without TensorFlow.

TFDS orders a split by hashes of its keys. What does not fit its memory goes through
buckets, files of neighbouring hashes, which it writes through TensorFlow. Inside
``plain_buckets`` they are plain files, and the order is the same.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

_MEMORY_BYTES = 64 * 2**20  # of a split, before it goes to buckets; TFDS: 1,000 MiB
_HELD_BYTES = 64 * 2**10  # of each of 1,000 buckets, between two writes
_KEY_BYTES, _SIZE_BYTES = 16, 8  # before every record


@contextlib.contextmanager
def plain_buckets() -> Iterator[None]:
    """TFDS uses ``Bucket``, and little memory for any split."""
    from tensorflow_datasets.core import shuffle

    before = shuffle._Bucket, shuffle.MAX_MEM_BUFFER_SIZE
    shuffle._Bucket, shuffle.MAX_MEM_BUFFER_SIZE = Bucket, _MEMORY_BYTES
    try:
        yield
    finally:
        shuffle._Bucket, shuffle.MAX_MEM_BUFFER_SIZE = before


class Bucket:
    """Records and their keys in a file that is open only while it is written.

    So 1,000 of them do not need 1,000 open files. ``size`` is that of the records.
    """

    def __init__(self, path: Path):
        self._path = Path(path)
        self._parts: list[bytes] = []
        self._held = 0
        self._length = 0
        self.size = 0

    def __len__(self) -> int:
        return self._length

    def add(self, key: int, data: bytes) -> None:
        """Adds a record."""
        head = key.to_bytes(_KEY_BYTES, "big") + len(data).to_bytes(_SIZE_BYTES, "big")
        self._parts += [head, data]
        self._held += len(head) + len(data)
        self._length += 1
        self.size += len(data)
        if self._held >= _HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is held."""
        if self._parts:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.writelines(self._parts)
            self._parts, self._held = [], 0

    def read_values(self) -> Iterator[tuple[int, bytes]]:
        """Every (key, record), in the order in which they came."""
        self.flush()
        if self._length == 0:
            return
        with self._path.open("rb") as file:
            while head := file.read(_KEY_BYTES + _SIZE_BYTES):
                size = int.from_bytes(head[_KEY_BYTES:], "big")
                yield int.from_bytes(head[:_KEY_BYTES], "big"), file.read(size)

    def del_file(self) -> None:
        """Removes the file, if there is one."""
        self._path.unlink(missing_ok=True)
