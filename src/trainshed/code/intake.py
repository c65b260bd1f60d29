"""One upload: pieces become drafts, drafts are checked, synced and put in place, a batch at a time.

Files that were complete when the stream broke are kept. A file is never stored under a hash that it does not
have. It may be called from any thread; a lock orders the calls.
"""

import contextlib
import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from trainshed.code.blobs import Blobs
from trainshed.core.errors import Invalid, Violation
from trainshed.core.supplies.code import Header, Piece

_MOST_DRAFTS = 256  # open files a batch may hold
_MOST_BYTES = 16 << 20  # bytes a batch may hold back


class _BlobFile:
    """A blob that is being written."""

    def __init__(self, header: Header, path: str) -> None:
        self.header = header
        self.path = path
        self.left = header.size
        self.digest = hashlib.sha256()
        # Read-only from the beginning: that holds for everybody but this handle.
        self.handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)

    def write(self, data: bytes) -> None:
        self.digest.update(data)
        self.left -= len(data)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.handle, rest) :]

    def close(self, *, discard: bool) -> None:
        os.close(self.handle)
        if discard:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)


class BlobIntake:
    def __init__(self, blobs: Blobs, drafts: Path, changing: threading.Lock) -> None:
        self._blobs = blobs
        self._folder = str(drafts)
        self._changing = changing  # held while blobs come and go
        self._working = threading.Lock()
        self._draft: _BlobFile | None = None
        self._whole: list[_BlobFile] = []
        self._held = 0  # bytes of those
        self._begun = 0
        self.received = 0  # blobs that are in place for good

    def feed(self, pieces: Sequence[Piece]) -> None:
        with self._working:
            for piece in pieces:
                if isinstance(piece, Header):
                    self._draft = _BlobFile(piece, f"{self._folder}/{os.urandom(12).hex()}")
                    self._begun += 1
                elif self._draft is not None:
                    self._draft.write(piece)
                if self._draft is not None and self._draft.left == 0:
                    self._check(self._draft)
                if len(self._whole) >= _MOST_DRAFTS or self._held > _MOST_BYTES:
                    self._settle()

    def finish(self) -> None:
        """No more comes: keep what is whole, drop what is not. May be called again."""
        with self._working:
            unfinished, self._draft = self._draft, None
            if unfinished is not None:
                unfinished.close(discard=True)
            self._settle()

    def _check(self, draft: _BlobFile) -> None:
        self._draft = None
        sha256 = draft.digest.hexdigest()
        if sha256 != draft.header.sha256:
            draft.close(discard=True)
            sentence = (
                f"The bytes sent as {draft.header.sha256} have the hash {sha256}: they changed on the way, "
                "or while they were read. Send them again."
            )
            raise Invalid((Violation(f"frames[{self._begun - 1}]", sentence),))
        self._whole.append(draft)
        self._held += draft.header.size

    def _settle(self) -> None:
        whole, self._whole, self._held = self._whole, [], 0
        places: dict[str, str] = {}
        try:
            # All begin to be written before the first is waited for: one commit of the journal does for all.
            for draft in whole:
                os.posix_fadvise(draft.handle, 0, 0, os.POSIX_FADV_DONTNEED)
            for draft in whole:
                os.fsync(draft.handle)
            with self._changing:
                for draft in whole:
                    places[draft.header.sha256] = draft.path
                self._blobs.settle(places)
            self.received += len(whole)
        finally:
            for draft in whole:
                draft.close(discard=True)  # what is in place has another name by now
