"""Scalars of a run over its updates: ``metrics.jsonl`` and TensorBoard.

A line of ``metrics.jsonl`` is one value: ``{"step", "tag", "value", "seconds"}``, with
null where the value is not finite. Tags are ``<split>/<quantity>``.
"""

import errno
import functools
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_ablation.report.json_file import write_text

METRICS_FILE = "metrics.jsonl"
TAG = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+")
TAIL_BYTES = 1 << 16
# Events that TensorBoard's thread may be behind; beyond them, writing would wait.
QUEUE = 10_000
KEYS = ("step", "tag", "value", "seconds")


class MetricsError(ValueError):
    """A metrics file or tag that cannot be used; names file and line, or the tag."""


class Session(NamedTuple):
    """One run, as TensorBoard lists it; ``config`` is a nested mapping."""

    row: str
    group: str
    seed: int
    config: Mapping[str, Mapping[str, Any]]


class MetricWriter:
    """Appends scalars to ``metrics.jsonl`` and to a TensorBoard event file.

    With ``resume_step`` s, values of later updates are dropped from both: the run is
    about to make them again. Without it the run starts afresh, and so do its values.
    ``session`` lists the run in TensorBoard's HParams tab and among those of its group.
    """

    def __init__(
        self,
        directory: str | Path,
        resume_step: int | None = None,
        session: Session | None = None,
    ):
        # tensorboardX takes a while to import; readers of metrics do without it.
        from tensorboardX import SummaryWriter

        from transformer_ablation.report import board, events, hparams

        self._path = Path(directory) / METRICS_FILE
        self._path.parent.mkdir(parents=True, exist_ok=True)
        kept = [] if resume_step is None else _keep(self._path, resume_step)
        board.forget_failure(self._path.parent)
        write_text(self._path, "".join(_line(entry) for entry in kept))
        old = events.event_files(self._path.parent)
        shown = events.shown_scalars(self._path.parent) if kept else set()
        self._file = open(self._path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115
        first = 0 if resume_step is None else resume_step + 1
        # The suffix keeps two writers of one second from sharing a file name.
        self._board = SummaryWriter(
            logdir=str(directory),
            purge_step=first if old else None,
            filename_suffix=f".{len(old):04d}",
            flush_secs=10,
            max_queue=QUEUE,
        )
        if old:
            # TensorBoard drops nothing at the first restart that it is told of.
            self._board.file_writer.add_event(events.restart(first))
        self._group = None if session is None else session.group
        if session is not None:
            self._board.file_writer.add_summary(hparams.session_start(session))
        self._replay([e for e in kept if (e["tag"], e["step"]) not in shown])

    @property
    def directory(self) -> Path:
        """The run's folder."""
        return self._path.parent

    def write(self, step: int, values: Mapping[str, Any], seconds: float) -> None:
        """Adds one value a tag; ``seconds`` are those of training so far.

        Raises:
          MetricsError: for a tag that is not ``<split>/<quantity>``.
        """
        for tag in values:
            if not TAG.fullmatch(tag):
                raise MetricsError(
                    f"tag {tag!r} is not allowed; write it as <split>/<quantity>"
                )
        for tag, value in values.items():
            number = float(value)
            entry = {"step": int(step), "tag": tag, "value": number}
            self._file.write(_line({**entry, "seconds": float(seconds)}))
            self._add(tag, number, int(step))
        self._file.flush()

    def write_text(self, tag: str, text: str, step: int) -> None:
        """Adds Markdown, to TensorBoard alone."""
        self._check_board()
        self._board.add_text(tag, text, step)

    def write_image(self, tag: str, png: bytes, step: int) -> None:
        """Adds a picture, to TensorBoard alone."""
        from transformer_ablation.report import events

        self._check_board()
        self._board.file_writer.add_summary(events.image(tag, png), step)

    def write_histogram(self, tag: str, values: Any, step: int) -> None:
        """Adds a histogram of an array, to TensorBoard alone."""
        self._check_board()
        self._board.add_histogram(tag, values, step)

    def flush(self) -> None:
        """Puts the lines on disk; TensorBoard's file follows within seconds."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._check_board()
        self._board.flush()

    def close(self) -> None:
        """Writes everything that is left, and ends both files."""
        if not self._file.closed:
            try:
                self.flush()
            except OSError:
                self._abandon_board()
                raise
            finally:
                self._file.close()
            self._board.close()

    def _abandon_board(self) -> None:
        """TensorBoard's writer would try once more, and fail, as the process ends."""
        writer = getattr(self._board.file_writer, "event_writer", None)
        if writer is not None:
            writer.close = lambda: None

    def end(self, status: str) -> None:
        """Tells the HParams tab how the run ended: ``finished`` or ``diverged``."""
        from transformer_ablation.report import hparams

        self._check_board()
        self._board.file_writer.add_summary(hparams.session_end(status))
        self.flush()

    def _add(self, tag: str, value: float, step: int) -> None:
        from transformer_ablation.report import board_layout

        self._check_board()
        self._board.add_scalar(tag, value, step)
        if self._group is not None and tag in board_layout.OVERLAID:
            also = board_layout.group_tag(self._group, tag)
            self._board.add_scalar(also, value, step)

    def _check_board(self) -> None:
        """TensorBoard's file is written by a thread, which a full disk ends.

        Raises:
          OSError: once it has ended; what is given to it then waits for ever.
        """
        writer = getattr(self._board.file_writer, "event_writer", None)
        worker = getattr(writer, "_worker", None)
        if worker is not None and not worker.is_alive():
            full = os.strerror(errno.ENOSPC)
            raise OSError(errno.ENOSPC, full, str(self._path.parent))

    def __enter__(self) -> "MetricWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _replay(self, entries: list[dict[str, Any]]) -> None:
        """Gives TensorBoard what a killed process had not yet put in its file."""
        for entry in entries:
            value = math.nan if entry["value"] is None else entry["value"]
            self._add(entry["tag"], value, entry["step"])


def read_metrics(
    directory: str | Path, tags: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Every value in order; a last line without an end, being written, is left out.

    With ``tags``, the values of these alone; lines without any of them are not read.

    Raises:
      MetricsError: for a broken line, with its number.
    """
    path = Path(directory) / METRICS_FILE
    if not path.exists():
        return []
    data = path.read_bytes()
    if tags is None:
        lines = data.split(b"\n")[:-1]
        return [_entry(path, i, line) for i, line in enumerate(lines)]
    # A long run has a million lines; to look at each would take longer than all else.
    starts = sorted({start for tag in tags for start in _starts(data, tag)})
    entries = []
    for start in starts:
        line = data[start : data.index(b"\n", start)]
        before = functools.partial(data.count, b"\n", 0, start)
        entries.append(_entry(path, before, line))
    return [entry for entry in entries if entry["tag"] in tags]


def _starts(data: bytes, tag: str) -> Iterator[int]:
    """Where the whole lines that name a tag begin."""
    name, end = json.dumps(tag).encode(), 0
    while (found := data.find(name, end)) >= 0:
        end = data.find(b"\n", found)
        if end < 0:
            return
        yield data.rfind(b"\n", 0, found) + 1


def last_metrics(directory: str | Path) -> list[dict[str, Any]]:
    """The newest values, oldest first: cheap for a long run, silent on torn lines."""
    path = Path(directory) / METRICS_FILE
    if not path.exists():
        return []
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().split(b"\n")[:-1]
    whole = lines if size <= TAIL_BYTES else lines[1:]
    entries = []
    for i, line in enumerate(whole):
        try:
            entries.append(_entry(path, i, line))
        except MetricsError:
            continue
    return entries


def _keep(path: Path, step: int) -> list[dict[str, Any]]:
    return [e for e in read_metrics(path.parent) if e["step"] <= step]


def _line(entry: Mapping[str, Any]) -> str:
    """One line of JSON; a value that is not finite becomes null."""
    value = entry["value"]
    known = value is not None and math.isfinite(value)
    return json.dumps({**entry, "value": value if known else None}) + "\n"


def _entry(path: Path, before: int | Callable[[], int], line: bytes) -> dict[str, Any]:
    """A line as a value; ``before`` tells how many stand before it, if asked."""
    try:
        entry = json.loads(line)
        if isinstance(entry, dict) and all(key in entry for key in KEYS):
            known = isinstance(entry["value"], int | float | None)
            if known and isinstance(entry["step"], int):
                return entry
            fault = "step must be a whole number, value a number or null"
        else:
            fault = f"lacks one of {', '.join(KEYS)}"
    except ValueError as error:
        fault = str(error)
    number = 1 + (before() if callable(before) else before)
    raise MetricsError(
        f"{path}, line {number}: not a metric ({fault}); remove the line to go on"
    )
