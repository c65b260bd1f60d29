"""A body of two parts, cut anywhere on its way."""

from collections.abc import AsyncIterator

import pytest

from trainshed.core.errors import Invalid
from trainshed.wire.multipart import boundary_of, related


async def cut(body: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
@pytest.mark.parametrize(
    "content", [b"", b"x", b"\r\n--x\r\n--", b"--xx", b"\n\n\r", b"-" * 50, bytes(range(256))]
)
async def test_the_bytes_come_out_as_they_went_in(size: int, end: bytes, content: bytes) -> None:
    mark = b"--=x="
    lines = [b"preamble", mark, b"Content-Type: application/json", b"", b'{"name": "n"}', mark]
    body = end.join([*lines, b"content-type: a/b", b"", content, mark + b"--", b"epilogue"])
    found = await related("multipart/related; boundary==x=", cut(body, size))
    assert (found.metadata, found.content_type) == ({"name": "n"}, "a/b")
    assert b"".join([chunk async for chunk in found.chunks]) == content


async def test_a_body_that_ends_early_or_begins_late_is_refused() -> None:
    whole = b'--x\r\n\r\n{"name": "n"}\r\n--x\r\n\r\nbytes\r\n--x--'
    for length in range(len(whole) - 2):
        with pytest.raises(Invalid):
            found = await related("multipart/related; boundary=x", cut(whole[:length], 9))
            _ = [chunk async for chunk in found.chunks]
    with pytest.raises(Invalid, match="before the object's own"):
        await related("multipart/related; boundary=x", cut(b"-" * (3 << 20), 1 << 20))


def test_boundaries_come_in_any_quotes() -> None:
    for header in ("b='=1='", 'b="=1="'):
        assert boundary_of(f"multipart/related; {header.replace('b=', 'boundary=')}") == b"=1="
    with pytest.raises(Invalid):
        boundary_of("multipart/related")
