"""Accepts connections at a listening socket, as they come. Servers with protocols of their own call it.

Where no file numbers are left those that wait are accepted later. It never reads from a connection.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

log = logging.getLogger(__name__)

_PAUSE = 1.0  # seconds until it is tried again


class Accepting:
    def __init__(
        self, listener: socket.socket, take: Callable[[socket.socket], None], most: int, complaint: str
    ) -> None:
        """`take` gets each connection, not blocking; `most` of them before others have their turn."""
        self._listener, self._take, self._most, self._complaint = listener, take, most, complaint

    def open(self) -> None:
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(self._most):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file numbers left
                log.warning("%s: %s", self._complaint, error)
                loop.remove_reader(self._listener)
                loop.call_later(_PAUSE, self.open)
                return
            connection.setblocking(False)
            self._take(connection)
