"""Views of buckets for the runs of a job: the folders behind what its programs find as /gcs.

    JOB/gcs/wanted           a program has opened /gcs and waits for the view, which is not there yet
    JOB/gcs/stored.jsonl     what of it was stored (written.py)
    JOB/gcs/LABEL/lower      the snapshot of the buckets
              upper, work    what was written, as the overlay over it keeps it
              lock, holders  by which runs of the same job come to share one mount (keeper.c)
    JOB/gcs/LABEL/plain      where nothing can be mounted: copies, written to directly
              baseline.json  ... and how they were before

The backends of this machine inherit from it. Runs that live at the same time share a view. A run that starts
after all others are gone gets a new view, with only what was stored, once the caller says that everything in
the old view was stored. A view is there whole or not at all: it is made beside and renamed. It never mounts
one: the backend does.
"""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from trainshed.backends.machine import written
from trainshed.backends.machine.unstored import Unstored
from trainshed.core.errors import NotYet, Unavailable
from trainshed.core.view import LaidOutView, Stored, View, ViewScan, ViewSource, Written, local_path
from trainshed.disk.regular_file import write_regular

FOLDER = "gcs"
WANTED = "wanted"  # a file: a program has walked into /gcs and waits for its view
_DRAFT = ".new"
_MOMENT = 0.2  # seconds a launch may wait
NO_BUCKETS = "There is no /gcs: this backend has no buckets."


class Mounts:
    """Makes views, and keeps the promises of `core.view.Views` for them."""

    def __init__(
        self, jobs: Path, trash: Path, hint: Callable[[str], None], source: ViewSource | None = None
    ) -> None:
        """`source` lays out the buckets; None: there are none."""
        self._jobs, self._trash = jobs, trash
        self.unstored = Unstored(jobs.with_name("unstored"))
        self._source, self._hint = source, hint
        self._want: Callable[[str], None] = lambda _: None
        self.copies = False  # whether a view that a program waits for has to be copies
        self._current: dict[str, Path] = {}
        self._notes: dict[str, str] = {}
        self._laying: dict[str, asyncio.Task[None]] = {}  # those that took too long to wait for

    def open(self, job: str) -> None:
        """Find the view that an earlier server made."""
        views = [
            view for view in (self._jobs / job / FOLDER).glob("[0-9]*") if not view.name.endswith(_DRAFT)
        ]
        if views:  # more than one only where a server died while it replaced one by the other
            self._current[job] = max(views, key=lambda view: [int(n) for n in view.name.split(".")])

    async def folder(
        self, job: str, view: View, source: ViewSource, *, shared: bool, copies: bool, plain: bool
    ) -> tuple[Path, str]:
        """The folder of the view for a run that is about to start, and a note about it.

        With `copies` the objects are copied, so that programs cannot change the buckets' own files. With
        `plain` no overlay can lie over them: the view holds nothing but copies of what the job names. A lazy
        view, which a program waits for, is copied whole.
        """
        current = self._current.get(job)
        if current is None or (view.begin and not shared and current.name != view.label):
            current = await self._make(job, view, source, copies, plain)
        return current, self._notes.get(job, "")

    def on_want(self, hint: Callable[[str], None]) -> None:
        self._want = hint

    def wants(self, job: str) -> bool:
        return job not in self._current and (self._jobs / job / FOLDER / WANTED).exists()

    async def make(self, job: str, view: View) -> None:
        if self._source is not None and job not in self._current:
            copies = self.copies
            await self.folder(job, view, self._source, shared=True, copies=copies, plain=copies)

    async def forget(self, job: str | None = None) -> None:
        """Stop laying out views, of one job or of all, and forget them."""
        jobs = [job] if job is not None else list(self._laying)
        dropped = [self._laying.pop(item) for item in jobs if item in self._laying]
        if dropped:  # threads cannot be stopped: a folder must not be removed under one
            await asyncio.gather(*dropped, return_exceptions=True)
        for item in jobs:
            if (view := self._current.get(item)) is not None:
                _unseal(view)
                if job is not None:
                    await asyncio.to_thread(self._put_aside, job, view)
            self._current.pop(item, None)
            self._notes.pop(item, None)

    # ---- what programs wrote

    def view_of(self, job: str) -> str | None:
        view = self._current.get(job)
        return None if view is None else view.name

    async def scan(self, job: str) -> ViewScan:
        view = self._current.get(job)
        return ViewScan() if view is None else await asyncio.to_thread(written.scan, view)

    def read(self, file: Written) -> AsyncIterator[bytes]:
        return written.read(file)

    async def tail(self, file: Written, offset: int, most: int) -> bytes:
        return await asyncio.to_thread(written.tail, file, offset, most)

    async def shows(self, job: str, bucket: str, name: str) -> bool:
        view = self._current.get(job)
        return view is None or await asyncio.to_thread(written.shows, view, bucket, name)

    async def note(self, job: str, stored: Sequence[Stored]) -> None:
        await asyncio.to_thread(written.note, self._jobs / job / FOLDER, stored)

    async def notes(self, job: str) -> tuple[Stored, ...]:
        return await asyncio.to_thread(written.notes, self._jobs / job / FOLDER)

    async def keep(self, job: str) -> str:
        view = self._current.get(job)
        try:
            return "" if view is None else await asyncio.to_thread(self.unstored.mark, job, view)
        except OSError:
            return ""

    def kept(self, job: str) -> str:
        return self.unstored.kept(job)

    async def discard(self, job: str) -> None:
        if self.unstored.kept(job):
            await asyncio.to_thread(self.unstored.discard, job)

    def _put_aside(self, job: str, view: Path) -> None:
        try:
            self.unstored.take(job, view)
        except OSError as error:
            raise Unavailable(f"What job {job} wrote cannot be put aside: {error}.") from error

    # ---- making them

    def place(self, job: str, view: View) -> Path:
        """The folder in which the view is, or is made."""
        return self._jobs / job / FOLDER / (view.label or "0")

    async def _make(self, job: str, view: View, source: ViewSource, copies: bool, plain: bool) -> Path:
        laying = self._laying.pop(job, None)
        if laying is None or _succeeded(laying):  # then that was the view before
            laying = asyncio.create_task(self._lay(job, source, view, copies, plain))
            laying.add_done_callback(lambda _: self._hint(job) if job in self._laying else None)
        try:
            done, _ = await asyncio.wait((laying,), timeout=_MOMENT)
        except asyncio.CancelledError:
            self._laying[job] = laying
            raise
        if not done:
            self._laying[job] = laying
            raise NotYet("What it is to find below /gcs is being laid out.")
        laying.result()
        return self._current[job]

    async def _lay(self, job: str, source: ViewSource, view: View, copies: bool, plain: bool) -> None:
        old, fresh = self._current.get(job), self.place(job, view)
        draft = fresh.with_name(f"{fresh.name}{_DRAFT}")
        await asyncio.to_thread(self._clear, draft, fresh, old)
        folder = str(draft / ("plain" if plain else "lower"))
        laid = await source.lay_out(view, folder, copies=copies, others=view.lazy or not plain)
        await asyncio.to_thread(self._complete, draft, copies, plain)
        # Before a program can see it: one that writes and ends at once must not be found without a view.
        self._current[job], self._notes[job] = fresh, _note(laid)
        try:
            draft.rename(fresh)
        except OSError as error:
            del self._current[job]
            raise _not_made(error) from error

    def _clear(self, draft: Path, fresh: Path, old: Path | None) -> None:
        """Take away the view before this one, and what a killed server left half made."""
        try:
            for item in (old, fresh, draft):
                if item is not None and item.exists():
                    _unseal(item)
                    if item is not draft and self.unstored.take(item.parent.parent.name, item):
                        continue
                    grave = self._trash / f"{item.parent.parent.name}-{os.urandom(4).hex()}"
                    item.rename(grave)
                    shutil.rmtree(grave, ignore_errors=True)
            draft.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise _not_made(error) from error

    def _complete(self, draft: Path, copies: bool, plain: bool) -> None:
        try:
            if copies:
                self._hand_out(draft / ("plain" if plain else "lower"))
            if plain:
                stamps = json.dumps(written.stamps(str(draft / "plain")))
                write_regular(draft / written.BASELINE, stamps.encode())
            else:
                for part in ("upper", "work"):
                    (draft / part).mkdir(mode=0o755)
                if copies:
                    self._hand_out(draft / "upper")
        except OSError as error:
            raise _not_made(error) from error

    def _hand_out(self, copies: Path) -> None:
        """Give the copies to the user of the programs. Nothing to do where that is the server's own."""


def local_env(view: View, root: str) -> Mapping[str, str]:
    """The variables that tell a program where it finds the buckets: `root`, or nowhere."""
    if not root:
        return {}
    paths = {name: local_path(uri, root) for name, uri in view.paths.items()}
    return {"TRAINSHED_GCS_ROOT": root, **paths}


def _succeeded(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _not_made(error: OSError) -> Unavailable:
    return Unavailable(f"No view of the buckets can be made: {error}.")


def _unseal(view: Path) -> None:
    """The overlay makes a folder that only root may enter, and so remove."""
    with contextlib.suppress(OSError):
        (view / "work" / "work").chmod(0o700)


def _note(laid: LaidOutView) -> str:
    parts: list[str] = []
    if laid.missing:
        parts.append(
            f"/gcs has no {', '.join(laid.missing)}: not on this server's disk, or another project's."
        )
    if laid.partial:
        names = ", ".join(laid.partial)
        parts.append(f"Of {names}, which is large, /gcs has only what the job names in its arguments.")
    if laid.unfetched:
        names = ", ".join(laid.unfetched)
        parts.append(f"Nothing of {names} is below /gcs: what the job names there is too much to be fetched.")
    if laid.unpathable:
        parts.append(f"{laid.unpathable} objects are not below /gcs: their names cannot be paths.")
    return " ".join(parts)
