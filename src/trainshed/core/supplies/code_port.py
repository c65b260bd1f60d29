"""The port to the store of code folders. Each numbered promise has a contract test.

`code/` implements it; the service, the backends and the sweeper call it.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from trainshed.core.supplies.code import FolderManifest, Piece


class CodeStore(Protocol):
    """Keeps the folders jobs run in, by content (core.supplies.code).

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
        """The hashes still to be sent, each once. With none missing, the folder is kept."""
        ...

    async def take(self, pieces: AsyncIterator[Sequence[Piece]]) -> int:
        """Store blobs as they come, each as its header and then its bytes. Returns how many were stored."""
        ...

    async def manifest(self, code: str) -> FolderManifest:
        """The folder of that id; NotFound where there is none."""
        ...

    def read(self, code: str, sha256: str) -> AsyncIterator[bytes]:
        """The content of that hash in that folder. NotFound, at any chunk, where it is missing or damaged."""
        ...

    async def hold(self, code: str) -> bool:
        """Whether there is such a folder. If so, it stays for a day at least, even without a job."""
        ...

    async def lay_out(self, code: str, folder: str) -> None:
        """Make the folder a copy of the code, unless there is one. Unavailable where it cannot be made."""
        ...

    def lay_out_small(self, code: str, folder: str) -> bool:
        """The same without a thread, for folders so small that a thread costs more; False for larger ones."""
        ...

    async def tidy(self, used: frozenset[str]) -> int:
        """Remove folders not among `used` a day after they were first seen so, and contents nobody needs.

        Returns how many folders were removed.
        """
        ...
