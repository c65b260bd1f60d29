"""Views of buckets in containers: the same folders as those of processes, mounted by the engine.

The snapshot is hard links under an overlay, which is a volume of the engine's: it mounts it once for all
replicas of a job, and takes it away when the last is gone. Where the image's user is not root the objects the
job names are copied, as that user's own, and the others opened to all: the folders above let nobody of this
machine pass. Where the engine itself is not root's there is no overlay: copies are mounted as they are.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE, S_ISDIR

from trainshed.backends.container.render import Mount
from trainshed.backends.container.run_mounts import can_overlay, is_root, overlay_volume, volume
from trainshed.backends.container.volumes import EngineVolumes
from trainshed.backends.machine.mounts import NO_BUCKETS, Mounts
from trainshed.core.view import ROOT, S3_ROOT, View

_ANYBODY, _ALL = 0o666, 0o777


class ContainerViews(Mounts):
    def __init__(self, jobs: Path, trash: Path, hint: Callable[[str], None]) -> None:
        super().__init__(jobs, trash, hint)
        self._users: dict[str, str] = {}  # for whom a job's copies are

    async def mount(
        self, job: str, view: View, volumes: EngineVolumes, *, shared: bool, user: str
    ) -> tuple[tuple[Mount, ...], str]:
        """What a run that is about to start gets of its job's view, and what there is to say of it."""
        if self._shelf is None:
            return (), "" if view.lazy else NO_BUCKETS
        self._users[job], view = user, replace(view, lazy=False)  # nobody notices when a container looks
        bare = not can_overlay(str(self._jobs)) or await volumes.is_rootless()
        copies = bare or not is_root(user)
        folder, note = await self.folder(job, view, self._shelf, shared=shared, copies=copies, plain=bare)
        plain = folder / "plain"
        if plain.exists():
            return tuple(Mount(source=str(plain), target=root) for root in (ROOT, S3_ROOT)), note
        name = volumes.name(job, f"gcs-{folder.name}")
        await volumes.make(overlay_volume(name, str(folder), volumes.labels(job)))
        return tuple(volume(name, root) for root in (ROOT, S3_ROOT)), note

    async def forget(self, job: str | None = None) -> None:
        await super().forget(job)
        if job is not None:
            self._users.pop(job, None)

    def _hand_out(self, copies: Path) -> None:
        job = copies.parents[2].name
        open_to_all(copies, self._users.get(job, ""))


def open_to_all(top: Path, user: str) -> None:
    """Let the image's user read and change what is there: the folder above lets nobody of this machine pass.

    A user by number gets it as its own, where we may give it away; one by name is known in the image only.
    """
    uid, _, gid = user.partition(":")
    owner = (int(uid), int(gid) if gid.isdecimal() else -1) if uid.isdecimal() else None
    _open(str(top), _ALL, owner)
    for folder, folders, names in os.walk(top):
        for name in folders:
            _open(f"{folder}/{name}", _ALL, owner)
        for name in names:
            _open(f"{folder}/{name}", _ANYBODY, owner)


def _open(path: str, mode: int, owner: tuple[int, int] | None) -> None:
    place = Path(path)
    if place.is_symlink():
        return
    status = place.stat()
    place.chmod(S_IMODE(status.st_mode) | mode)
    if owner is not None and (S_ISDIR(status.st_mode) or status.st_nlink == 1):  # else an object's own
        with contextlib.suppress(PermissionError):
            os.chown(path, *owner)
