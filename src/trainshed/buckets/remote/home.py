"""What all remote buckets share: threads, the handles of the stores, and the spool their uploads lie in."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from trainshed.buckets.disk import no_bucket
from trainshed.buckets.intake import ObjectIntake
from trainshed.buckets.pieces import Pieces
from trainshed.buckets.remote.connect import Store, connect
from trainshed.buckets.remote.rows import Remote
from trainshed.buckets.remote.spool import Spool
from trainshed.buckets.sums import Sums
from trainshed.core.ports import Clock

THREADS = 32  # most of the time they wait for the network

_P = ParamSpec("_P")
_T = TypeVar("_T")


class RemoteStores:
    def __init__(self, root: str, clock: Clock, objects: Callable[[str], Any]) -> None:
        self.clock = clock
        self.objects = objects  # any of these buckets, by name
        self.spool = Spool(root)
        self.executor = ThreadPoolExecutor(THREADS, "remote")
        self.pieces = Pieces(self.spool.path, self.executor, with_md5=True)  # the store is sent it too
        self._stores: dict[str, tuple[tuple[str, ...], Store]] = {}

    async def close(self) -> None:
        await asyncio.to_thread(self.executor.shutdown, cancel_futures=True)

    async def run(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, lambda: work(*args, **kwargs))

    def store(self, remote: Remote) -> Store:
        """Made once, and anew where its keys have changed. For threads."""
        if not remote.bucket:
            raise no_bucket(remote.name)
        keys = tuple(secret.reveal() for secret in remote.keys.values())
        known = self._stores.get(remote.name)
        if known is None or known[0] != keys:
            known = self._stores[remote.name] = (keys, connect(remote))
        return known[1]

    @contextlib.asynccontextmanager
    async def spooled(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, Sums]]:
        """All chunks in a file that is gone afterwards, and their sums."""

        name = secrets.token_hex(16)
        intake = ObjectIntake(self.spool.path(name), Sums(), self.executor)
        try:
            await intake.take(chunks)
            yield self.spool.path(name), intake.sums
        finally:
            intake.close()
            await asyncio.shield(self.run(self.spool.drop, name))
