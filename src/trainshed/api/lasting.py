"""Ends what outlasts the rights of its caller: streams, conversations and calls that wait.

`api/permitted.py` puts every answer to an account or a browser's session through it. A right is looked at
again when somebody changes the directory or signs out, and when the token expires: nothing polls. What
belongs to jobs, to nobody and to who has the server's own token does not come here.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from trainshed.core.accounts.permission import Permission, Principal, Resource, allowed
from trainshed.core.errors import Forbidden, TrainshedError
from trainshed.core.ports import PresentRights

Need: TypeAlias = tuple[Permission, Resource | None]  # what was asked of `core.accounts.permission.allowed`


class RightsEnded(Forbidden):
    """The caller may not do any more what was allowed when the call began."""


class _Unchanging:
    """Implements `core.ports.PresentRights`: rights never end."""

    def of(self, principal: Principal) -> Principal:
        return principal

    def listen(self, principal: Principal, listener: Callable[[], None]) -> AbstractContextManager[None]:
        return contextlib.nullcontext()


UNCHANGING: PresentRights = _Unchanging()


class LastingRights:
    """Those of one call. `needs` may grow while the call goes on."""

    def __init__(self, rights: PresentRights, principal: Principal, needs: Sequence[Need]) -> None:
        self._rights, self._principal, self._needs = rights, principal, needs
        self._ended: RightsEnded | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._is_cut = False  # the waiting task was cancelled by us

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """In the context changes are noticed."""
        with self._rights.listen(self._principal, self._look):
            self._look()
            yield

    @contextlib.contextmanager
    def waiting(self) -> Generator[None]:
        """What waits in the context is given up once the rights have ended. Raises RightsEnded."""
        if self._ended is not None:
            raise self._ended
        task = self._waiting = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_cut or task.cancelling() > before + 1:  # others cancelled it, too
                raise
        finally:
            self._waiting = None
            if self._is_cut:
                self._is_cut = False
                task.uncancel()
        if self._ended is not None:
            raise self._ended

    async def chunks(self, source: AsyncIterator[bytes], *, shows_end: bool = False) -> AsyncGenerator[bytes]:
        """The same stream, as long as the rights last. RightsEnded then, where it would look whole."""
        try:
            with self.watched():
                while True:
                    with self.waiting():
                        data = await anext(source, None)
                    if data is None:
                        return
                    yield data
        except RightsEnded:
            if not shows_end:
                raise
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()

    def _look(self) -> None:
        if self._ended is not None:
            return
        try:
            present = self._rights.of(self._principal)
            refusals = (allowed(present, *need).reason for need in self._needs)
            reason = next(filter(None, refusals), "")
        except TrainshedError as error:
            reason = error.message
        if reason:
            self._ended = RightsEnded(reason)
            if self._waiting is not None:
                self._is_cut = True
                self._waiting.cancel()
