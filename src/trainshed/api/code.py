"""code:missing, code:upload, code/ID, code/ID/blobs/SHA256: uploads and downloads code folders by content."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from trainshed.api.call import Call, Json, Reply, StreamAnswer
from trainshed.core.errors import Invalid
from trainshed.core.supplies.code import FolderManifest, Piece
from trainshed.service.code import CodeService
from trainshed.wire.code import FrameReader, parse_manifest, render_manifest

MOST_MANIFEST = 64 * 1024 * 1024  # bytes: room for the most files, with long names
_FEW = 1000  # files of a manifest that are rendered at once
_SHORT = 64 * 1024  # bytes of a manifest that is parsed without a thread


@dataclass(slots=True)
class CodeHandlers:
    code: CodeService

    async def missing(self, call: Call) -> Json:
        text = await call.whole_body()
        if len(text) <= _SHORT:
            manifest = parse_manifest(text)
        else:
            manifest = await asyncio.to_thread(parse_manifest, text)
        missing = await self.code.missing(manifest)
        return {"code": manifest.id, "missing": list(missing)}

    async def upload(self, call: Call) -> Json:
        return {"received": await self.code.take(_pieces(call.chunks))}

    async def get(self, call: Call) -> Reply:
        manifest = await self.code.manifest(call.path["code"])
        if len(manifest.files) <= _FEW:
            return render_manifest(manifest)
        return StreamAnswer(_manifest_chunks(manifest), media_type="application/json; charset=UTF-8")

    async def blob(self, call: Call) -> Reply:
        chunks = await self.code.open(call.path["code"], call.path["sha256"])
        return StreamAnswer(chunks, media_type="application/octet-stream")


async def _manifest_chunks(manifest: FolderManifest) -> AsyncIterator[bytes]:
    """The same answer in parts: rendering 100,000 files at once would block the event loop."""
    head = b'{"files": ['
    for at in range(0, len(manifest.files), _FEW):
        part = render_manifest(FolderManifest(manifest.files[at : at + _FEW]))["files"]
        yield head + json.dumps(part, ensure_ascii=False)[1:-1].encode()
        head = b", "
        await asyncio.sleep(0)
    yield b"]}"


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[Sequence[Piece]]:
    reader = FrameReader()
    async for chunk in chunks:
        pieces: list[Piece] = []
        try:
            for piece in reader.feed(chunk):
                pieces.append(piece)  # one by one: pieces before a fault are stored
        except Invalid:
            yield pieces
            raise
        yield pieces
    reader.finish()
