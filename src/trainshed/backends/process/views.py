"""Views of buckets for processes: mounted by their keepers, or where nothing can be, copies in another place.

It may assume that all runs of a home have the same keeper: whether that can mount is tried once.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainshed.backends.machine.mounts import NO_BUCKETS, Mounts
from trainshed.backends.process.keeper import CompiledKeeper, Keeper
from trainshed.core.view import ROOT, View


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """What a run is given: the folder its keeper mounts (none: nothing is mounted), and where it looks."""

    mount: str
    root: str
    note: str


class ProcessViews(Mounts):
    def __init__(self, jobs: Path, trash: Path, hint: Callable[[str], None]) -> None:
        super().__init__(jobs, trash, hint)
        self._fault: str | None = None  # why nothing can be mounted; empty: it can

    async def show(self, job: str, view: View, keeper: Keeper, *, shared: bool) -> RunView:
        """The view for a run that is about to start; `shared` where others of its job are alive."""
        if self._shelf is None:
            return RunView(mount="", root="", note=NO_BUCKETS)
        if self._fault is None:
            self._fault = await asyncio.to_thread(self.try_to_mount, keeper)
        current, note = await self.folder(job, view, self._shelf, shared=shared, copies=bool(self._fault))
        if (current / "plain").exists():
            why = self._fault or "it could not be mounted when this job began"
            text = f"There is no /gcs here ({why}): TRAINSHED_GCS_ROOT says where the buckets are instead."
            return RunView(mount="", root=str(current / "plain"), note=" ".join(filter(None, (text, note))))
        return RunView(mount=str(current), root=ROOT, note=note)

    def try_to_mount(self, keeper: Keeper) -> str:
        """Why nothing can be mounted at /gcs; empty where it can."""
        if not isinstance(keeper, CompiledKeeper):
            return "there is no C compiler to build what mounts it"
        root = Path(ROOT)
        if root.is_dir() and next(root.iterdir(), None) is not None:
            return "there is something in /gcs on this machine already"
        scratch = self._trash / f"try-{os.urandom(4).hex()}"
        try:
            for part in ("lower", "upper", "work"):
                (scratch / part).mkdir(parents=True)
            done = subprocess.run(
                [keeper.path, "--try", scratch], check=False, capture_output=True, text=True, timeout=30
            )
            return "" if done.returncode == 0 else (done.stderr.strip() or "its keeper died")
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
