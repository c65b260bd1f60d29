"""Objects on the disk that the system sends at a socket: which bytes, and what becomes of damage."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from pathlib import Path

import pytest

from tests.contracts.bucket import Steps, info, put
from trainshed.buckets import outlet
from trainshed.buckets.store import DiskBuckets
from trainshed.buckets.uploads import DiskBucket
from trainshed.core.bucket import WHOLE, DamagedObject, Span

MIB = 1 << 20
DATA = os.urandom(9 * MIB + 77)


@pytest.fixture
async def bucket(tmp_path: Path) -> AsyncIterator[DiskBucket]:
    buckets = DiskBuckets(tmp_path, Steps())
    await buckets.start()
    await buckets.create(info())
    yield buckets.open("shed")
    await buckets.close()


class Client:
    """Reads in a thread of its own what is sent at the other end of its socket, and what is yielded."""

    def __init__(self) -> None:
        self.server, self.own = socket.socketpair()
        self.server.setblocking(False)
        self.yielded = 0
        self.calls = 0
        self._reads = asyncio.get_running_loop().run_in_executor(None, self._read)

    async def send(self, work: Callable[[int], int], threads: Executor) -> int | None:
        self.calls += 1
        return await asyncio.get_running_loop().run_in_executor(threads, work, self.server.fileno())

    async def take(self, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            self.yielded += len(chunk)
            self.server.setblocking(True)
            await asyncio.to_thread(self.server.sendall, chunk)
            self.server.setblocking(False)

    async def end(self) -> bytes:
        self.server.close()
        return await self._reads

    def _read(self) -> bytes:
        with self.own, self.own.makefile("rb") as file:
            return file.read()


async def received(bucket: DiskBucket, span: Span = WHOLE) -> tuple[bytes, Client]:
    reading, client = await bucket.read("x", span), Client()
    assert reading.sent is not None
    try:
        await client.take(reading.sent(client.send))
    finally:
        data = await client.end()
    return data, client


@pytest.mark.parametrize(
    "span",
    [
        WHOLE,
        Span(first=1),
        Span(first=MIB - 1, last=MIB),
        Span(first=MIB, last=3 * MIB - 1),
        Span(first=5, last=8 * MIB + 3),
        Span(last=2 * MIB),
        Span(last=1),
    ],
)
async def test_what_is_sent_is_what_would_be_read(bucket: DiskBucket, span: Span) -> None:
    await put(bucket, "x", DATA)
    data, client = await received(bucket, span)
    first, length = span.within(len(DATA))
    assert data == DATA[first : first + length]
    assert client.yielded <= MIB  # the system has sent the others


async def test_a_thread_that_has_sent_for_its_time_is_there_for_others(
    bucket: DiskBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "TURN", 1e-9)
    await put(bucket, "x", DATA)
    data, client = await received(bucket)
    assert data == DATA and client.calls > 1


async def test_what_the_system_cannot_send_is_read(
    bucket: DiskBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    sendfile, calls = os.sendfile, list[int]()

    def refuse(to: int, file: int, at: int, count: int) -> int:
        """From the third call on: a part of a block is sent already, and must not be sent twice."""
        calls.append(1)
        if len(calls) > 2:
            raise OSError(errno.EINVAL, "Invalid argument")
        return sendfile(to, file, at, min(count, 1000))

    monkeypatch.setattr(os, "sendfile", refuse)
    await put(bucket, "x", DATA)
    data, client = await received(bucket)
    assert data == DATA and client.yielded == len(DATA) - 2000


async def test_damage_is_never_sent(bucket: DiskBucket, tmp_path: Path) -> None:
    await put(bucket, "x", DATA)
    path = tmp_path / "shed" / "x"
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(6 * MIB + 5)
        file.write(bytes([DATA[6 * MIB + 5] ^ 1]))
    reading, client = await bucket.read("x"), Client()
    assert reading.sent is not None
    with pytest.raises(DamagedObject, match="gs://shed/x is damaged"):
        await client.take(reading.sent(client.send))
    assert await client.end() == DATA[: 6 * MIB]


@pytest.mark.parametrize("left", [0, 4 * MIB, 4 * MIB + 3])
async def test_nothing_is_sent_for_what_was_cut_off(bucket: DiskBucket, tmp_path: Path, left: int) -> None:
    await put(bucket, "x", DATA)
    reading, client = await bucket.read("x"), Client()
    assert reading.sent is not None
    (tmp_path / "shed" / "x").chmod(0o600)
    os.truncate(tmp_path / "shed" / "x", left)
    with pytest.raises(DamagedObject):
        await client.take(reading.sent(client.send))
    assert await client.end() == DATA[: max(left // MIB, 1) * MIB]  # the first block was read before


async def test_a_file_that_is_cut_between_its_check_and_its_sending_is_damage(
    bucket: DiskBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sendfile = os.sendfile

    def cut(to: int, file: int, at: int, count: int) -> int:
        os.truncate(tmp_path / "shed" / "x", 3 * MIB)
        return sendfile(to, file, at, count)

    await put(bucket, "x", DATA)
    (tmp_path / "shed" / "x").chmod(0o600)
    reading, client = await bucket.read("x", Span(first=3 * MIB - 1)), Client()
    assert reading.sent is not None
    monkeypatch.setattr(os, "sendfile", cut)
    with pytest.raises(DamagedObject, match="is gone"):
        await client.take(reading.sent(client.send))
    assert await client.end() == DATA[3 * MIB - 1 : 3 * MIB]


async def test_nothing_more_is_read_for_a_client_that_is_gone(bucket: DiskBucket) -> None:
    async def gone(work: Callable[[int], int], threads: Executor) -> int | None:
        return None

    await put(bucket, "x", DATA)
    reading = await bucket.read("x")
    assert reading.sent is not None
    assert b"".join([chunk async for chunk in reading.sent(gone)]) == DATA[:MIB]


async def test_a_client_without_room_keeps_no_thread(bucket: DiskBucket) -> None:
    await put(bucket, "x", DATA)
    reading = await bucket.read("x")
    assert reading.sent is not None
    server, own = socket.socketpair()
    with server, own:
        server.setblocking(False)
        counts = list[int]()

        async def send(work: Callable[[int], int], threads: Executor) -> int | None:
            counts.append(await asyncio.get_running_loop().run_in_executor(threads, work, server.fileno()))
            return counts[-1] or None

        assert b"".join([chunk async for chunk in reading.sent(send)]) == DATA[:MIB]
        assert counts[-1] == 0 < counts[0]
        assert sum(counts) < len(DATA) - MIB
