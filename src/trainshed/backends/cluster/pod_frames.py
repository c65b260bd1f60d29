"""Frames: how the init of a pod and the server write to each other: a letter, a length and the data.

Whoever has a connection to an init calls it. It never takes a frame that is larger than an init may send.
"""

import asyncio
import struct
from collections.abc import AsyncIterator

from trainshed.backends.cluster.pod_connection import ChannelBroken

Frame = tuple[bytes, bytes]  # its letter and its data
_HEAD = struct.Struct(">cI")
_MOST = 1 << 20  # bytes


def frame(letter: bytes, data: bytes = b"") -> bytes:
    return _HEAD.pack(letter, len(data)) + data


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    letter, size = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    if size > _MOST:
        raise ChannelBroken(f"a frame of {size} bytes")
    return letter, await reader.readexactly(size) if size else b""


async def read_frames(reader: asyncio.StreamReader) -> AsyncIterator[Frame]:
    """All of them, until the connection ends between two."""
    while True:
        try:
            yield await read_frame(reader)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return
