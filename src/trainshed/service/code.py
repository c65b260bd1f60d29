"""Folders of code, as the API and a submit use them: list what is missing, upload it, download it.

`api/code.py` calls all of it; `service/jobs.py` calls `check` at a submit. Ids of folders are not separated
by project: an id is a hash of the content, so whoever has it has seen the content or got the id from somebody
who has. Nothing else here knows of jobs.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from trainshed.core.errors import Invalid, Violation
from trainshed.core.supplies.code import FolderManifest, Piece
from trainshed.core.supplies.code_port import CodeStore


@dataclass(slots=True)
class CodeService:
    store: CodeStore

    async def missing(self, manifest: FolderManifest) -> tuple[str, ...]:
        """The hashes that the client still has to send. With none missing, the folder is kept from now on."""
        return await self.store.missing(manifest)

    async def take(self, pieces: AsyncIterator[Sequence[Piece]]) -> int:
        return await self.store.take(pieces)

    async def manifest(self, code: str) -> FolderManifest:
        return await self.store.manifest(code)

    async def open(self, code: str, sha256: str) -> AsyncIterator[bytes]:
        """The chunks of a file. The first is read now, so that NotFound comes before the response begins."""
        chunks = self.store.read(code, sha256)
        first = await anext(chunks, b"")
        return _prepend(first, chunks)

    async def check(self, code: str) -> None:
        """Keep the folder for a job that is about to name it. Raises Invalid where it is not known."""
        if not await self.store.hold(code):
            sentence = (
                f'names a folder this server does not have, "{code}". Submit the folder again, or upload it '
                "first: POST its manifest to code:missing and what is missing to code:upload."
            )
            raise Invalid((Violation("job_spec.code", sentence),), f"job_spec.code {sentence}")


async def _prepend(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in chunks:
        yield chunk
