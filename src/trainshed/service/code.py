"""What people may do with folders: say what is in one, send what is missing, fetch it back.

Nothing here knows of jobs but one question a submit asks: is that folder known? Whoever has the id of a
folder has seen what is in it, or was told by somebody who had; so ids are not kept apart by project.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from trainshed.core.code import FolderManifest, Piece
from trainshed.core.code_port import CodeStore
from trainshed.core.errors import Invalid, Violation


@dataclass(slots=True)
class CodeService:
    store: CodeStore

    async def missing(self, manifest: FolderManifest) -> tuple[str, ...]:
        """What is still to be sent; with nothing missing the folder is kept from now on."""
        return await self.store.missing(manifest)

    async def take(self, pieces: AsyncIterator[Sequence[Piece]]) -> int:
        return await self.store.take(pieces)

    async def manifest(self, code: str) -> FolderManifest:
        return await self.store.manifest(code)

    async def open(self, code: str, sha256: str) -> AsyncIterator[bytes]:
        """The chunks of a file, the first read already: what is not there is told before they flow."""
        chunks = self.store.read(code, sha256)
        first = await anext(chunks, b"")
        return _from(first, chunks)

    async def check(self, code: str) -> None:
        """Hold the folder for a job that is about to name it; Invalid where it is not known."""
        if not await self.store.hold(code):
            sentence = (
                f'names a folder this server does not have, "{code}". Submit the folder again, or upload it '
                "first: POST its manifest to code:missing and what is missing to code:upload."
            )
            raise Invalid((Violation("job_spec.code", sentence),), f"job_spec.code {sentence}")


async def _from(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in chunks:
        yield chunk
