"""DiskCodeStore: the promises of core.supplies.code_port.CodeStore, kept with files.

A content is written once under its hash, a folder once under the hash of its list of files; both are synced
before anybody hears of them. It may assume that one server works on its home. What could take longer than a
moment happens in threads, the copying for replicas in two of its own, so that it holds up nothing else.
"""

import asyncio
import contextlib
import errno
import logging
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trainshed.code.blobs import Blobs, DamagedBlob
from trainshed.code.intake import BlobIntake
from trainshed.code.layout import Layout, is_laid_out
from trainshed.code.trees import Trees
from trainshed.core.errors import Exhausted, Invalid, NotFound, TrainshedError, Unavailable, Violation
from trainshed.core.ports import Clock
from trainshed.core.supplies.code import FolderManifest, Mode, Piece, is_hash, refuse_links

log = logging.getLogger(__name__)

UNUSED_FOR = 86400.0  # seconds
_FEW_FILES, _FEW_BYTES = 16, 1 << 20  # what is laid out at once, without a thread
_SHORT = 4096  # bytes of a manifest that is read at once
_NOT_KEPT = "The files cannot be kept"
_RECENT = 4  # folders remembered, for who fetches one file after the other


class DiskCodeStore:
    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home.absolute()
        self._clock = clock
        self._drafts = self._home / "new"
        self._blobs = Blobs(self._home, self._now)
        self._trees = Trees(self._home, self._now)
        self._changing = threading.Lock()  # long, for threads only: while blobs come, go, or are counted on
        self._recent: dict[str, tuple[FolderManifest, dict[str, int]]] = {}
        self._copying = ThreadPoolExecutor(2, "lay-out")
        self._ending = threading.Event()

    async def start(self) -> None:
        with _translated("The code of jobs cannot be kept"):
            await asyncio.to_thread(self._open)

    async def close(self) -> None:
        self._ending.set()
        await asyncio.to_thread(self._copying.shutdown, cancel_futures=True)

    async def missing(self, manifest: FolderManifest) -> tuple[str, ...]:
        with _translated("The folder cannot be kept"):
            return await asyncio.to_thread(self._missing, manifest)

    async def take(self, pieces: AsyncIterator[Sequence[Piece]]) -> int:
        intake = BlobIntake(self._blobs, self._drafts, self._changing)
        try:
            async for some in pieces:
                with _translated(_NOT_KEPT):
                    await asyncio.to_thread(intake.feed, some)
        finally:
            # Also when the stream breaks off or the server ends: what is whole is kept.
            with _translated(_NOT_KEPT):
                await asyncio.shield(asyncio.to_thread(intake.finish))
        return intake.received

    async def manifest(self, code: str) -> FolderManifest:
        return (await self._folder(code))[0]

    async def read(self, code: str, sha256: str) -> AsyncIterator[bytes]:
        _, blobs = await self._folder(code)
        if sha256 not in blobs:
            raise NotFound(f"The code {code} has no file with the hash {sha256}.")
        chunks = self._blobs.read(sha256)
        with _translated("The file cannot be read"):
            try:
                while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                    yield chunk
            except DamagedBlob as error:
                raise NotFound(_lost(code, error.sha256)) from error

    async def hold(self, code: str) -> bool:
        with _translated("The code cannot be looked up"):
            return is_hash(code) and self._trees.hold(code)

    async def lay_out(self, code: str, folder: str) -> None:
        if not self.lay_out_small(code, folder):
            with _translated(f"The code {code} cannot be laid out"):
                await self._copy(code, folder)

    def lay_out_small(self, code: str, folder: str) -> bool:
        with _translated(f"The code {code} cannot be laid out"):
            if is_laid_out(folder):
                return True
            if (self._trees.length(code) or 0) > _SHORT:
                return False
            known = self._trees.load(code)
            if known is None or len(known.files) > _FEW_FILES or known.size > _FEW_BYTES:
                return False
            self._lay_out(code, known, folder, self._ending.is_set)
            return True

    async def tidy(self, used: frozenset[str]) -> int:
        with _translated("Unused code cannot be removed"):
            return await asyncio.to_thread(self._tidy, used, self._now() - UNUSED_FOR)

    def _now(self) -> float:
        # Not the file system's own times: they jump with the machine's clock, and "a day" would not be one.
        return self._clock.now().timestamp()

    def _open(self) -> None:
        shutil.rmtree(self._drafts, ignore_errors=True)  # what was being written when a server was killed
        self._drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._blobs.open()
        self._trees.open()

    def _missing(self, manifest: FolderManifest) -> tuple[str, ...]:
        wanted = manifest.blobs
        with self._changing:
            absent = tuple(sha256 for sha256, size in wanted.items() if not self._has(sha256, size))
            if absent:
                # Nothing that was said to be here may go before the rest has come.
                for sha256 in wanted.keys() - set(absent):
                    self._blobs.touch(sha256)
                return absent
            absent = self._check_targets(manifest)
            if not absent:
                self._trees.keep(manifest)
            return absent

    def _has(self, sha256: str, size: int) -> bool:
        known = self._blobs.size(sha256)
        if known is None or known == size:
            return known is not None
        if self._blobs.is_whole(sha256):
            sentence = f"The content {sha256} has {known} bytes, not {size}."
            raise Invalid((Violation("files", sentence),))
        return False

    def _check_targets(self, manifest: FolderManifest) -> tuple[str, ...]:
        """Whether links can have their contents as targets; which of those are damaged."""
        damaged: list[str] = []
        targets: dict[str, bytes] = {}
        for file in manifest.files:
            if file.mode is Mode.LINK:
                try:
                    targets[file.path] = b"".join(self._blobs.read(file.sha256))
                except DamagedBlob:
                    damaged.append(file.sha256)
        if not damaged:
            refuse_links(manifest, targets)
        return tuple(dict.fromkeys(damaged))

    async def _folder(self, code: str) -> tuple[FolderManifest, dict[str, int]]:
        known = self._recent.get(code)
        if known is None:
            with _translated("The code cannot be read"):
                manifest = await asyncio.to_thread(self._trees.load, code) if is_hash(code) else None
            if manifest is None:
                raise NotFound(f"There is no code {code[:80]} on this server.")
            known = self._recent[code] = (manifest, manifest.blobs)
            while len(self._recent) > _RECENT:
                del self._recent[next(iter(self._recent))]
        return known

    async def _copy(self, code: str, folder: str) -> None:
        unwanted = threading.Event()
        loop = asyncio.get_running_loop()
        copying = loop.run_in_executor(self._copying, self._load_and_lay_out, code, folder, unwanted)
        try:
            await asyncio.shield(copying)
        except asyncio.CancelledError:
            unwanted.set()
            await asyncio.wait((copying,))  # whoever cancels it may remove the folder next
            raise

    def _load_and_lay_out(self, code: str, folder: str, unwanted: threading.Event) -> None:
        manifest = self._trees.load(code)
        if manifest is None:
            raise Unavailable(
                f"The code {code} is not on this server any more. Submit the same folder again to send it."
            )
        self._lay_out(code, manifest, folder, lambda: unwanted.is_set() or self._ending.is_set())

    def _lay_out(self, code: str, manifest: FolderManifest, folder: str, is_over: Callable[[], bool]) -> None:
        try:
            Layout(self._blobs, manifest, is_over).make(folder)
        except DamagedBlob as error:
            raise Unavailable(_lost(code, error.sha256, manifest)) from error
        except InterruptedError as error:
            raise Unavailable("The server is ending; the folder is laid out when it is back.") from error

    def _tidy(self, used: frozenset[str], than: float) -> int:
        with self._changing:
            gone = self._trees.let_go(used, than)
            for code in gone:
                self._recent.pop(code, None)
            needed: set[str] = set()
            for code in list(self._trees.all()):
                if (manifest := self._trees.load(code)) is not None:
                    needed.update(file.sha256 for file in manifest.files)
            blobs = self._blobs.drop_older(than, needed)
        if gone or blobs:
            log.info("%d folders and %d files that no job needs were removed", len(gone), blobs)
        return len(gone)


def _lost(code: str, sha256: str, manifest: FolderManifest | None = None) -> str:
    path = next((file.path for file in manifest.files if file.sha256 == sha256), "") if manifest else ""
    what = f"The file {path}" if path else f"The content {sha256}"
    return (
        f"{what} of code {code} is damaged or gone on the server. Submit the same folder again: "
        "what is missing is then sent anew."
    )


@contextlib.contextmanager
def _translated(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _as_error(what, error) from error


def _as_error(what: str, error: OSError) -> TrainshedError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Exhausted(f"{what}: the disk of the server is full. Make room there, then try again.")
    return Unavailable(f"{what}: {error.strerror or error}.")
