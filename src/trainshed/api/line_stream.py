"""Log lines as NDJSON, in small pieces: between two of them other requests have their turn.

`customJobs:tail` calls it. A piece has about as much work in it as any other answer.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator

from trainshed.core.logs import Line
from trainshed.wire.scalars import nanos_text

PIECE = 128  # lines at most
PIECE_TEXT = 64 * 1024  # characters, about


async def render_lines(batches: AsyncIterator[tuple[Line, ...]]) -> AsyncGenerator[bytes]:
    async for lines in batches:
        rows: list[bytes] = []
        size = 0
        for line in lines:
            rows.append(_ndjson(line))
            size += len(rows[-1])
            if len(rows) >= PIECE or size >= PIECE_TEXT:
                yield b"".join(rows)
                rows, size = [], 0
                await asyncio.sleep(0)
        if rows:
            yield b"".join(rows)


def _ndjson(line: Line) -> bytes:
    row = {
        "timestamp": nanos_text(line.at_ns),
        "insertId": line.insert_id,
        "task": line.task,
        "attempt": line.attempt,
        "stream": line.stream.value,
        "text": line.text,
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"
