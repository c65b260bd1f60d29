"""LayerInventory: the layers of a cluster's jobs as the image collector sees them.

The collector calls it, so that layers do not fill the disk. The folder of a layer has the time at which a pod
last needed it. A layer that a living run is brought is never removed; one that a waiting job needs is
installed again.
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from trainshed.core.errors import Conflict, NotFound
from trainshed.core.supplies.image_cache import PulledImage


class LayerInventory:
    """Implements `core.supplies.image_port.ImageInventory`."""

    def __init__(self, folder: Path, in_use: Callable[[], set[str]]) -> None:
        """`in_use` gives the folders of layers that runs are brought."""
        self._folder, self._in_use = folder, in_use
        self._sizes: dict[str, int] = {}  # of layers, which never change

    async def kept(self) -> tuple[PulledImage, ...]:
        return await asyncio.to_thread(self._kept)

    async def space(self) -> tuple[int, int] | None:
        disk = await asyncio.to_thread(os.statvfs, self._folder)
        return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        place = self._folder / name
        if str(place) in self._in_use():
            raise Conflict(f"Layer {name} is used by a replica that runs.")
        gone = place.with_suffix(".gone")  # what is left of it is removed at the next start
        try:
            place.rename(gone)
        except FileNotFoundError as error:
            raise NotFound(f"There is no layer {name}.") from error
        await asyncio.to_thread(shutil.rmtree, gone, True)
        return (name,)

    def _kept(self) -> tuple[PulledImage, ...]:
        layers = [path for path in self._folder.iterdir() if not path.suffix]
        self._sizes = {path.name: self._sizes.get(path.name) or _size(path) for path in layers}
        return tuple(
            PulledImage(
                id=path.name,
                names=(),
                size=self._sizes[path.name],
                used_at=datetime.fromtimestamp(path.stat().st_mtime, UTC),
            )
            for path in layers
        )


def _size(folder: Path) -> int:
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sum(file.lstat().st_size for file in files)
