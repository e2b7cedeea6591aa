"""Which scalars TensorBoard's event files of a folder show.

The format: length (8 bytes), checksum (4), a serialized ``Event``, checksum (4).
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary

PATTERN = "events.out.tfevents.*"


def event_files(directory: Path) -> list[Path]:
    """In the order in which TensorBoard reads them."""
    return sorted(directory.glob(PATTERN))


def shown_scalars(directory: Path) -> set[tuple[str, int]]:
    """(tag, step) of every scalar that is written and not purged by a restart."""
    shown: set[tuple[str, int]] = set()
    for path in event_files(directory):
        for event in read_events(path):
            if event.session_log.status == SessionLog.START:
                shown = {(tag, step) for tag, step in shown if step < event.step}
            shown |= {(value.tag, event.step) for value in event.summary.value}
    return shown


def restart(step: int) -> Event:
    """What tells that values from this step on are made again."""
    return Event(step=step, session_log=SessionLog(status=SessionLog.START))


def image(tag: str, png: bytes) -> Summary:
    """A picture; its header says how large it is."""
    width, height = struct.unpack_from(">II", png, 16)
    shown = Summary.Image(
        width=width, height=height, colorspace=4, encoded_image_string=png
    )
    return Summary(value=[Summary.Value(tag=tag, image=shown)])


def read_events(path: Path) -> Iterator[Event]:
    """Events up to the end or to the first torn one (its writer was killed)."""
    data = path.read_bytes()
    start = 0
    while start + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, start)
        end = start + 12 + length
        if end + 4 > len(data):
            return
        yield Event.FromString(data[start + 12 : end])
        start = end + 4
