"""Limits how many streams of one kind are open at a time, since each of them costs memory and time.

Handlers of streams call it. A stream beyond the limit is refused before it begins. It never ends a stream.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from trainshed.core.errors import Exhausted

MOST_STREAMS = 256


@dataclass(slots=True)
class StreamSlots:
    what: str  # the streams, for the sentence
    most: int = MOST_STREAMS
    _taken: int = field(default=0, init=False)

    def limited(self, source: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """The same stream, counted from its first read to its end. Exhausted where too many are open."""
        if self._taken >= self.most:
            raise Exhausted(
                f"{self._taken} {self.what} are open, the most this server serves at a time: "
                "close some, or try again later."
            )
        return self._counted(source)

    async def _counted(self, source: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        self._taken += 1
        try:
            async for data in source:
                yield data
        finally:
            self._taken -= 1
            await source.aclose()
