"""FileExchange: brings a run's files to its pod before its program begins, and fetches what that changes.

The run supervisor starts one for each run that has any, and asks it: is all there, is all here. What is
fetched lies in the server's own folders, which the rest of the server reads as it does for programs of this
machine. It goes on after every break of its connection, and after every restart of the server. Nothing that a
program wrote counts as fetched before the program has ended and all is here.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from trainshed.backends.cluster.file_taker import FileTaker
from trainshed.backends.cluster.local_copy import LocalCopy, are_equal, cleared
from trainshed.backends.cluster.pod_connection import ChannelBroken, PodDoor
from trainshed.backends.cluster.pod_files import PIECE, Brought, Fetched, PodEntry, PodFiles
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.cluster.view_changes import ViewChanges
from trainshed.core.metrics import hypertune_file
from trainshed.disk.regular_file import read_regular, write_regular

T = TypeVar("T")
_LEAST_PAUSE, _MOST_PAUSE = 0.5, 60.0  # seconds between two looks at what a program wrote
_DUTY = 5  # it pauses so many times as long as it fetched: large files that grow are not fetched for ever
# Seconds after which a broken connection is tried again: while the program runs, and first after its end.
_AGAIN, _SOON = 1.0, 0.05
_TOLD = 2.0  # seconds between two sentences on how much is there
_MUCH = 32 << 20  # bytes that take long enough to be told
_SMALL = 512  # what an entry counts for, in bytes
_MOST_REPORT = 16 << 20  # bytes
_REPORT, _HYPERTUNE = "report/report", hypertune_file("report/report")


class ExchangeFault(Exception):
    """The server's disk or the pod's did not take a file."""


class FileExchange:
    def __init__(self, run: PodRun, door: PodDoor, changed: Callable[[], None]) -> None:
        """`changed` is called when all is there, when all is here, and when there is a new sentence."""
        places = run.places
        self.run, self._door, self._changed = run, door, changed
        self._drafts = f"{run.folder}/drafts"
        self.gcs = LocalCopy(places.gcs, "gcs") if places.gcs else None
        brought = {"layer": places.layer, "code": places.code}
        self._brought = [LocalCopy(place, root) for root, place in brought.items() if place]
        self._view = None if self.gcs is None else ViewChanges(self.gcs, is_shared=run.gang > 1)
        self._roots = places.fetched
        self._reports: dict[str, PodEntry] = {}
        self._news: set[str] = set()  # paths that other pods have changed
        self._files: PodFiles | None = None  # while it waits for changes
        self._wakes = asyncio.Event()
        self.others: Callable[[], Iterable[FileExchange]] = tuple  # with the same view
        self.is_there = not places.waits or run.record.begun
        self.is_begun = False
        self.has_ended = False  # the program
        self.is_whole = False

    def end(self) -> None:
        """The program has ended: fetch the rest."""
        self.has_ended = True
        self._wake()

    def tell(self, paths: Iterable[str]) -> None:
        """Another pod has changed these."""
        self._news.update(paths)
        self._wake()

    def _wake(self) -> None:
        self._wakes.set()
        if self._files is not None:
            self._files.nudge()

    async def follow(self) -> None:
        """Until all is here, or the run is gone."""
        soon = _SOON
        while not self.is_whole and not self.run.gone.is_set():
            state = self.run.state
            if state is not None and state.is_running and state.address:
                try:
                    async with self._door.connect(state.address, "files") as streams:
                        await self._exchange(PodFiles(streams))
                        return
                except ChannelBroken:
                    pass
                except ExchangeFault as fault:
                    self._say(f"Its files cannot be exchanged with its pod: {fault}")
                finally:
                    self._files = None
            with contextlib.suppress(TimeoutError):  # the end of the program ends its connection too
                await asyncio.wait_for(self._wakes.wait(), soon if self.has_ended else _AGAIN)
            soon = min(soon * 2, _AGAIN) if self.has_ended else _SOON
            self._wakes.clear()

    async def _exchange(self, files: PodFiles) -> None:
        await _in_thread(cleared, self._drafts)
        if not self.is_there:
            await self._bring(files)
        seen, loop = 0, asyncio.get_running_loop()
        while True:
            self._wakes.clear()
            is_last, began = self.has_ended, loop.time()
            if not is_last and not self._news:
                self._files = files
            number, entries = await files.look(self._roots, seen, wait=not is_last and not self._news)
            self._files = None
            is_torn = False
            if entries is not None:
                is_torn = await self._take(files, entries)
                seen = 0 if is_torn else number
            if is_last and not is_torn:
                self.is_whole = True
                self._changed()
                return
            if self._news:
                await self._pass_on(files)
            elif entries is not None and not self.has_ended:
                await self._rest((loop.time() - began) * _DUTY)

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wakes.wait(), min(max(seconds, _LEAST_PAUSE), _MOST_PAUSE))

    # Bringing

    async def _bring(self, files: PodFiles) -> None:
        """All that is not there yet: an earlier connection may have broken."""
        _, entries = await files.look("layer code gcs")
        there = {entry.path: entry for entry in entries or ()}
        copies = [*self._brought, *([self.gcs] if self.gcs is not None else [])]
        items = [item for copy in copies for item in await _in_thread(_all, copy)]
        missing = [item for item in items if not _has(there, item)]
        telling = asyncio.create_task(self._tell_progress(files, sum(item.entry.size for item in missing)))
        try:
            refused = await files.bring(missing)
        finally:
            telling.cancel()
        if refused:
            raise ExchangeFault(f"{refused[0].words} there, and so for {len(refused)} in all.")
        if self._view is not None:
            _, entries = await files.look("gcs")
            self._view.learn(entries or ())
        self.is_there = True
        self._say("")

    async def _tell_progress(self, files: PodFiles, size: int) -> None:
        while size > _MUCH:
            done = min(files.sent, size)
            self._say(f"It is brought its files: {done / 1e9:.1f} of {size / 1e9:.1f} GB are in its pod.")
            await asyncio.sleep(_TOLD)

    def _say(self, sentence: str) -> None:
        self.run.bringing = sentence
        self._changed()

    async def _pass_on(self, files: PodFiles) -> None:
        """Bring what other pods have changed."""
        if self._view is None:
            return
        news, self._news = self._news, set()
        brought, removed = await _in_thread(self._view.wanted, news)
        await files.remove(removed)
        await files.bring(brought)  # what is refused there was changed there meanwhile

    # Fetching

    async def _take(self, files: PodFiles, entries: list[PodEntry]) -> bool:
        """Fetch what has changed; True where a file changed meanwhile, and has to be fetched again."""
        wanted = self._wanted_reports(entries)
        changed = set[str]()
        if self._view is not None:
            below = [entry for entry in entries if entry.path.startswith("gcs/")]
            changes = await _in_thread(self._view.look, below, self._news)
            self._news |= changes.missed
            wanted += changes.fetch
            changed |= changes.done
        taker = FileTaker(self._drafts, self._put)
        try:
            await self._fetch(files, wanted, taker)
        finally:
            taker.close()
            if self._view is not None:
                taken = [entry for entry in taker.taken if entry.path.startswith("gcs/")]
                self._view.took(taken)
                changed.update(entry.path for entry in taken)
            self._reports |= {e.path: e for e in taker.taken if e.path.startswith("report/")}
            if changed:
                self._news -= {entry.path for entry in taker.taken}
                for other in self.others():
                    other.tell(changed)
        return taker.is_torn

    async def _fetch(self, files: PodFiles, paths: list[str], taker: FileTaker) -> None:
        waiting: list[Fetched] = []
        size = 0
        async for item in files.fetch(paths):
            waiting.append(item)
            size += len(item) if isinstance(item, bytes) else _SMALL
            if size >= PIECE:
                await _in_thread(taker.take, waiting)
                waiting, size = [], 0
        if waiting:
            await _in_thread(taker.take, waiting)

    def _wanted_reports(self, entries: list[PodEntry]) -> list[str]:
        return [
            entry.path
            for entry in entries
            if entry.path in (_REPORT, _HYPERTUNE)
            and entry.size <= _MOST_REPORT
            and not ((known := self._reports.get(entry.path)) and known.is_same(entry))
        ]

    def _put(self, draft: str, entry: PodEntry) -> None:
        if self.gcs is not None and entry.path.startswith("gcs/"):
            self.gcs.put(draft, entry)
            return
        # In place: who watches the file for reports watches this one.
        report = self.run.places.report
        file = hypertune_file(report) if entry.path == _HYPERTUNE else report
        write_regular(file, read_regular(draft, _MOST_REPORT), mode=0o644)
        os.unlink(draft)  # noqa: PTH108


async def _in_thread(work: Callable[..., T], *arguments: object) -> T:
    """What works on the server's disk."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except OSError as error:
        raise ExchangeFault(f"{error}.") from error


def _all(copy: LocalCopy) -> list[Brought]:
    return list(copy.all())


def _has(there: dict[str, PodEntry], item: Brought) -> bool:
    entry = there.get(item.entry.path)
    return entry is not None and are_equal(item.entry, entry)
