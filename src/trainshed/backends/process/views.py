"""Views of buckets for processes: mounted at /gcs by their keepers, or copies in another place.

The starter calls it. The view of a job that does not mention /gcs is made when one of its programs first
opens it. All runs of a home have the same keeper: what that can mount is tried once, and again later where it
cannot. Where programs could write into the machine's own /gcs nevertheless, what appears there while a job
runs counts as the job's (astray.py). It never writes there itself.
"""

import asyncio
import contextlib
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from trainshed.backends.machine.mounts import NO_BUCKETS, Mounts
from trainshed.backends.machine.open_to_all import open_to_all
from trainshed.backends.process import astray
from trainshed.backends.process.job_user import JobUser
from trainshed.backends.process.keeper import CompiledKeeper, Keeper
from trainshed.core.view import ROOT, View, ViewScan, ViewSource

_ASKED = "asked"  # the pipe through which keepers request views
_LONGEST = 4096  # bytes: a path
_AGAIN = 5.0  # seconds until it is tried again whether something can be mounted


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """What a run gets: the folder its keeper mounts (empty: nothing), and where its programs find it."""

    mount: str = ""
    lazy: bool = False  # the keeper mounts it when a program opens /gcs
    root: str = ""
    note: str = ""
    fault: str = ""  # why nothing is at /gcs


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Why the keeper can mount nothing, no overlay, no trigger. Empty where it can."""

    fault: str
    no_overlay: str
    no_trigger: str
    again_at: float  # on the monotonic clock: it may be tried again


class ProcessViews(Mounts):
    def __init__(
        self,
        jobs: Path,
        trash: Path,
        hint: Callable[[str], None],
        source: ViewSource | None = None,
        user_of: Callable[[str], JobUser | None] = lambda _: None,
    ) -> None:
        """`user_of` says who the programs of a job are; None: who the server is."""
        super().__init__(jobs, trash, hint, source)
        self._user_of = user_of
        self.means: Means | None = None
        self._pipe = -1
        self._partial = b""

    def listen(self) -> None:
        """Receive the requests of keepers whose programs wait for a view. Lost ones are on disk too."""
        pipe = self._jobs.with_name(_ASKED)
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkfifo(pipe, 0o600)
            self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            asyncio.get_running_loop().add_reader(self._pipe, self._receive)

    async def close(self) -> None:
        await self.forget()
        if self._pipe >= 0:
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    async def show(self, job: str, view: View, keeper: Keeper, *, shared: bool) -> RunView:
        """The view for a run that is about to start; `shared` where others of its job are alive."""
        if self._source is None:
            return RunView(note="" if view.lazy else NO_BUCKETS)
        while (means := self.means) is None or (means.fault and time.monotonic() > means.again_at):
            await asyncio.to_thread(self.tried, keeper)
        if means.fault and self._user_of(job) is not None:
            # Copies would be in the home, which is closed to that user.
            return RunView(
                note="" if view.lazy else f"There is no /gcs here: {means.fault}.", fault=means.fault
            )
        if view.lazy and self.view_of(job) is None:
            if not means.fault and not means.no_trigger:
                return RunView(mount=str(self.place(job, view)), lazy=True, root=ROOT)
            if means.fault and not astray.is_open():
                return RunView(fault=means.fault)  # writing there fails, and the run's observation says why
        copies, view = self.copies, replace(view, lazy=False)
        current, note = await self.folder(job, view, self._source, shared=shared, copies=copies, plain=copies)
        if means.fault or (self.copies and not (current / "plain").exists()):
            why = means.fault or "it could be mounted when this job began, and cannot be now"
            await asyncio.to_thread(astray.mark, current)
            text = f"There is no /gcs here ({why}): TRAINSHED_GCS_ROOT says where the buckets are instead."
            note = " ".join(filter(None, (text, note)))
            return RunView(root=str(current / "plain"), note=note, fault=why)
        return RunView(mount=str(current), root=ROOT, note=note)

    def tried(self, keeper: Keeper) -> Keeper:
        """Find out what the keeper can mount here. For threads."""
        self.means = self._try(keeper)
        self.copies = bool(self.means.no_overlay)
        return keeper

    async def scan(self, job: str) -> ViewScan:
        if (view := self._current.get(job)) is not None:
            await asyncio.to_thread(astray.rescue, view)
        return await super().scan(job)

    def _complete(self, draft: Path, copies: bool, plain: bool) -> None:
        super()._complete(draft, copies, plain)
        if (user := self._user_of(draft.parents[1].name)) is not None:
            for part in ("plain",) if plain else ("lower", "upper"):
                open_to_all(draft / part, (user.uid, user.gid))

    def try_to_mount(self, keeper: Keeper) -> str:
        """Why no overlay can be mounted at /gcs; empty where it can."""
        return self._try(keeper).no_overlay

    def _try(self, keeper: Keeper) -> Means:
        if not isinstance(keeper, CompiledKeeper):
            no = "there is no C compiler to build what mounts it"
            return Means(fault=no, no_overlay=no, no_trigger=no, again_at=math.inf)
        overlay = self._attempt(keeper, "--try", ("lower", "upper", "work"))
        fault = overlay and self._attempt(keeper, "--try", ("plain",))
        trigger = self._attempt(keeper, "--try-lazy", ())
        again_at = time.monotonic() + _AGAIN
        return Means(fault=fault, no_overlay=overlay, no_trigger=trigger, again_at=again_at)

    def _attempt(self, keeper: CompiledKeeper, way: str, parts: tuple[str, ...]) -> str:
        """Why a view of these parts cannot be mounted; empty where it can."""
        scratch = self._trash / f"try-{os.urandom(4).hex()}"
        try:
            scratch.mkdir(parents=True)
            for part in parts:
                (scratch / part).mkdir()
            done = subprocess.run(
                [keeper.path, way, scratch], check=False, capture_output=True, text=True, timeout=30
            )
            return "" if done.returncode == 0 else (done.stderr.strip() or "its keeper died")
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            *lines, rest = (self._partial + os.read(self._pipe, 1 << 16)).split(b"\n")
            self._partial = rest if len(rest) <= _LONGEST else b""  # no keeper asks with more
            for line in lines:
                self._want(Path(os.fsdecode(line)).parent.parent.name)
