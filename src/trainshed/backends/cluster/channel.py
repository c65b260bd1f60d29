"""PodChannel: the connection for the output of one pod: its output comes in, orders go out.

The run supervisor opens one for each run. Output is appended to the replica's files; how much of it is there
says where the next connection goes on, so nothing is lost or written twice however often it breaks.
pod_init.c has the other end.
"""

import asyncio
import os
from collections.abc import Callable

from trainshed.backends.cluster.pod_connection import ChannelBroken, PodDoor
from trainshed.backends.cluster.pod_frames import read_frames
from trainshed.core.ports import Sink
from trainshed.disk.regular_file import open_regular


class PodChannel:
    def __init__(self, door: PodDoor, output: Sink, base: tuple[int, int]) -> None:
        self.door = door
        self._output, self._base = output, base
        self._writer: asyncio.StreamWriter | None = None

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def order(self, word: str) -> bool:
        """Say go, term, kill or done; whether there was somebody to hear it."""
        if self._writer is None:
            return False
        self._writer.write(f"{word}\n".encode())
        return True

    def hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()

    async def follow(self, address: str, record: Callable[[bytes], None]) -> None:
        """Take output until the connection ends; `record` is called with what the init has written so far."""
        files: list[int] = []
        try:
            files += (_opened(path) for path in (self._output.stdout, self._output.stderr))
            out, err = (os.fstat(file).st_size - base for file, base in zip(files, self._base, strict=True))
            async with self.door.connect(address, f"output {out} {err}") as (reader, writer):
                self._writer = writer
                await _take(reader, files, record)
        finally:
            self._writer = None
            for file in files:
                os.close(file)


async def _take(reader: asyncio.StreamReader, files: list[int], record: Callable[[bytes], None]) -> None:
    async for letter, data in read_frames(reader):
        if letter == b"r":
            record(data)
        else:
            _append(files[letter == b"e"], data)


def _opened(path: str) -> int:
    try:
        return open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise ChannelBroken(f"{path} cannot be written: {error}") from error


def _append(file: int, data: bytes) -> None:
    # Not in a thread: one that is left behind could write after the next connection began to count.
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
