"""Splits a multipart/related body: JSON metadata of an object, then its bytes. For `api/storage_uploads.py`.

Boundaries may be in double quotes, in single quotes (gcloud) or unquoted. All lines end as the first one
does. Only the first part and the headers of the second are buffered.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Any

from trainshed.core.errors import Invalid, Violation
from trainshed.wire.json_body import parse_object

MOST_HEAD = 1 << 20  # bytes of everything before the object's own


@dataclass(frozen=True, slots=True)
class Related:
    metadata: dict[str, Any]
    content_type: str
    chunks: AsyncIterator[bytes]


def boundary_of(content_type: str) -> bytes:
    message = Message()
    message["content-type"] = content_type
    boundary = str(message.get_param("boundary", "")).strip("'\"")
    if not boundary:
        raise _wrong("has no boundary")
    return boundary.encode("utf-8", "surrogateescape")


async def related(content_type: str, chunks: AsyncIterator[bytes]) -> Related:
    mark = b"--" + boundary_of(content_type)
    parts = _Parts(chunks)
    line = await parts.up_to(b"\n")
    while not line.startswith(mark):
        line = await parts.up_to(b"\n")
    end = b"\r\n" if line.endswith(b"\r") else b"\n"
    await parts.up_to(end + end)  # its headers are ignored: it must be JSON
    metadata = parse(await parts.up_to(end + mark))
    await parts.up_to(end)
    headers = BytesHeaderParser().parsebytes(await parts.up_to(end + end) + end + end)
    return Related(metadata, headers.get("content-type", ""), parts.stream(end + mark))


def parse(data: bytes) -> dict[str, Any]:
    """The JSON metadata of an object. An empty text is an empty object."""
    return parse_object(data, "The object's metadata") if data.strip() else {}


class _Parts:
    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""

    async def up_to(self, mark: bytes) -> bytes:
        """The bytes before the mark. Consumes both."""
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > MOST_HEAD:
                raise _wrong(f"has more than {MOST_HEAD} bytes before the object's own")
            more = await anext(self._chunks, None)
            if more is None:
                raise _wrong("ends too early")
            self._buffer += more
        result, self._buffer = self._buffer[:at], self._buffer[at + len(mark) :]
        return result

    async def stream(self, mark: bytes) -> AsyncIterator[bytes]:
        """Everything up to the mark. Keeps back the last bytes, which may be the start of the mark."""
        buffer, back = self._buffer, len(mark) - 1
        while (at := buffer.find(mark)) < 0:
            if len(buffer) > back:
                yield buffer[: len(buffer) - back]
                buffer = buffer[len(buffer) - back :]
            more = await anext(self._chunks, None)
            if more is None:
                raise _wrong("ends before its last boundary: it was cut off")
            buffer += more
        if at:
            yield buffer[:at]
        async for _ in self._chunks:
            pass  # read to the end, so that the connection can be reused


def _wrong(what: str) -> Invalid:
    return Invalid((Violation("", f"The multipart body {what}."),))
