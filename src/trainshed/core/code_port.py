"""The seam to where the folders of jobs are kept. Each numbered promise has a contract test."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from trainshed.core.code import FolderManifest, Piece


class CodeStore(Protocol):
    """Keeps the folders jobs run in, by content (core.code).

    1. what take has counted, and a folder of which missing found nothing, survive kill -9 and a power cut.
    2. nothing is kept under a hash it does not have; of an upload that breaks off, whole blobs are kept.
    3. what is damaged later is noticed when read, never given out as whole, and asked for again by missing.
    4. lay_out makes exactly the files, modes and links of the folder, none shared with another copy.
    5. lay_out leaves all or nothing, also by kill -9; a folder that is there already is left as it is.
    6. tidy removes only what no job, no folder and no upload of the last day needs.
    7. nothing blocks the event loop.
    """

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def missing(self, manifest: FolderManifest) -> tuple[str, ...]:
        """The contents still to be sent, each once. With none of them missing the folder is kept."""
        ...

    async def take(self, pieces: AsyncIterator[Sequence[Piece]]) -> int:
        """Keep blobs as they come: of each its header, then its bytes. How many were kept for good."""
        ...

    async def manifest(self, code: str) -> FolderManifest:
        """The folder of that id; NotFound where there is none."""
        ...

    def read(self, code: str, sha256: str) -> AsyncIterator[bytes]:
        """What the files of that hash in that folder hold. NotFound, at any chunk, where it is not whole."""
        ...

    async def hold(self, code: str) -> bool:
        """Whether there is such a folder; if so it stays for a day at least, job or no job."""
        ...

    async def lay_out(self, code: str, folder: str) -> None:
        """Make the folder a copy of the code, unless there is one. Unavailable where it cannot be made."""
        ...

    def lay_out_small(self, code: str, folder: str) -> bool:
        """The same at once, for what is so small that a thread would cost more; False where it is not."""
        ...

    async def tidy(self, used: frozenset[str]) -> int:
        """Remove folders not among `used` a day after they were first seen so, and contents nobody needs.

        How many folders went.
        """
        ...
