"""Which images this server has pulled, and when each was last used: what may go when room is needed.

A small file in the home, since it is about this machine's engine. What came is written at once; that one
was used, now and then: a server that is killed forgets a minute of it, which costs nothing but a worse
guess.
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

from trainshed.backends.container.engine import Engine, EngineFault
from trainshed.core.errors import Unavailable
from trainshed.core.image import Image, canonical
from trainshed.core.image_cache import PulledImage

log = logging.getLogger(__name__)

PACE = 60.0  # seconds between two writes of nothing but uses


@dataclass(frozen=True, slots=True)
class Entry:
    used_at: datetime
    names: tuple[str, ...] = ()  # canonical, under which it was pulled


class ImageLedger:
    def __init__(self, path: Path | None) -> None:
        """None: it is remembered, and not kept."""
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
        """Forget those that are not there any more."""
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
    """Those that were pulled here and could be had again: somebody's own name for one keeps it."""
    there = tuple(images)
    ledger.keep(frozenset(item.id for item in there))
    pulled: list[PulledImage] = []
    for item in there:
        names, entry = tuple(map(canonical, item.names)), ledger.entries.get(item.id)
        if entry is not None and entry.names and set(names) <= set(entry.names):
            pulled.append(PulledImage(id=item.id, names=names, size=item.size, used_at=entry.used_at))
    return tuple(pulled)


async def space_of(engine: Engine) -> tuple[int, int] | None:
    """Bytes free, and all bytes, of the disk the engine keeps images on; None where it cannot be seen."""
    try:
        folder = str((await engine.ask("GET", "/info")).get("DockerRootDir") or "")
        disk = await asyncio.to_thread(os.statvfs, folder)
    except EngineFault as fault:
        raise Unavailable(f"The container engine does not tell of itself: {fault.message}") from fault
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def _read(path: Path) -> dict[str, Entry]:
    """What cannot be read is not known to be ours, and so stays."""
    result: dict[str, Entry] = {}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        rows = cast("dict[str, dict[str, Any]]", json.loads(path.read_text()))
        for image, row in rows.items():
            result[image] = Entry(datetime.fromisoformat(row["used"]), tuple(row["names"]))
    return result
