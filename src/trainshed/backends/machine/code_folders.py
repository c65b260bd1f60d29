"""Lays out folders of code for replicas in the background, so that no launch waits for a large one.

Backends call it, one launch of a job at a time. A folder that is not there within a moment is laid out in a
task of its own, which gives a hint when it is done. It never decides what is in a folder: the code store
does.
"""

import asyncio
from collections.abc import Callable

from trainshed.core.errors import NotYet, Unavailable
from trainshed.core.names import ReplicaName
from trainshed.core.supplies.code_port import CodeStore

_MOMENT = 0.2  # seconds a launch may wait


class CodeFolders:
    def __init__(self, code: CodeStore | None, hint: Callable[[str], None]) -> None:
        self._code = code
        self._hint = hint
        self._laying: dict[ReplicaName, asyncio.Task[None]] = {}

    async def lay_out(self, name: ReplicaName, code: str, folder: str) -> None:
        """Return when it is there; NotYet where that takes longer, and a hint when it is."""
        if self._code is None:
            raise Unavailable(f"The code {code} cannot be laid out: this backend keeps none.")
        laying = self._laying.pop(name, None)
        if laying is None:
            if self._code.lay_out_small(code, folder):
                return
            laying = asyncio.create_task(self._code.lay_out(code, folder))
        try:
            done, _ = await asyncio.wait((laying,), timeout=_MOMENT)
        except asyncio.CancelledError:
            laying.cancel()
            raise
        if done:
            laying.result()
            return
        self._laying[name] = laying
        laying.add_done_callback(lambda _: self._hint(name.job))
        raise NotYet(f"The code {code} is being laid out for {name.task}.")

    async def drop(self, job: str | None = None) -> None:
        """Give up what is on its way, of one job or of all; nothing of it goes on when this returns."""
        names = [name for name in self._laying if job in (None, name.job)]
        dropped = [self._laying.pop(name) for name in names]
        for laying in dropped:
            laying.cancel()
        await asyncio.gather(*dropped, return_exceptions=True)
