"""The port to the packages of jobs. Each numbered promise has a contract test.

`service/source.py` implements it; `runtimes/packages.py` calls it.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What is known of an object without reading it."""

    size: int
    mark: str  # a generation or an etag: it changes with the content; empty: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    size: int
    sha256: str
    mark: str


class PackageSource(Protocol):
    """Fetches the object at an address, for a project that may read it.

    1. what a project may not read is Forbidden, what is not there NotFound, a scheme that is not served
       Invalid, a place that does not answer Unavailable; nothing is left in `into` then.
    2. fetch gives the bytes of one content, whole: the one its mark names.
    3. no more than `most` bytes are written: Exhausted.
    4. memory does not grow with the size, and nothing blocks the event loop.
    """

    async def look(self, uri: str, project: str) -> SourceFacts: ...

    async def fetch(self, uri: str, project: str, into: str, most: int) -> Fetched:
        """Write the bytes to the new file `into`."""
        ...
