"""Which images this server has pulled and when each was last used: those may be removed to free space.

`EngineImages` calls it. It is a small file in the home, because it describes this machine's engine. A pull
is written at once, a use within PACE seconds: a killed server loses at most the last uses.
"""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault
from trainshed.core.errors import Unavailable
from trainshed.core.supplies.image import Image, canonical
from trainshed.core.supplies.image_cache import PulledImage

log = logging.getLogger(__name__)

PACE = 60.0  # seconds between two writes that record only uses


@dataclass(frozen=True, slots=True)
class Entry:
    used_at: datetime
    names: tuple[str, ...] = ()  # canonical, under which it was pulled


class ImageLedger:
    def __init__(self, path: Path | None) -> None:
        """Without a path it keeps the ledger in memory only."""
        self._path = path
        self._entries: dict[str, Entry] = _read(path) if path else {}
        self._written_at, self._is_behind = 0.0, False

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    def pulled(self, image: str, name: str) -> None:
        known = self._entries.get(image)
        names = () if known is None else known.names
        self._entries[image] = Entry(datetime.now(UTC), tuple(sorted({*names, name})))
        self.write()

    def used(self, image: str) -> None:
        known = self._entries.get(image, Entry(datetime.now(UTC)))
        self._entries[image] = replace(known, used_at=datetime.now(UTC))
        self._is_behind = True
        if time.monotonic() - self._written_at > PACE:
            self.write()

    def keep(self, there: frozenset[str]) -> None:
        """Forget all but these."""
        gone = self._entries.keys() - there
        for image in gone:
            del self._entries[image]
        if gone or self._is_behind:
            self.write()

    def write(self) -> None:
        self._written_at, self._is_behind = time.monotonic(), False
        if self._path is None:
            return
        rows = {
            image: {"used": entry.used_at.isoformat(), "names": list(entry.names)}
            for image, entry in self._entries.items()
        }
        new = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_text(json.dumps(rows))
            new.replace(self._path)
        except OSError as error:
            log.warning("which images were pulled cannot be written down: %s", error)


def kept_of(images: Iterable[Image], ledger: ImageLedger) -> tuple[PulledImage, ...]:
    """Those that were pulled here and can be pulled again: an image with any other name is not among them."""
    there = tuple(images)
    ledger.keep(frozenset(item.id for item in there))
    pulled: list[PulledImage] = []
    for item in there:
        names, entry = tuple(map(canonical, item.names)), ledger.entries.get(item.id)
        if entry is not None and entry.names and set(names) <= set(entry.names):
            pulled.append(PulledImage(id=item.id, names=names, size=item.size, used_at=entry.used_at))
    return tuple(pulled)


async def space_of(engine: Engine) -> tuple[int, int] | None:
    """Free and total bytes of the disk for images; None where this server cannot see it."""
    try:
        folder = str((await engine.about()).get("DockerRootDir") or "")
        disk = await asyncio.to_thread(os.statvfs, folder)
    except EngineFault as fault:
        raise Unavailable(f"The container engine does not tell of itself: {fault.message}") from fault
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def _read(path: Path) -> dict[str, Entry]:
    """An unreadable file counts as empty: then no image is known to be ours, and none is removed."""
    result: dict[str, Entry] = {}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        rows = cast("dict[str, dict[str, Any]]", json.loads(path.read_text()))
        for image, row in rows.items():
            result[image] = Entry(datetime.fromisoformat(row["used"]), tuple(row["names"]))
    return result
