"""Event files for TensorBoard that are written whole: of a sweep, and of a failure.

TensorBoard keeps the first it hears of a sweep's columns or of a run's end, so a file
that says something new takes the place of the old one.
"""

import socket
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.record_writer import masked_crc32c

from transformer_ablation.report import board_layout, hparams
from transformer_ablation.report.json_file import write_bytes
from transformer_ablation.report.metrics import Session

SWEEP_EVENTS = "events.out.tfevents.sweep"
ENDED = ".ended"


def write_sweep(workdir: Path, sweep: Mapping[str, Any]) -> None:
    """The columns and charts of a sweep; ``sweep`` is what ``sweep.json`` holds."""
    groups = [row["group"] for row in sweep["rows"]]
    summaries = hparams.experiment(sweep), board_layout.layout(groups)
    write_bytes(workdir / SWEEP_EVENTS, _events(summaries))


def write_failure(directory: Path, session: Session) -> None:
    """That a run has failed, for one that may not even have begun.

    The file is the last of the run's; ``forget_failure`` removes it.
    """
    forget_failure(directory)
    summaries = hparams.session_start(session), hparams.session_end("failed")
    name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}{ENDED}"
    write_bytes(directory / name, _events(summaries))


def forget_failure(directory: Path) -> None:
    """What a run does that goes on after it has failed."""
    for path in directory.glob(f"events.out.tfevents.*{ENDED}"):
        path.unlink(missing_ok=True)


def _events(summaries: Iterable[Summary]) -> bytes:
    """An event file."""
    now = time.time()
    events = [Event(wall_time=now, file_version="brain.Event:2")]
    events += [Event(wall_time=now, summary=summary) for summary in summaries]
    return b"".join(_record(event.SerializeToString()) for event in events)


def _record(data: bytes) -> bytes:
    """Length and data, each with its checksum."""
    length = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (length, data)]
    return length + sums[0] + data + sums[1]
