"""Ends what outlasts the rights of its caller: streams, conversations and calls that wait.

`api/permitted.py` puts every answer to an account or a browser's session through it. A right is looked at
again when somebody changes the directory or signs out, and when the token expires: nothing polls. What
belongs to jobs, to nobody and to who has the server's own token does not come here.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from trainshed.api.ending import Ending
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
        self._ending = Ending(RightsEnded)

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """In the context changes are noticed."""
        with self._rights.listen(self._principal, self._look):
            self._look()
            yield

    def waiting(self) -> AbstractContextManager[None]:
        """What waits in the context is given up once the rights have ended. Raises RightsEnded."""
        return self._ending.waiting()

    def chunks(self, source: AsyncIterator[bytes], *, shows_end: bool = False) -> AsyncGenerator[bytes]:
        """The same stream, as long as the rights last. RightsEnded then, where it would look whole."""
        return self._ending.chunks(source, shows_end=shows_end, during=self.watched())

    def _look(self) -> None:
        if self._ending.has_begun:
            return
        try:
            present = self._rights.of(self._principal)
            refusals = (allowed(present, *need).reason for need in self._needs)
            reason = next(filter(None, refusals), "")
        except TrainshedError as error:
            reason = error.message
        if reason:
            self._ending.begin(reason)
