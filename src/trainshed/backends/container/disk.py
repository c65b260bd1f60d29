"""Holds runs to the disk they asked for where the engine cannot: looks at what they fill, and ends them.

What counts is the container's own file system, its scratch and its job's folder; not what it is given to see
of buckets or of NFS servers. Looks are as far apart as a fast disk needs to fill what is left. It may assume
a running event loop. A look that fails is left out: nobody is ended for what was not seen.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.run import ContainerRun, write
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import TrainshedError

_log = logging.getLogger(__name__)

LIMIT = "disk"  # the file of a run that is looked at: how many bytes it may fill
GIB = 1 << 30
_FAST = GIB  # bytes a second
_SHORTEST, _LONGEST = 2.0, 60.0  # seconds between two looks
_AT_ONCE = 2


class DiskWatch:
    def __init__(self, engine: Engine, kill: Callable[[ContainerRun], Awaitable[None]]) -> None:
        self._engine, self._kill = engine, kill
        self._background = BackgroundTasks()
        self._looking = asyncio.Semaphore(_AT_ONCE)

    def watch(self, run: ContainerRun) -> None:
        """Where it is to be held to a limit, from now until it is gone."""
        try:
            limit = int((Path(run.folder) / LIMIT).read_text())
        except (OSError, ValueError):
            return
        self._background.run(self._hold(run, limit))

    async def close(self) -> None:
        await self._background.close()

    async def _hold(self, run: ContainerRun, limit: int) -> None:
        upper, used = "", 0
        while not await _gone(run, min(max((limit - used) / _FAST, _SHORTEST), _LONGEST)):
            try:
                async with self._looking:
                    upper = upper or await self._upper(run)
                    used = await self._used(run, upper)
                if used > limit and not run.gone.is_set():
                    await self._end(run, used, limit)
            except TrainshedError as error:
                _log.debug("what %s fills was not seen: %s", run.key, error.message)

    async def _end(self, run: ContainerRun, used: int, limit: int) -> None:
        run.full = f"it filled {used / GIB:.3f} GiB of disk, and its diskSpec allows {limit / GIB:.3g} GiB"
        with contextlib.suppress(OSError):
            write(f"{run.folder}/full", run.full.encode())
        await self._kill(run)

    async def _upper(self, run: ContainerRun) -> str:
        """The folder of what the container has written, where it can be seen from here."""
        told: dict[str, Any] = await self._engine.ask("GET", f"/containers/{run.container}/json")
        driver: dict[str, Any] = told.get("GraphDriver") or {}
        data: dict[str, Any] = driver.get("Data") or {}
        found = str(data.get("UpperDir") or "")
        return found if found and os.access(found, os.R_OK | os.X_OK) else ""

    async def _used(self, run: ContainerRun, upper: str) -> int:
        folder = Path(run.folder)
        own = await asyncio.to_thread(filled, [str(folder / "tmp"), str(folder.parent / "work"), upper])
        if upper:
            return own
        told: dict[str, Any] = await self._engine.ask(
            "GET", f"/containers/{run.container}/json", {"size": True}
        )
        return own + int(told.get("SizeRw") or 0)


def filled(folders: Iterable[str]) -> int:
    """The bytes that all below these folders take on the disk. For threads."""
    total, waiting = 0, [folder for folder in folders if folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        else:
                            total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue  # it went away meanwhile
    return total


async def _gone(run: ContainerRun, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(run.gone.wait(), seconds)
    return run.gone.is_set()
