"""A code store in memory that keeps the promises of its port, but for surviving the process.

For tests of what lies above the store, and of backends that lay a folder out: that alone writes files.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from trainshed.core.errors import Invalid, NotFound, Unavailable, Violation
from trainshed.core.ports import Clock
from trainshed.core.supplies.code import FolderManifest, Header, Mode, Piece, refuse_links

_DAY = timedelta(days=1)


class MemoryCodeStore:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._blobs: dict[str, bytes] = {}
        self._touched: dict[str, datetime] = {}
        self._folders: dict[str, FolderManifest] = {}
        self._unused: dict[str, datetime] = {}

    async def start(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def missing(self, manifest: FolderManifest) -> tuple[str, ...]:
        absent: list[str] = []
        for sha256, size in manifest.blobs.items():
            content = self._blobs.get(sha256)
            if content is None:
                absent.append(sha256)
                continue
            self._touched[sha256] = self._clock.now()
            if len(content) != size:
                sentence = f"The content {sha256} has {len(content)} bytes, not {size}."
                raise Invalid((Violation("files", sentence),))
        if absent:
            return tuple(absent)
        links = (file for file in manifest.files if file.mode is Mode.LINK)
        refuse_links(manifest, {file.path: self._blobs[file.sha256] for file in links})
        self._folders[manifest.id] = manifest
        self._unused.pop(manifest.id, None)
        return ()

    async def take(self, pieces: AsyncIterator[Sequence[Piece]]) -> int:
        header, content, count = Header("", -1), b"", 0
        async for some in pieces:
            for piece in some:
                if isinstance(piece, Header):
                    header, content = piece, b""
                else:
                    content += piece
                if len(content) == header.size:
                    if hashlib.sha256(content).hexdigest() != header.sha256:
                        raise Invalid((Violation(f"frames[{count}]", "The bytes have another hash."),))
                    self._blobs[header.sha256] = content
                    self._touched[header.sha256] = self._clock.now()
                    count += 1
        return count

    async def manifest(self, code: str) -> FolderManifest:
        if (result := self._folders.get(code)) is None:
            raise NotFound(f"There is no code {code} on this server.")
        return result

    async def read(self, code: str, sha256: str) -> AsyncIterator[bytes]:
        if sha256 not in (await self.manifest(code)).blobs:
            raise NotFound(f"The code {code} has no file with the hash {sha256}.")
        yield self._blobs[sha256]

    async def hold(self, code: str) -> bool:
        self._unused.pop(code, None)
        return code in self._folders

    async def lay_out(self, code: str, folder: str) -> None:
        self._write(code, folder)

    def lay_out_small(self, code: str, folder: str) -> bool:
        self._write(code, folder)
        return True

    def _write(self, code: str, folder: str) -> None:
        root = Path(folder)
        if root.exists():
            return
        if code not in self._folders:
            raise Unavailable(f"The code {code} is not on this server any more.")
        root.mkdir(mode=0o700, parents=True)
        for file in self._folders[code].files:
            path = root / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            content = self._blobs[file.sha256]
            if file.mode is Mode.LINK:
                path.symlink_to(content.decode())
            else:
                path.write_bytes(content)
                path.chmod(file.mode.permissions)

    async def tidy(self, used: frozenset[str]) -> int:
        now = self._clock.now()
        for code in self._folders:
            if code in used:
                self._unused.pop(code, None)
            else:
                self._unused.setdefault(code, now)
        gone = [code for code, since in self._unused.items() if now - since > _DAY]
        for code in gone:
            del self._folders[code], self._unused[code]
        needed = {sha256 for manifest in self._folders.values() for sha256 in manifest.blobs}
        for sha256 in self._blobs.keys() - needed:
            if now - self._touched[sha256] > _DAY:
                del self._blobs[sha256]
        return len(gone)
