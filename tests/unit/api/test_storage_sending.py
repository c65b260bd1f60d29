"""Which answers with bytes of objects are sent by their connection."""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from datetime import UTC, datetime

import pytest

from trainshed.api.call import Call
from trainshed.api.storage_objects import AT_ONCE, sent
from trainshed.core.bucket import ObjectInfo
from trainshed.core.bucket_port import ObjectReading, SocketSender


async def chunks(text: bytes) -> AsyncIterator[bytes]:
    yield text


def sending(sender: SocketSender) -> AsyncIterator[bytes]:
    return chunks(b"sent")


async def send(work: Callable[[int], int], threads: Executor) -> int | None:
    return None


@pytest.mark.parametrize(
    ("length", "sender", "sends", "expected"),
    [
        (AT_ONCE + 1, send, sending, b"sent"),
        (AT_ONCE, send, sending, b"read"),  # the answer has not begun where damage is found
        (AT_ONCE + 1, None, sending, b"read"),
        (AT_ONCE + 1, send, None, b"read"),
    ],
)
async def test_large_objects_are_sent_where_both_connection_and_bucket_can(
    length: int,
    sender: SocketSender | None,
    sends: Callable[[SocketSender], AsyncIterator[bytes]] | None,
    expected: bytes,
) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    info = ObjectInfo(
        bucket="b",
        name="x",
        generation=1,
        metageneration=1,
        size=length,
        crc32c="",
        md5="",
        created_at=at,
        updated_at=at,
    )
    call = Call(path={}, query={}, body={}, headers={}, base_url="", sender=sender)
    content = (await sent(call, ObjectReading(info, 0, length, chunks(b"read"), sends))).content
    data = content if isinstance(content, bytes) else b"".join([chunk async for chunk in content])
    assert data == expected
