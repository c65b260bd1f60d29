"""Carries out copies: several at a time, with a bar on a terminal, and nothing half done left behind.

Ctrl-C is seen by every transfer at its next piece: an upload that broke off was never an object, and a file
being fetched has its name only once it is whole. What is no plain file (a link, a pipe, a device) stays so.
"""

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar

from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.paint import draw
from trainshed.cli.transfer import Transfer, parse, plain
from trainshed.cli.versions import versioned
from trainshed.client import ApiError
from trainshed.client.storage import StorageClient
from trainshed.disk.early_write import EarlyWriter

AT_ONCE = 8  # transfers at the same time
EVERY = 0.1  # seconds between looks of the bar
_WIDTH = 24
_T = TypeVar("_T")


class TransferStopped(Exception):
    """Another transfer failed, or the person had enough."""


class TransferProgress:
    """One line on a terminal that is written anew; nothing elsewhere."""

    def __init__(self, files: int, size: int) -> None:
        self._files, self._size = files, size
        self._done, self._bytes = 0, 0
        self._lock = threading.Lock()
        self._is_shown = sys.stderr.isatty()
        self._began = time.monotonic()
        self._shown_at = 0.0
        self.stop = threading.Event()

    def add(self, count: int, files: int = 0) -> None:
        if self.stop.is_set():
            raise TransferStopped
        with self._lock:
            self._bytes += count
            self._done += files
            now = time.monotonic()
            if self._is_shown and now - self._shown_at >= EVERY:
                self._shown_at = now
                self._show(now)

    def end(self) -> None:
        if self._is_shown:
            self._show(time.monotonic())
            sys.stderr.write("\n")

    def _show(self, now: float) -> None:
        share = min(1.0, self._bytes / self._size) if self._size else 1.0
        bar = "█" * round(share * _WIDTH)
        rate = self._bytes / max(now - self._began, 0.001) / 1e6
        line = (
            f"{bar:░<{_WIDTH}} {share:4.0%}  {self._done}/{self._files} files  "
            f"{self._bytes / 1e6:.1f} of {self._size / 1e6:.1f} MB  {rate:.1f} MB/s"
        )
        draw(sys.stderr, f"\r{line}\x1b[K")


def carry(storage: StorageClient, jobs: Sequence[Transfer]) -> None:
    """All copies."""
    targets = {os.path.realpath(job.target) if isinstance(job.target, str) else job.target for job in jobs}
    if len(targets) < len(jobs):
        raise CommandFailed("two of the sources have the same name or target: copy them one by one")
    progress = TransferProgress(len(jobs), sum(job.size for job in jobs))

    try:
        each(jobs, lambda job: _copy(storage, job, progress), progress.stop)
    finally:
        progress.end()


def each(things: Sequence[_T], work: Callable[[_T], None], stop: threading.Event | None = None) -> None:
    """All of them, several at a time; the first that fails, or Ctrl-C, stops the others."""
    if len(things) == 1:  # where Ctrl-C also ends the wait for a pipe
        return work(things[0])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(work, thing) for thing in things]
        try:
            for item in running:
                item.result()
        except BaseException:
            if stop is not None:
                stop.set()
            for item in running:
                item.cancel()
            raise


def _copy(storage: StorageClient, job: Transfer, progress: TransferProgress) -> None:
    try:
        match job.source, job.target:
            case (str(), tuple() as target):
                with Path(job.source).open("rb") as file, _named(job.source):
                    storage.send(file, *target, progress.add)
            case (tuple() as source, str()):
                with _written(Path(job.target)) as file:
                    storage.fetch(*source, file, _begun_early(file, progress.add), job.generation)
            case (tuple() as source, tuple() as target):
                progress.add(storage.copy(source, target, job.generation))
            case _:
                raise CommandFailed("one of SOURCE and TARGET must be in a bucket: gs://… or s3://…")
    except OSError as error:
        raise CommandFailed(f"{error.filename or job.target}: {error.strerror}") from error
    progress.add(0, 1)


def _begun_early(file: IO[bytes], progress: Callable[[int], None]) -> Callable[[int], None]:
    early = EarlyWriter(file.fileno())

    def add(count: int) -> None:
        progress(count)
        early.add(count)

    return add


@contextlib.contextmanager
def _named(path: str) -> Generator[None]:
    """Of many files, the one that the server does not take."""
    try:
        yield
    except ApiError as error:
        details = [f"{violation.field}: {violation.description}" for violation in error.violations]
        raise CommandFailed(
            f"{plain(path)}: {error.message}", [detail for detail in details if error.message not in detail]
        ) from error
    except UnicodeEncodeError as error:
        raise CommandFailed(f"{plain(path)}: its name is not UTF-8, as an object's must be") from error


@contextlib.contextmanager
def _written(path: Path) -> Generator[IO[bytes]]:
    """The file to write: a draft beside the one meant, whose name it takes once all went well.

    A link is followed, and what is no plain file is written into: neither is ever replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
        return
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    draft = real.with_name(f".{real.name[:200]}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(real)
    finally:
        draft.unlink(missing_ok=True)


def stream(storage: StorageClient, sources: Sequence[str], target: str, recursive: bool) -> None:
    """A copy from or to `-`, the standard stream."""
    if target == "-":
        if recursive:
            raise Misuse("- takes one object after another: name each, without -r")
        for version in [versioned(storage, source) for source in sources]:
            place = parse(version.place, named=True)
            storage.fetch(*place, sys.stdout.buffer, lambda _: None, version.generation)
        return sys.stdout.buffer.flush()
    if len(sources) > 1:
        raise Misuse("- is copied alone")
    bucket, name = parse(target, named=True)
    if name.endswith("/"):
        raise Misuse(f"{target!r} names no object: what comes from - has no name of its own")
    import shutil
    import tempfile

    # It is sent once all of it is there: one that breaks off never becomes an object, and after a break of
    # the connection it can be sent again.
    with tempfile.TemporaryFile() as spool:
        try:
            shutil.copyfileobj(sys.stdin.buffer, spool, 1 << 20)
            spool.seek(0)
        except OSError as error:
            problem = f"standard input cannot be kept in {tempfile.gettempdir()} (TMPDIR) until it is sent"
            raise CommandFailed(f"{problem}: {error.strerror}") from error
        storage.send(spool, bucket, name, lambda _: None)
